"""The JMS endpoint against a real EMS server; skipped without EMS_URL.

EMS_URL is its address (tcp://host:7222), EMS_CLASSPATH its jars, separated by colons; EMS_USER and
EMS_PASSWORD are optional. The user needs permission to create topics, queues and durable
subscriptions below `gateway.test`. EMS_FACTORY names the factory of another provider, to run the
tests without EMS; tests of EMS's own rules are then skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSink, JmsSource, jvm, open_sink, open_source
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.endpoints.jms.value_codec import JavaByte, JavaFloat, JavaLong, JavaShort
from gateway.endpoints.settings.jms import EMS_FACTORY, JmsSettings
from gateway.model.message import DeliveryMode, Headers, Message, Payload, Value
from gateway.model.outcome import ACCEPTED, Outcome
from tests.endpoints.exchange import QUIET, collect, opened, receive, send
from tests.waiting import until

URL, CLASSPATH = os.environ.get("EMS_URL", ""), os.environ.get("EMS_CLASSPATH", "")
FACTORY = os.environ.get("EMS_FACTORY", EMS_FACTORY)
ROOT = "gateway.test"
PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not (URL and CLASSPATH), reason="EMS_URL and EMS_CLASSPATH are not set"),
]
of_ems = pytest.mark.skipif(EMS_FACTORY != FACTORY, reason="EMS_FACTORY is another provider's")

SETTINGS = JmsSettings(
    name="ems",
    urls=(URL,),
    factory=FACTORY,
    classpath=tuple(CLASSPATH.split(":")),
    username=os.environ.get("EMS_USER"),
    password=os.environ.get("EMS_PASSWORD"),
)


def drain(source: JmsSource) -> None:
    """Settle messages of an earlier run."""
    while (batch := source.receive(QUIET)) is not None:
        batch.settle([ACCEPTED] * len(batch.messages))


@pytest.fixture
def pair() -> Iterator[tuple[JmsSource, JmsSink]]:
    patterns = [Subscription(f"{ROOT}.>"), Subscription(f"queue:{ROOT}.q")]
    source, sink = open_source(SETTINGS, patterns), open_sink(SETTINGS)
    with opened(source, sink):
        drain(source)
        yield source, sink


@pytest.mark.parametrize("address", [f"{ROOT}.a.b", f"queue:{ROOT}.q"])
@pytest.mark.parametrize(
    "payload",
    [b"bytes", "text é", {"a": 1, "m": {"n": "nested"}, "l": [1, 2, 3]}, b"x" * 1_048_576],
    ids=["bytes", "text", "nested-map", "megabyte"],
)
def test_a_message_is_received_unchanged(
    pair: tuple[JmsSource, JmsSink], address: str, payload: Payload
) -> None:
    source, sink = pair
    assert send(sink, Message(address, payload, PERSISTENT)) == [ACCEPTED]
    (got,) = collect(source, 1)

    assert (got.address, got.payload) == (address, payload)


@of_ems
def test_a_wildcard_does_not_select_its_parent(pair: tuple[JmsSource, JmsSink]) -> None:
    source, sink = pair
    send(sink, Message(ROOT, b"", PERSISTENT))

    assert source.receive(QUIET) is None
    assert source.counts["unwanted"] == 0  # EMS did not deliver it


def test_a_reserved_name_of_ems_is_refused(pair: tuple[JmsSource, JmsSink]) -> None:
    _, sink = pair
    (refused,) = send(sink, Message("$sys.x", b"", PERSISTENT))

    assert refused.outcome is Outcome.REJECTED


def test_headers_and_properties_of_every_type_are_received_unchanged(
    pair: tuple[JmsSource, JmsSink],
) -> None:
    source, sink = pair
    properties: dict[str, Value] = {
        "flag": True, "byte": JavaByte(-1), "short": JavaShort(300), "int": 70_000,
        "long": JavaLong(1), "float": JavaFloat(0.5), "double": 0.1, "text": "x", "with-dash": 1,
        "bytes": b"\0", "JMSType": "kind",
    }  # fmt: skip
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE,
        priority=7,
        correlation_id="c" * 4_096,
        reply_to=f"queue:{ROOT}.answers",
        content_type="text/plain",
        origin=("one/r",),
        properties=properties,
    )
    assert send(sink, Message(f"{ROOT}.a", b"x", headers)) == [ACCEPTED]
    (got,) = collect(source, 1)

    kept = {name: got.headers.properties[name] for name in properties}
    assert kept == properties
    assert {n: type(v) for n, v in kept.items()} == {n: type(v) for n, v in properties.items()}
    assert (got.headers.priority, got.headers.reply_to) == (7, headers.reply_to)
    assert (got.headers.correlation_id, got.headers.origin) == (headers.correlation_id, ("one/r",))
    assert got.headers.source_id is not None


@pytest.mark.parametrize(
    "payload", [{"stream": [1, "x", b"y"]}, b"", ""], ids=["stream", "none", "null"]
)
def test_the_type_of_other_bodies_is_kept_in_a_property(
    pair: tuple[JmsSource, JmsSink], payload: Payload, request: pytest.FixtureRequest
) -> None:
    source, sink = pair
    mark = request.node.callspec.id
    send(sink, Message(f"{ROOT}.a", payload, Headers(properties={"jms.body": mark})))
    (got,) = collect(source, 1)

    assert (got.payload, got.headers.properties["jms.body"]) == (payload, mark)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"{ROOT}.{'x' * 127}.{'y' * 104}", id="245-characters"),
        pytest.param(".".join([ROOT, *["ab"] * 60, "a", "b"]), id="196-characters-in-64-elements"),
        pytest.param(f"{ROOT}.with blank.and,comma?x=1", id="odd-characters"),
    ],
)
@of_ems
def test_a_name_within_the_limits_is_accepted(pair: tuple[JmsSource, JmsSink], name: str) -> None:
    source, sink = pair
    assert send(sink, Message(name, b"x", PERSISTENT)) == [ACCEPTED]

    assert [message.address for message in collect(source, 1)] == [name]


@of_ems
@pytest.mark.parametrize("name", [f"{ROOT}..a", f"{ROOT}.{'x' * 250}", "$gateway"])
def test_the_server_refuses_the_names_that_the_dialect_refuses(name: str) -> None:
    """With the rules of another dialect the name reaches the server."""
    with opened(sink := open_sink(replace(SETTINGS, dialects=("ibm",)))):
        before, refused, after = send(
            sink,
            Message(f"{ROOT}.a", b"", PERSISTENT),
            Message(name, b"", PERSISTENT),
            Message(f"{ROOT}.a", b"", PERSISTENT),
        )

    assert (before, after) == (ACCEPTED, ACCEPTED)
    assert refused.outcome is Outcome.REJECTED


def test_a_selector_is_evaluated_by_the_server(pair: tuple[JmsSource, JmsSink]) -> None:
    _, sink = pair
    chosen = replace(SETTINGS, selector="colour = 'red'")
    with opened(source := open_source(chosen, [Subscription(f"{ROOT}.colours")])):
        for colour in ("blue", "red", "green"):
            send(sink, Message(f"{ROOT}.colours", colour, Headers(properties={"colour": colour})))

        assert [message.payload for message in collect(source, 1)] == ["red"]
        assert source.receive(QUIET) is None


def test_a_durable_wildcard_subscription_keeps_messages_while_disconnected() -> None:
    settings = replace(SETTINGS, client_id="gateway-test", durable="gateway-test")
    patterns = [Subscription(f"{ROOT}.kept.>")]
    with opened(source := open_source(settings, patterns)):
        drain(source)
    with opened(sink := open_sink(SETTINGS)):
        send(sink, *(Message(f"{ROOT}.kept.a", str(i).encode(), PERSISTENT) for i in range(10)))
    with opened(source := open_source(settings, patterns)):
        got = collect(source, 10)
    connection = connect(settings, open_library(settings), settings.client_id)
    try:
        connection.connection.createSession(False, 1).unsubscribe(jvm.text("gateway-test"))
    finally:
        connection.close(5)

    assert [message.payload for message in got] == [str(i).encode() for i in range(10)]


@pytest.mark.parametrize("acknowledge", ["explicit", "client", "transacted"])
def test_unsettled_messages_are_redelivered_and_marked(acknowledge: str) -> None:
    queue = f"queue:{ROOT}.again.{acknowledge}"
    settings = replace(SETTINGS, acknowledge=acknowledge, batch=5)
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    with opened(source, sink):
        drain(source)
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(10)))
        first = receive(source)
        first.settle([ACCEPTED] * len(first.messages))
        settled = len(first.messages)
        until(lambda: source.receive(0) is not None, "what stays unsettled")
    with opened(source):
        left = collect(source, 10 - settled)

    assert [m.payload for m in left] == [str(i).encode() for i in range(settled, 10)]
    assert left[0].headers.redelivered


def test_a_request_is_answered_through_a_temporary_queue(
    pair: tuple[JmsSource, JmsSink],
) -> None:
    source, sink = pair
    connection = connect(SETTINGS, open_library(SETTINGS), "")
    connection.connection.start()
    try:
        session = connection.connection.createSession(False, 1)
        answers = session.createTemporaryQueue()
        request = session.createTextMessage("?")
        request.setJMSReplyTo(answers)
        session.createProducer(session.createTopic(f"{ROOT}.asked")).send(request)
        (got,) = collect(source, 1)
        assert got.headers.reply_to is not None
        assert send(sink, Message(got.headers.reply_to, "!")) == [ACCEPTED]

        assert str(session.createConsumer(answers).receive(5_000).getText()) == "!"
    finally:
        connection.close(5)


def test_a_message_marked_as_imported_is_not_sent_back(pair: tuple[JmsSource, JmsSink]) -> None:
    """The test sets the mark; a server that imports from Rendezvous sets it itself."""
    source, sink = pair
    connection = connect(SETTINGS, open_library(SETTINGS), "")
    try:
        session = connection.connection.createSession(False, 1)
        imported = session.createTextMessage("x")
        imported.setBooleanProperty("JMS_TIBCO_IMPORTED", True)
        session.createProducer(session.createTopic(f"{ROOT}.in")).send(imported)
        (got,) = collect(source, 1)
        (refused,) = send(sink, got)
    finally:
        connection.close(5)

    assert refused.rule == "imported-loop"


@pytest.mark.parametrize(
    "delivery", ["persistent", "non_persistent", pytest.param("reliable", marks=of_ems)]
)
@pytest.mark.parametrize(
    "acknowledge",
    ["explicit", pytest.param("explicit_lazy", marks=of_ems), "client", "transacted"],
)
def test_settled_messages_are_not_redelivered(delivery: str, acknowledge: str) -> None:
    queue = f"queue:{ROOT}.{acknowledge}"
    settings = replace(SETTINGS, delivery=delivery, acknowledge=acknowledge)
    source, sink = open_source(settings, [Subscription(queue)]), open_sink(settings)
    with opened(source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(100)))
        assert len(collect(source, 100)) == 100
    with opened(source):
        assert source.receive(QUIET) is None
