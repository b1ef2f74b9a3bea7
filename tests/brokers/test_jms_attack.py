"""Hostile messages and hostile brokers against the JMS endpoint: it neither stops nor grows.

The messages come from an ActiveMQ client that writes their bytes itself, through a real ActiveMQ.
"""

from __future__ import annotations

import json
import ssl
import struct
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import cast

import jpype
import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import JmsSource, jvm, open_source
from gateway.endpoints.jms.addresses import TOPIC
from gateway.endpoints.jms.connection import connect, open_library
from gateway.endpoints.jms.connection_factory import open_factory
from gateway.endpoints.jms.jvm import find_jars
from gateway.endpoints.jms.message_reader import BatchReader, DrainedBatch
from gateway.endpoints.jms.property_names import decode_property_name
from gateway.endpoints.jms.subscription_filter import SubscriptionFilter
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.message import Message
from gateway.trial.brokers.activemq import FACTORY, ActiveMq, client_jars
from tests.brokers.hostile_servers import (
    BLOCK,
    Behaviour,
    close,
    keep_silent,
    negotiated,
    noise,
    openwire_frame,
    openwire_info,
    openwire_text,
    relaying,
    say,
    say_for_ever,
    serving,
    tls_relaying,
)
from tests.brokers.test_mqtt_tls import make_certificate, openssl
from tests.endpoints.exchange import QUIET, collect, opened
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker

MEBIBYTE = 1 << 20
HUGE = b"\x7f\xff\xff\xff"  # as a length or a count
ROOT = Path(__file__).parents[2]
PASSWORD = "the-secret-word"  # noqa: S105  # for a broker of this test
STORE_PASSWORD = "trusted"  # noqa: S105  # as above
ANSWER_CHECK = "org/apache/activemq/openwire/OpenWireUtil.class"
WHOLE_ANSWERS = 400  # bytes with which a connection may be open; paths of the broker add to them
TOLD = "NotConnectedError: victim: "
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
    ("reason", "make"), [pytest.param(*row[1:], id=row[0]) for row in UNREADABLE]
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
    """ActiveMQ refuses most of them itself: the library's consumer is replaced by one of ours."""
    messages = [publisher.text("before"), publisher.text("kept"), publisher.text("after")]
    for each in messages:
        each.setDestination(publisher.session.createTopic("t"))
        each.beforeMarshall(None)
    messages[1].setMarshalledProperties(publisher.sequence(marshalled))

    drained = read(drain(publisher, messages))

    before, hostile, after = drained.messages
    assert (before.payload, hostile.payload, after.payload) == ("before", "kept", "after")
    assert hostile.headers.properties.keys() == {"jms.error"}
    assert reason in str(hostile.headers.properties["jms.error"])
    assert drained.unreadable == 1


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


def read(data: bytes) -> DrainedBatch:
    accepted = SubscriptionFilter([(TOPIC, "t")])
    return BatchReader(accepted, TOPIC, keep_temporary=True).read(data)


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


def test_a_body_just_below_the_limit_arrives(
    activemq: ActiveMq, publisher: Publisher, topic: str
) -> None:
    largest = jvm.max_heap() // 8 - 64
    source = open_source(activemq.settings(prefetch=1), [Subscription(topic)])
    with opened(source):
        for make in (publisher.raw("Bytes", bytes(largest)), publisher.text("x" * largest)):
            hostile = exchange(source, publisher, topic, make)
            assert len(hostile.payload) == largest


