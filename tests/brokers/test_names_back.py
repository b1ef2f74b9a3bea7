"""The example mapping of names that come back carries messages over one topic of a Kafka server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from tests.brokers.kafka_server import KafkaServer
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker

MAPPING = Path(__file__).parents[2] / "mappings/stories/names-back.yaml"
SECRETS = {"MQTT_HOST": "127.0.0.1", "REMOTE_MQTT_HOST": "127.0.0.1"}
READINGS = [
    f"plant/{line}/{rest}"
    for rest in ("motor/temp.max", "motor", "a//b", "line 8/ü", "%23")
    for line in ("7", "8.1", "a b")
]


def mapping(plant: Mosquitto, remote: Mosquitto, lake: KafkaServer) -> dict[str, Any]:
    """Return the mapping with the brokers of this test."""
    found: dict[str, Any] = yaml.safe_load(MAPPING.read_text(encoding="utf-8"))
    found["endpoints"]["plant"] |= {"port": plant.port}
    found["endpoints"]["remote"] |= {"port": remote.port}
    found["endpoints"]["lake"] |= {"servers": [lake.url], "create_topics": True}
    return found


def mqtt(broker: Mosquitto) -> MqttSettings:
    return MqttSettings(host="127.0.0.1", port=broker.port, client_id="test")


def test_names_come_back_over_one_topic_in_the_order_of_their_lines(
    tmp_path: Path, start_mosquitto: StartMosquitto, kafka_server: KafkaServer
) -> None:
    plant, remote = start_mosquitto(), start_mosquitto()
    kafka_server.make_topic("readings", 3)
    kafka_server.make_topic("setpoints", 3)
    file = tmp_path / "gateway.yaml"
    file.write_text(yaml.safe_dump(mapping(plant, remote, kafka_server)), encoding="utf-8")
    at_plant, at_remote = make_sink(mqtt(plant)), make_sink(mqtt(remote))
    stranger = make_sink(kafka_server.settings, instance="stranger")
    seen_at_plant = make_source(mqtt(plant), [Subscription("setpoint/#")])
    seen_at_remote = make_source(mqtt(remote), [Subscription("plant/#")])
    gateway = Gateway(load(file, SECRETS))
    gateway.start()
    try:
        until(lambda: all(each.connection.value == "connected" for each in gateway.states))
        with opened(at_plant, at_remote, stranger, seen_at_plant, seen_at_remote):
            forged = Headers(properties={"gateway_name": "plant/9/forged"})
            assert send(stranger, Message("readings:7", b"forged", forged)) == [ACCEPTED]
            sent = [Message(name, b"%d" % number) for number, name in enumerate(READINGS)]
            assert send(at_plant, *sent) == [ACCEPTED] * len(sent)
            readings = collect(seen_at_remote, len(sent))
            assert send(at_remote, Message("setpoint/7/press/speed", b"3")) == [ACCEPTED]
            (setpoint,) = collect(seen_at_plant, 1)
    finally:
        gateway.stop(10)

    by_line: dict[str, list[str]] = {}
    for each in readings:
        by_line.setdefault(each.address.split("/")[1], []).append(each.address)
    assert by_line == {
        line: [each for each in READINGS if each.split("/")[1] == line] for line in by_line
    }
    assert sorted(each.address for each in readings) == sorted(READINGS)
    assert (setpoint.address, setpoint.payload) == ("setpoint/press/7/speed", b"3")
