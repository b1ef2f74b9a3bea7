"""The row of Apache Kafka in the table of images, as far as it can be tried without its image."""

from __future__ import annotations

import pytest

pytest.importorskip("testcontainers", reason="testcontainers is not installed")

from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.kafka_server import KafkaServer
from tests.brokers.servers import IMAGES
from tests.deploy.test_conformance_containers import KINDS
from tests.endpoints.exchange import opened, receive, send

(ROW,) = (each for each in IMAGES if each.kind == "kafka")


def test_clients_learn_the_port_of_the_machine() -> None:
    found = ROW.variables(40_123)

    assert found["KAFKA_ADVERTISED_LISTENERS"].startswith("CLIENTS://127.0.0.1:40123,")
    assert f"CLIENTS://:{ROW.port}" in found["KAFKA_LISTENERS"].split(",")
    assert not [value for value in found.values() if "{" in value]


def test_each_listener_has_a_protocol_and_the_servers_own_one_is_reached_inside() -> None:
    found = ROW.variables(1)
    listeners = {each.partition(":")[0] for each in found["KAFKA_LISTENERS"].split(",")}
    protocols = {
        each.partition(":")[0] for each in found["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    }

    assert listeners == protocols
    assert {
        found["KAFKA_INTER_BROKER_LISTENER_NAME"],
        found["KAFKA_CONTROLLER_LISTENER_NAMES"],
        "CLIENTS",
    } == listeners
    assert "SERVERS://localhost:9093" in found["KAFKA_ADVERTISED_LISTENERS"].split(",")


@pytest.mark.broker
def test_settings_and_names_of_the_row_serve_another_server(kafka_server: KafkaServer) -> None:
    kind, name = KINDS["kafka"], "c7"
    kind.prepare(name, kafka_server.port)
    settings = kind.settings[""](name, kafka_server.port)
    source = make_source(settings, [Subscription(kind.spell((name, "a", kind.rest)))], instance="r")
    sink = make_sink(settings, instance="r")
    with opened(source, sink):
        assert send(sink, Message(kind.spell((name, "a", "b c")), b"x")) == [ACCEPTED]
        (message,) = receive(source).messages
        (refused,) = send(sink, Message(kind.illegal, b"x"))

    assert (message.address, refused.rule) == ("c7:a.b c", "forbidden-character")
