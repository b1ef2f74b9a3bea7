"""Whether a copy equals its digest where it is received: for each kind, and pairs at one broker.

A copy that does not begins a new path at the next gateway: a circle costs copies until its hops
end it, and no message is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

import pytest

from gateway.dialects.registry import DIALECTS
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.copy_proof import content_digest
from gateway.model.message import DeliveryMode, Headers, Message, Payload
from gateway.model.outcome import Outcome
from gateway.routing.origin_path import wire_name
from gateway.runtime.delivery.rows import fingerprint
from gateway.trial.brokers.listening import free_port
from tests.brokers.nats_server import StartNats
from tests.brokers.rabbitmq_server import Vhost
from tests.conformance.test_endpoints import systems
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.systems import SYSTEMS, System

MODE = DeliveryMode.AT_LEAST_ONCE
SHORT = "~abcdefghijklmnopqrstuvwxyz"  # as a long name ends when it is shortened
NAMES = [("t", "x"), ("t", "Ünïcödé", "名前", "🜚"), ("t", SHORT), ("t", "~", "a-b")]
PAYLOADS: list[tuple[str, Payload]] = [
    ("bytes", bytes(range(256))),
    ("no-bytes", b""),
    ("text", "näive"),
    ("text-with-nul", "a\0b"),
    ("map", {"text": "näive", "whole": 7, "half": 0.5, "yes": True, "bytes": b"\0\xff"}),
    ("nested-map", {"b": {"x": 1}, "a": [1, "2"]}),
]
_numbers = count()


def digest(settings: EndpointSettings, message: Message) -> str:
    """The digest that a gateway computes of a message at an endpoint."""
    dialect = DIALECTS[settings.dialect].with_kinds(settings.kind_prefixes)
    name = wire_name(message.address, dialect).encode("utf-8", "surrogatepass")
    return content_digest(name + fingerprint(message.payload)[1])


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


def test_a_copy_equals_its_digest(system: System, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["system"]
    headers = Headers(mode=system.mode)
    sent = {
        f"name-{number}": Message(system.address(*levels), b"x", headers)
        for number, levels in enumerate(NAMES)
    }
    sent |= {what: Message(system.address("t", what), each, headers) for what, each in PAYLOADS}
    source, sink = system.source("t"), system.sink()
    with opened(source, sink):
        answers = send(sink, *sent.values())
        taken = [
            what
            for what, each in zip(sent, answers, strict=True)
            if each.outcome is Outcome.ACCEPTED
        ]
        got = dict(zip(taken, collect(source, len(taken)), strict=True))

    changed = {
        what: got[what]
        for what in taken
        if digest(system.settings, sent[what]) != digest(system.settings, got[what])
    }
    assert changed == {}, kind


def test_a_list_of_tags_equals_its_digest(request: pytest.FixtureRequest) -> None:
    system = SYSTEMS["yami4"](request)
    source, sink = system.source("t"), system.sink()
    sent = Message("t.a,t.b.c,other", b"x", Headers(mode=system.mode))
    with opened(source, sink):
        send(sink, sent)
        (got,) = collect(source, 1)

    assert digest(system.settings, got) == digest(system.settings, sent)


def test_a_copy_to_an_exchange_equals_no_digest_at_the_queue_that_gets_it(rabbitmq: Vhost) -> None:
    """A message of `queue:NAME` has that name, whatever its key was: it begins a new path."""
    rabbitmq.api("PUT", "queues", "/work", {"durable": True})
    rabbitmq.api("POST", "bindings", "/e/amq.topic/q/work", {"routing_key": "t.#"})
    source, sink = (
        make_source(rabbitmq.settings, [Subscription("queue:work")]),
        make_sink(rabbitmq.settings),
    )
    sent = [Message(each, b"x", Headers(mode=MODE)) for each in ("t.x", "queue:work")]
    with opened(source, sink):
        send(sink, *sent)
        got = collect(source, 2)

    equal = [
        digest(rabbitmq.settings, one) == digest(rabbitmq.settings, other)
        for one, other in zip(sent, got, strict=True)
    ]
    assert equal == [False, True]


@pytest.mark.nightly
def test_a_dot_in_a_topic_of_rabbitmqs_mqtt_changes_the_digest(
    request: pytest.FixtureRequest,
) -> None:
    """Its plugin makes two levels of one; `limits: rabbitmq-mqtt` keeps such names from it."""
    mqtt, own = _rabbitmq(request)
    source, sink = make_source(own, [Subscription("t.#")]), make_sink(mqtt)
    sent = Message("t/max.1", b"x", Headers(mode=MODE))
    with opened(source, sink):
        send(sink, sent)
        (got,) = collect(source, 1)

    assert got.address == "t.max.1"
    assert digest(own, got) != digest(mqtt, sent)


@dataclass(frozen=True)
class Pair:
    """Two endpoints at one broker: one sends to `address`, and the other one reads `pattern`."""

    sends: EndpointSettings
    reads: EndpointSettings
    address: str
    pattern: str


def _rabbitmq(request: pytest.FixtureRequest) -> tuple[EndpointSettings, EndpointSettings]:
    vhost = request.getfixturevalue("rabbitmq_of_mqtt")
    mqtt = MqttSettings(
        host="127.0.0.1",
        port=vhost.server.mqtt_port,
        version="3.1.1",
        username=f"{vhost.name}:guest",
        password="guest",  # noqa: S106  # of every new server
        client_id=f"digests-{next(_numbers)}",
    )
    return mqtt, replace(vhost.settings, queue="digests")


def _activemq(request: pytest.FixtureRequest) -> tuple[EndpointSettings, EndpointSettings]:
    broker = request.getfixturevalue("activemq")
    name = f"digests-{next(_numbers)}"
    mqtt = MqttSettings(
        host="127.0.0.1", port=broker.mqtt_port, version="3.1.1", client_id=f"{name}-mqtt"
    )
    return mqtt, broker.settings(client_id=name, durable="gateway")


def _nats(request: pytest.FixtureRequest) -> tuple[EndpointSettings, EndpointSettings]:
    start: StartNats = request.getfixturevalue("start_nats")
    port = free_port()
    server = start("server_name: digests", f'mqtt {{listen: "127.0.0.1:{port}"}}')
    mqtt = MqttSettings(host="127.0.0.1", port=port, version="3.1.1")
    return mqtt, NatsSettings(url=server.url, jetstream=False)


BROKERS = {"rabbitmq": (_rabbitmq, "#"), "activemq": (_activemq, ">"), "nats": (_nats, ">")}


@pytest.mark.parametrize("levels", NAMES, ids="".join)
@pytest.mark.parametrize("sends", ["mqtt", "own"])
@pytest.mark.parametrize(
    "broker", [pytest.param("rabbitmq", marks=pytest.mark.nightly), "activemq", "nats"]
)
def test_a_copy_equals_its_digest_by_another_protocol_of_its_broker(
    request: pytest.FixtureRequest, broker: str, sends: str, levels: tuple[str, ...]
) -> None:
    make, rest = BROKERS[broker]
    mqtt, own = make(request)
    first, *others = (f"t{next(_numbers)}", *levels)
    ways = [
        Pair(mqtt, own, "/".join((first, *others)), f"{first}.{rest}"),
        Pair(own, mqtt, ".".join((first, *others)), f"{first}/#"),
    ]
    pair = ways[sends == "own"]
    source = make_source(pair.reads, [Subscription(pair.pattern)], instance="r")
    sink = make_sink(pair.sends)
    sent = [
        Message(pair.address, payload, Headers(mode=pair.sends.mode))
        for payload in (b"\0\xff", "näive", b"")
    ]
    with opened(source, sink):
        assert [each.outcome for each in send(sink, *sent)] == [Outcome.ACCEPTED] * 3
        got = collect(source, 3)

    assert [digest(pair.reads, each) for each in got] == [digest(pair.sends, each) for each in sent]