class Victim:
    """A process that opens the endpoint with the settings it gets.

    Mutable: it is started again after its end.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, url: str, **facts: object) -> dict[str, dict[str, object]]:
        """Return what a source and a sink with these settings do; fail if the process ends."""
        if self._process is None:
            self._process = subprocess.Popen(  # this interpreter
                [sys.executable, "-m", "tests.brokers.jms_victim"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=ROOT,
            )
        settings = {
            "urls": [url],
            "connect_timeout": 1.0,
            "answer_timeout": 1.0,
            "close_timeout": 0.5,
            "username": "gateway",
            "password": PASSWORD,
        }
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings | facts) + "\n")
        process.stdin.flush()
        timer = threading.Timer(2 * PATIENCE, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        assert PASSWORD not in line
        assert line.startswith("{"), f"{line}, {process.poll()}"
        found: dict[str, dict[str, object]] = json.loads(line)
        return found

    def code(self) -> int:
        """Wait for the end of the process, and return its code."""
        assert self._process is not None
        self._process.communicate(timeout=PATIENCE)
        return self._process.returncode

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    found = Victim()
    yield found
    found.stop()


def check_refused(found: dict[str, dict[str, object]], *reasons: str) -> None:
    for side in ("source", "sink"):
        told = str(found[side]["told"])
        assert told.startswith(TOLD), told
        assert not reasons or any(each in told for each in reasons), told


HOSTILE = [
    pytest.param(close, id="closes"),
    pytest.param(say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), id="http"),
    pytest.param(say_for_ever(b"\xff" * BLOCK), id="ones"),
    pytest.param(say_for_ever(noise(1)), id="noise"),
    pytest.param(negotiated(close), id="closes-later"),
    pytest.param(negotiated(say_for_ever(noise(2))), id="noise-later"),
]
SILENT = [
    pytest.param(negotiated(keep_silent), id="silent-later"),
    pytest.param(negotiated(say_for_ever(bytes(BLOCK))), id="zeros-later"),
    pytest.param(keep_silent, id="silent", marks=pytest.mark.nightly),
    pytest.param(say_for_ever(bytes(BLOCK)), id="zeros", marks=pytest.mark.nightly),
    pytest.param(
        negotiated(say_for_ever(b"\0\0\0\x07\x0a\0\0\0\0\0\0" * 100)), id="keeps-alive-for-ever"
    ),
]


@pytest.mark.parametrize("behave", HOSTILE)
def test_a_server_that_is_no_broker_is_refused(victim: Victim, behave: Behaviour) -> None:
    with serving(behave) as port:
        check_refused(victim.ask(f"tcp://127.0.0.1:{port}"))


@pytest.mark.parametrize("behave", SILENT)
def test_a_silent_server_is_given_up(victim: Victim, behave: Behaviour) -> None:
    with serving(behave) as port:
        found = victim.ask(f"tcp://127.0.0.1:{port}")

    check_refused(found, "did not answer within 1 s")
    assert cast(int, found["megabytes"]) < 256


def test_a_frame_of_two_gigabytes_ends_the_connection_at_once(victim: Victim) -> None:
    with serving(say(openwire_info() + HUGE)) as port:
        found = victim.ask(f"tcp://127.0.0.1:{port}")

    check_refused(
        found,
        "larger than max allowed 127 MB",
        "Disposed due to prior exception",
        "channel has already failed",  # the thread that sends learns it first
    )


@pytest.mark.parametrize("kind", ["java.io.FileOutputStream", "java.io.FileWriter"])
def test_a_server_makes_no_object_of_a_class_that_it_names(
    victim: Victim, tmp_path: Path, kind: str
) -> None:
    """The attack of CVE-2023-46604; these classes create the file of their argument."""
    planted = tmp_path / "planted"
    texts = b"".join(b"\x01" + openwire_text(each) for each in (kind, str(planted)))
    answer = openwire_frame(b"\x1f\0\0\0\x01\0\0\0\0\x01\x01" + texts)  # ExceptionResponse
    with serving(say(openwire_info() + answer)) as port:
        check_refused(victim.ask(f"tcp://127.0.0.1:{port}"))

    assert not planted.exists()


def test_a_library_that_makes_them_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = tmp_path / "activemq-client-old.jar"
    jars = []
    for jar in find_jars(client_jars()):
        with zipfile.ZipFile(jar) as new:
            if ANSWER_CHECK not in new.namelist():
                jars.append(jar)
                continue
            with zipfile.ZipFile(old, "w") as stripped:
                for name in set(new.namelist()) - {ANSWER_CHECK}:
                    stripped.writestr(name, new.read(name))
            jars.append(str(old))

    for classpath, warned in ((client_jars(), False), (tuple(jars), True)):
        caplog.clear()
        settings = JmsSettings(name="plant", classpath=classpath, factory=FACTORY)
        open_factory(settings, open_library(settings), "tcp://127.0.0.1:1")
        assert ("plant: the ActiveMQ library lets a server run code" in caplog.text) is warned


def test_a_length_before_the_login_ends_the_process_with_code_3() -> None:
    """A library without the check of lengths; its supervisor starts the gateway again."""
    exhausted = Victim()
    with (
        serving(say(openwire_info(HUGE))) as port,
        pytest.raises(AssertionError, match="OutOfMemoryError"),
    ):
        exhausted.ask(f"tcp://127.0.0.1:{port}")

    assert exhausted.code() == 3


@pytest.mark.parametrize("frozen", [False, True], ids=["closes", "freezes"])
@pytest.mark.parametrize(
    "limit", [0, 300, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20, 700, 20))]
)
def test_a_broker_that_breaks_off_on_connecting_is_never_open(
    activemq: ActiveMq, victim: Victim, limit: int, frozen: bool
) -> None:
    with serving(relaying(activemq.port, limit, frozen=frozen)) as port:
        found = victim.ask(f"tcp://127.0.0.1:{port}")

    for side in ("source", "sink"):
        told = str(found[side]["told"])
        assert told.startswith(TOLD) or (told == "open" and limit > WHOLE_ANSWERS), told


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "stranger", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=DNS:localhost")
    make_certificate(folder, "elsewhere", "authority", "subjectAltName=DNS:other.example")
    make_certificate(folder, "foreign", "stranger", "subjectAltName=DNS:localhost")
    make_certificate(folder, "expired", "authority", "subjectAltName=DNS:localhost")
    openssl(
        "x509",
        "-req",
        "-in",
        folder / "expired.csr",
        "-CA",
        folder / "authority.pem",
        "-CAkey",
        folder / "authority.key",
        "-days",
        "-1",
        "-extfile",
        folder / "expired.ext",
        "-out",
        folder / "expired.pem",
    )
    subprocess.run(  # noqa: S603
        [  # noqa: S607
            "keytool",
            "-importcert",
            "-noprompt",
            "-file",
            folder / "authority.pem",
            "-keystore",
            folder / "trusted.p12",
            "-storetype",
            "PKCS12",
            "-storepass",
            STORE_PASSWORD,
        ],
        check=True,
        capture_output=True,
    )
    return folder


def over_tls(victim: Victim, port: int, certificates: Path) -> dict[str, dict[str, object]]:
    return victim.ask(
        f"ssl://localhost:{port}",
        factory="org.apache.activemq.ActiveMQSslConnectionFactory",
        properties=[
            f"trustStore={certificates}/trusted.p12",
            f"trustStorePassword={STORE_PASSWORD}",
        ],
        connect_timeout=5.0,
        answer_timeout=10.0,
    )


def tls_context(certificates: Path, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    return context


def test_a_broker_with_a_trusted_certificate_is_used(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    with serving(tls_relaying(activemq.port, tls_context(certificates, "broker"))) as port:
        found = over_tls(victim, port, certificates)

    assert [found[side]["told"] for side in ("source", "sink")] == ["open", "open"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("foreign", "unable to find valid certification path", id="wrong-authority"),
        pytest.param("expired", "validity check failed", id="expired"),
        pytest.param("elsewhere", "No subject alternative DNS name matching", id="wrong-name"),
    ],
)
def test_a_broker_with_another_certificate_is_refused(
    activemq: ActiveMq, victim: Victim, certificates: Path, name: str, reason: str
) -> None:
    with serving(tls_relaying(activemq.port, tls_context(certificates, name))) as port:
        # After the failed handshake, the library may report the closed connection instead.
        check_refused(over_tls(victim, port, certificates), reason, "has closed", "already failed")


def test_tls_older_than_1_2_is_refused(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    context = tls_context(certificates, "broker")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving(tls_relaying(activemq.port, context)) as port:
        check_refused(over_tls(victim, port, certificates))


def test_tls_and_plain_text_do_not_meet(
    activemq: ActiveMq, victim: Victim, certificates: Path
) -> None:
    check_refused(over_tls(victim, activemq.port, certificates))
    with serving(tls_relaying(activemq.port, tls_context(certificates, "broker"))) as port:
        check_refused(victim.ask(f"tcp://localhost:{port}"))


@pytest.mark.nightly  # it waits for half a minute twice
def test_a_server_that_is_silent_in_the_handshake_is_given_up(
    victim: Victim, certificates: Path
) -> None:
    with serving(keep_silent) as port:
        check_refused(over_tls(victim, port, certificates))
