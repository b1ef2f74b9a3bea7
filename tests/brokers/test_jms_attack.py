"""Hostile messages and hostile brokers against the JMS endpoint: it neither stops nor grows.

The messages come from an ActiveMQ client that writes their bytes itself, through a real ActiveMQ.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import count

import jpype
import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSource, jvm, open_source
from gateway.endpoints.jms.addresses import TOPIC
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.endpoints.jms.message_reader import BatchReader
from gateway.endpoints.jms.property_names import decode_property_name
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.message import Message
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.test_jms_hostile_server import HUGE
from tests.endpoints.exchange import QUIET, collect, opened

pytestmark = pytest.mark.broker
MEBIBYTE = 1 << 20
_numbers = count()


class Publisher:
    """Another program at the broker, which writes the bytes of its messages itself.

    Mutable: it numbers its messages.
    """

    def __init__(self, connection: jvm.Java, library: jvm.JmsLibrary) -> None:
        self.session = connection.createSession(False, 1)
        self.library = library
        self.connection = connection
        session = self.command("SessionInfo")(connection.getConnectionInfo(), 77)
        self._producer = self.command("ProducerInfo")(session, 1)
        for each in (session, self._producer):
            connection.syncSendPacket(each)
        self._numbers = count(1)

    def command(self, name: str) -> jvm.Java:
        return self.library.find(f"org.apache.activemq.command.{name}")

    def sequence(self, data: bytes) -> jvm.Java:
        return self.library.find("org.apache.activemq.util.ByteSequence")(jvm.byte_array(data))

    def publish(self, topic: str, message: jvm.Java) -> None:
        """Send the message as it is; the client's own producer would decode its properties."""
        message.setDestination(self.session.createTopic(topic))
        message.setProducerId(self._producer.getProducerId())
        message.setMessageId(self.command("MessageId")(self._producer, next(self._numbers)))
        self.connection.syncSendPacket(message)

    def text(self, content: str = "x") -> jvm.Java:
        return self.session.createTextMessage(content)

    def raw(self, kind: str, content: bytes, *, compressed: bool = False) -> jvm.Java:
        """Return a message of a kind with these bytes as its body."""
        message = getattr(self.session, f"create{kind}Message")()
        if kind in {"Bytes", "Stream"}:
            message.reset()  # nothing is written over the content then
        message.setContent(self.sequence(content))
        message.setCompressed(compressed)
        return message

    def with_properties(self, marshalled: bytes) -> jvm.Java:
        message = self.text("kept")
        message.setMarshalledProperties(self.sequence(marshalled))
        return message


@pytest.fixture(scope="module")
def publisher(session_activemq: ActiveMq) -> Iterator[Publisher]:
    settings = session_activemq.settings()
    library = open_library(settings)
    connection = connect(settings, library, "")
    connection.connection.start()
    yield Publisher(connection.connection, library)
    connection.close(5)


@pytest.fixture
def topic() -> str:
    return f"attack{next(_numbers)}"


def utf(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text


def entry(name: bytes, value: bytes) -> bytes:
    return utf(name) + value


def marshalled_map(*entries: bytes, claimed: int | None = None) -> bytes:
    return struct.pack(">i", len(entries) if claimed is None else claimed) + b"".join(entries)


def nested(depth: int, kind: str = "map") -> bytes:
    """Return the value of a map or a list that holds itself `depth` times."""
    level = b"\x0b" + struct.pack(">i", 1) + utf(b"a") if kind == "map" else b"\x0c\0\0\0\1"
    return level * depth + b"\0"


def inflating(size: int, start: bytes = b"") -> bytes:
    """Return a compressed block of `size` bytes and more."""
    packer = zlib.compressobj(9)
    block = b"a" * MEBIBYTE
    return b"".join(
        [
            packer.compress(start),
            *(packer.compress(block) for _ in range(size // MEBIBYTE)),
            packer.flush(),
        ]
    )


Make = Callable[[Publisher], jvm.Java]
LARGE = {"map-bomb", "stream-bomb", "bytes-bomb"}  # a second each
UNREADABLE: list[tuple[str, str, Make]] = [  # id, part of the reason, message
    ("text-length", "a length of 2147483647", lambda p: p.raw("Text", HUGE)),
    ("text-length-negative", "a length of -5", lambda p: p.raw("Text", struct.pack(">i", -5))),
    ("text-cut", "a length of", lambda p: p.raw("Text", b"\0\0")),
    ("map-count", "a count of 2147483647", lambda p: p.raw("Map", HUGE + b"\0\1a")),
    (
        "map-nested",
        "nested deeper",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", nested(100_000)))),
    ),
    (
        "map-lists",
        "nested deeper",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", nested(100_000, "list")))),
    ),
    (
        "map-just-too-deep",
        "nested deeper",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", nested(65)))),
    ),
    (
        "map-list-count",
        "a count of",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", b"\x0c" + HUGE))),
    ),
    (
        "map-big-string",
        "a length of",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", b"\x0d" + HUGE))),
    ),
    (
        "map-bytes",
        "a length of",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", b"\x0a" + HUGE))),
    ),
    (
        "map-unknown-type",
        "unknown type 99",
        lambda p: p.raw("Map", marshalled_map(entry(b"a", b"\x63"))),
    ),
    ("stream-bytes", "a length of 2147483647", lambda p: p.raw("Stream", b"\x0a" + HUGE)),
    ("stream-big-string", "a length of 2147483647", lambda p: p.raw("Stream", b"\x0d" + HUGE)),
    (
        "text-bomb",
        "inflates to more than",
        lambda p: p.raw("Text", inflating(200 * MEBIBYTE), compressed=True),
    ),
    (
        "map-bomb",
        "inflates to more than",
        lambda p: p.raw("Map", inflating(200 * MEBIBYTE), compressed=True),
    ),
    (
        "stream-bomb",
        "inflates to more than",
        lambda p: p.raw("Stream", inflating(200 * MEBIBYTE), compressed=True),
    ),
    (
        "bytes-bomb",
        "inflates to more than",
        lambda p: p.raw("Bytes", b"\0\0\0\5" + inflating(200 * MEBIBYTE), compressed=True),
    ),
    (
        "bytes-bomb-claim",
        "is 2147483647 bytes",
        lambda p: p.raw("Bytes", HUGE + zlib.compress(b"x"), compressed=True),
    ),
    ("bytes-no-deflate", "", lambda p: p.raw("Bytes", b"\0\0\0\5garbage", compressed=True)),
    (
        "text-inflates-to-a-claim",
        "a length of",
        lambda p: p.raw("Text", zlib.compress(HUGE), compressed=True),
    ),
    ("bytes-large", "an eighth of Java's heap", lambda p: p.raw("Bytes", bytes(33 * MEBIBYTE))),
    ("text-large", "an eighth of Java's heap", lambda p: p.text("x" * (33 * MEBIBYTE))),
]


def exchange(source: JmsSource, publisher: Publisher, topic: str, message: jvm.Java) -> Message:
    """Send the message between two others, and return it; all three arrive in order."""
    publisher.publish(topic, publisher.text("before"))
    publisher.publish(topic, message)
    publisher.publish(topic, publisher.text("after"))
    before, hostile, after = collect(source, 3)
    assert (before.payload, after.payload) == ("before", "after")
    assert source.receive(QUIET) is None
    return hostile


@pytest.mark.parametrize("acknowledge", ["client"])
@pytest.mark.parametrize(
    ("reason", "make"),
    [
        pytest.param(*row[1:], id=row[0], marks=pytest.mark.nightly if row[0] in LARGE else ())
        for row in UNREADABLE
    ],
)
def test_a_hostile_body_spoils_only_its_message(
    activemq: ActiveMq, publisher: Publisher, topic: str, reason: str, make: Make, acknowledge: str
) -> None:
    source = open_source(activemq.settings(acknowledge=acknowledge), [Subscription(topic)])
    with opened(source):
        hostile = exchange(source, publisher, topic, make(publisher))

    assert hostile.payload == b""
    assert hostile.headers.properties["jms.body"] == "unreadable"
    assert reason in str(hostile.headers.properties["jms.error"])
    assert source.counts["unreadable"] == 1


PROPERTIES: list[tuple[str, str, bytes]] = [  # id, part of the reason, marshalled properties
    ("count", "a count of 2147483647", HUGE),
    ("nested", "nested deeper", marshalled_map(entry(b"a", nested(100_000)))),
    ("just-too-deep", "nested deeper", marshalled_map(entry(b"a", nested(65)))),
    ("garbage", "", b"\xff\xfe\xfd"),
    ("big-string", "a length of", marshalled_map(entry(b"a", b"\x0d" + HUGE))),
    ("name-cut", "a length of", marshalled_map(b"\xff\xffab")),
    ("name-not-utf", "", marshalled_map(entry(b"\xff\xff\xff", b"\0"))),
]


@pytest.mark.parametrize(
    ("reason", "marshalled"), [pytest.param(*row[1:], id=row[0]) for row in PROPERTIES]
)
def test_hostile_properties_are_left_out(
    publisher: Publisher, reason: str, marshalled: bytes
) -> None:
    """ActiveMQ refuses most of them itself: our consumer stands in for the library's."""
    messages = [publisher.text("before"), publisher.text("kept"), publisher.text("after")]
    for each in messages:
        each.setDestination(publisher.session.createTopic("t"))
        each.beforeMarshall(None)
    messages[1].setMarshalledProperties(publisher.sequence(marshalled))

    drained = BatchReader(JmsSettings(), [(TOPIC, "t")]).read(drain(publisher, messages))

    before, hostile, after = drained.messages
    assert (before.payload, hostile.payload, after.payload) == ("before", "kept", "after")
    assert hostile.headers.properties.keys() == {"jms.error"}
    assert reason in str(hostile.headers.properties["jms.error"])
    assert drained.counts["unreadable"] == 1


def drain(publisher: Publisher, messages: list[jvm.Java]) -> bytes:
    library, waiting = publisher.library, iter(messages)
    consumer = jpype.JProxy(
        library.jms("MessageConsumer"), dict={"receiveNoWait": lambda: next(waiting, None)}
    )
    monitor = library.helper("ConnectionMonitor")(publisher.connection)
    receiver = library.helper("Receiver")(
        publisher.session, jvm.java_list([consumer]), 0, monitor, False, MEBIBYTE
    )
    return bytes(receiver.drain(10, MEBIBYTE, 100))


def with_headers(publisher: Publisher, **changes: object) -> jvm.Java:
    message = publisher.text("x")
    for name, value in changes.items():
        getattr(message, f"set{name}")(value)
    return message


def destination(publisher: Publisher, name: str) -> jvm.Java:
    return publisher.command("ActiveMQQueue")(name)


HEADERS: list[tuple[str, Make, dict[str, object]]] = [  # id, message, fields that it must have
    ("expiration-negative", lambda p: with_headers(p, Expiration=-5), {"expiry": -5_000}),
    ("timestamp-huge", lambda p: with_headers(p, Timestamp=2**63 - 1), {"time": None}),
    ("expiration-huge", lambda p: with_headers(p, Expiration=2**63 - 1), {"expiry": None}),
    ("timestamp-lowest", lambda p: with_headers(p, Timestamp=-(2**63)), {"time": None}),
    ("type-long", lambda p: with_headers(p, Type="t" * 32_000), {}),
    (
        "correlation-long",
        lambda p: with_headers(p, CorrelationId="c" * 32_000),
        {"correlation_id": "c" * 32_000},
    ),
    (
        "correlation-bytes",
        lambda p: with_headers(p, JMSCorrelationIDAsBytes=jvm.byte_array(b"\xff\0\xfe")),
        {"correlation_id": "\ufffd\0\ufffd"},
    ),
    (
        "reply-composite",
        lambda p: with_headers(p, ReplyTo=destination(p, "a,topic://b")),
        {"reply_to": "queue:a,topic://b"},
    ),
    (
        "reply-long",
        lambda p: with_headers(p, ReplyTo=destination(p, "r" * 32_000)),
        {"reply_to": f"queue:{'r' * 32_000}"},
    ),
    (
        "reply-foreign-temporary",
        lambda p: with_headers(p, ReplyTo=p.command("ActiveMQTempQueue")("ID:nobody:1")),
        {"reply_to": "tempqueue:ID:nobody:1"},
    ),
    (
        "reply-controls",
        lambda p: with_headers(p, ReplyTo=destination(p, "a\x1b]52;\n\0b")),
        {"reply_to": "queue:a\x1b]52;\n\0b"},
    ),
    ("priority", lambda p: with_headers(p, Priority=127), {"priority": 9}),
    ("group", lambda p: with_headers(p, GroupID="g" * 32_000, GroupSequence=-1), {}),
]


@pytest.mark.parametrize(("make", "fields"), [pytest.param(*row[1:], id=row[0]) for row in HEADERS])
def test_hostile_headers_arrive(
    activemq: ActiveMq, publisher: Publisher, topic: str, make: Make, fields: dict[str, object]
) -> None:
    source = open_source(activemq.settings(), [Subscription(topic)])
    with opened(source):
        hostile = exchange(source, publisher, topic, make(publisher))

    assert hostile.payload == "x"
    assert {name: getattr(hostile.headers, name) for name in fields} == fields


def test_many_properties_with_names_of_every_character_arrive(
    activemq: ActiveMq, publisher: Publisher, topic: str
) -> None:
    characters = [*map(chr, range(0x300)), *"\u2028\u202e\ud7ff\ue000\ufeff\uffff"]
    names = [f"n{each}" for each in characters] + [f"m{number}" for number in range(20_000)]
    names += ["x" * 16_000, "gateway_unknown", "JMSXDeliveryCount", "_x41_", "AND"]
    message = publisher.text("x")
    table = publisher.library.find("java.util.HashMap")()
    for number, each in enumerate(names):
        table.put(jvm.text(each), jpype.JInt(number))
    message.setProperties(table)
    source = open_source(activemq.settings(), [Subscription(topic)])
    with opened(source):
        hostile = exchange(source, publisher, topic, message)

    expected = {each: number for number, each in enumerate(names)}
    del expected["JMSXDeliveryCount"]
    del expected["gateway_unknown"]
    assert dict(hostile.headers.properties) == {
        decode_property_name(each): number for each, number in expected.items()
    }


@pytest.mark.nightly
def test_a_body_just_below_the_limit_arrives(
    activemq: ActiveMq, publisher: Publisher, topic: str
) -> None:
    largest = jvm.max_heap() // 8 - 64
    source = open_source(activemq.settings(prefetch=1), [Subscription(topic)])
    with opened(source):
        for make in (publisher.raw("Bytes", bytes(largest)), publisher.text("x" * largest)):
            hostile = exchange(source, publisher, topic, make)
            assert len(hostile.payload) == largest
