"""Behaviours of a hostile MQTT broker: an honest script, with one answer changed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import repeat
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.wire.mqtt.packet_fields import encode_length
from tests.brokers import servers
from tests.brokers.hostile_servers import BLOCK, Behaviour, close, noise, say, say_for_ever
from tests.brokers.mosquitto import OPEN, Mosquitto
from tests.hostile.behaviours import Cost, Hostile, HostileWire

CONNECT, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PINGREQ = 1, 3, 8, 10, 12  # types of a client's packets
MIB: Final = 1 << 20
Parts: TypeAlias = Iterable[bytes]
Answer: TypeAlias = Callable[[bytes], Parts]  # by the body of the packet that is answered
_HUGE: Final = encode_length(268_435_455)
_BLOCKS: Final = repeat(bytes(MIB))


def packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + encode_length(len(body)) + body


def text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def once(*parts: bytes) -> Answer:
    return lambda _body: parts


def packets(client: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the body of each packet that the client sends."""
    heard = b""
    while data := client.recv(BLOCK):
        heard += data
        while (found := _whole(heard)) is not None:
            start, stop = found
            yield heard[0] >> 4, heard[start:stop]
            heard = heard[stop:]


def _whole(data: bytes) -> tuple[int, int] | None:
    """Return start and end of the body of the first packet; None while it is not whole."""
    size = 0
    for at, byte in enumerate(data[1:5]):
        size |= (byte & 127) << 7 * at
        if byte < 128:  # the last byte of the length
            return (at + 2, at + 2 + size) if at + 2 + size <= len(data) else None
    return None


class Script:
    """The packets of one version, and behaviours that are made of them."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.none = b"\0" if version == "5" else b""  # no properties

    def welcome(self, properties: bytes = b"", *, reason: int = 0, flags: int = 0) -> bytes:
        size = encode_length(len(properties)) if self.none else b""
        return packet(0x20, bytes((flags, reason)) + size + properties)

    def grant(self, body: bytes, reasons: bytes = b"\2") -> bytes:
        """Grant the one filter of a SUBSCRIBE."""
        return packet(0x90, body[:2] + self.none + reasons)

    def publish(
        self, payload: bytes = b"1", topic: bytes = b"t/x", first: int = 0x30, packet_id: int = 0,
        properties: bytes = b"",
    ) -> bytes:  # fmt: skip
        number = packet_id.to_bytes(2, "big") if first & 6 else b""
        size = encode_length(len(properties)) if self.none else b""
        return packet(first, text(topic) + number + size + properties + payload)

    def broker(self, at: int, answer: Answer) -> Behaviour:
        """Be honest but for the `answer` to packets of the type `at`."""
        honest: dict[int, Answer] = {
            CONNECT: lambda _: [self.welcome()],
            SUBSCRIBE: lambda body: [self.grant(body)],
            UNSUBSCRIBE: lambda body: [packet(0xB0, body[:2] + self.none + self.none)],
            PUBLISH: self._acknowledge,
            PINGREQ: lambda _: [b"\xd0\0"],
        }

        def behave(client: socket.socket) -> None:
            for kind, body in packets(client):
                found = answer if kind == at else honest.get(kind, lambda _: [])
                for part in found(body):
                    client.sendall(part)

        return behave

    def _acknowledge(self, body: bytes) -> Parts:
        return [packet(0x40, packet_id(body))]

    def reading(self, name: str, *parts: bytes, then: Parts = ()) -> Hostile:
        """Grant the subscription, and send `parts` and then `then`: the connection is lost."""

        def answer(body: bytes) -> Iterator[bytes]:
            yield self.grant(body)
            yield from parts
            yield from then

        return Hostile(name, self.broker(SUBSCRIBE, answer), Cost.READING)

    def harmless(
        self, name: str, parts: Callable[[bytes], Parts], cost: Cost = Cost.NOTHING
    ) -> Hostile:
        """Grant the subscription, and send `parts` of its id, and an honest message."""

        def answer(body: bytes) -> Iterator[bytes]:
            yield self.grant(body)
            yield from parts(body[:2])
            yield self.publish(b"honest", first=0x32, packet_id=9)

        return Hostile(name, self.broker(SUBSCRIBE, answer), cost)

    def log_in(self, name: str, *parts: bytes, then: Parts = ()) -> Hostile:
        return Hostile(name, self.broker(CONNECT, lambda _: (*parts, *then)), Cost.LOG_IN)

    def log_in_flood(self, name: str, *parts: bytes, blocks: Parts = _BLOCKS) -> Hostile:
        def answer(_: bytes) -> Iterator[bytes]:
            yield from parts
            yield from blocks

        return Hostile(name, self.broker(CONNECT, answer), Cost.LOG_IN)

    def source(self, name: str, answer: Answer) -> Hostile:
        return Hostile(name, self.broker(SUBSCRIBE, answer), Cost.SOURCE)

    def sending(self, name: str, answer: Answer) -> Hostile:
        return Hostile(name, self.broker(PUBLISH, answer), Cost.SENDING)


def packet_id(body: bytes) -> bytes:
    """Return the packet id of a PUBLISH of QoS 1 or 2."""
    end = 2 + int.from_bytes(body[:2], "big")
    return body[end : end + 2]


def _unsettled(script: Script) -> Parts:
    """Return messages of QoS 1 for ever, whatever the client acknowledges."""
    return repeat(b"".join(script.publish(bytes(1 << 16), first=0x32, packet_id=n) for n in (1, 2)))


def _log_ins(script: Script) -> Iterator[Hostile]:
    yield Hostile("closes", close, Cost.LOG_IN)
    yield Hostile("another-protocol", say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Cost.LOG_IN)
    yield Hostile("ones", say_for_ever(b"\xff" * BLOCK), Cost.LOG_IN)
    yield Hostile("zeros", say_for_ever(bytes(BLOCK)), Cost.LOG_IN)
    yield Hostile("noise", say_for_ever(noise(1)), Cost.LOG_IN)
    yield script.log_in("silent")
    yield script.log_in("welcome-of-no-bytes", b"\x20\0")
    yield script.log_in("welcome-cut-off", b"\x20\1\0")
    yield script.log_in("welcome-refuses-255", script.welcome(reason=255))
    yield script.log_in("welcome-twice", script.welcome() * 2)
    yield script.log_in("grant-before-the-welcome", script.grant(b"\0\1"))
    yield script.log_in("end-before-the-welcome", b"\xe0\0")
    yield script.log_in("length-without-an-end", b"\x20" + b"\xff" * 100)
    yield script.log_in_flood("welcome-of-256-mib", b"\x20" + _HUGE)
    yield script.log_in_flood("pongs-before-the-welcome", blocks=repeat(b"\xd0\0" * BLOCK, 50))
    if script.version != "5":
        return
    many = b"\x26" + text(b"a" * 65_535) * 2
    for name, properties in [
        ("receive-maximum-0", b"\x21\0\0"),
        ("longest-packet-0", b"\x27\0\0\0\0"),
        ("qos-255", b"\x24\xff"),
        ("retain-7", b"\x25\7"),
        ("property-twice", b"\x21\0\7" * 2),
        ("unknown-property", b"\x7f\0"),
        ("property-of-a-publish", b"\x01\1"),
        ("properties-cut-off", b"\x21\0"),
        ("reason-longer-than-its-packet", b"\x1f\xff\xffx"),
    ]:
        yield script.log_in(name, script.welcome(properties))
    yield script.log_in("refused-in-many-words", script.welcome(many * 20, reason=0x88))
    reason = b"\x1f" + text(b"\xff\xfe\x1b")
    yield script.log_in("refused-in-no-utf-8", script.welcome(reason, reason=0x88))
    yield script.log_in("properties-longer-than-their-packet", b"\x20\4\0\0\x7f\0")
    yield script.log_in("challenge", packet(0xF0, b"\x18\0"))


def _sources(script: Script) -> Iterator[Hostile]:
    yield script.source("grants-nothing", lambda body: [script.grant(body, b"")])
    yield script.source("refuses", lambda body: [script.grant(body, b"\x80")])
    yield script.source("grants-qos-127", lambda body: [script.grant(body, b"\x7f")])
    yield script.source("grants-two-filters-of-one", lambda body: [script.grant(body, b"\1\1")])
    yield script.source("grants-another", lambda _: [script.grant(b"\xff\xff")])
    yield script.source("grants-nothing-in-time", lambda _: [])
    yield script.source("grant-cut-off", lambda _: [b"\x90\1\0"])
    yield script.source("grant-of-256-mib", lambda _: _flood(b"\x90" + _HUGE))
    yield script.source("connect-as-an-answer", lambda _: [b"\x10\0"])
    yield script.source("noise-as-an-answer", lambda _: [noise(2)])


def _flood(head: bytes) -> Iterator[bytes]:
    yield head
    yield from _BLOCKS


def _readings(script: Script) -> Iterator[Hostile]:
    reading, publish = script.reading, script.publish
    yield reading("qos-3", b"\x36\5\0\1t\0\1")
    yield reading("packet-of-no-type", b"\0\0")
    yield reading("challenge-later", b"\xf0\0")
    yield reading("welcome-later", script.welcome())
    yield reading("subscribes", b"\x82\6\0\1\0\1t\0")
    yield reading("publish-of-no-bytes", b"\x30\0")
    yield reading("topic-longer-than-its-packet", b"\x30\4\xff\xfft\0")
    yield reading("number-cut-off", b"\x32\4\0\1t\0")
    yield reading("receipt-of-one-byte", b"\x40\1\0")
    yield reading("release-of-no-bytes", b"\x62\0")
    yield reading("grant-of-no-bytes", b"\x90\0")
    yield reading("grants-again", script.grant(b"\0\1"))
    yield reading("refuses-later", script.grant(b"\0\1", b"\x80"))
    yield reading("refuses-the-count-again", script.grant(b"\0\2", b"\x80") * 2_000)
    yield reading("removal-of-one-byte", b"\xb0\1\0")
    yield reading("length-of-five-bytes", b"\x30\xff\xff\xff\xff\xff")
    yield reading("packet-of-no-message-of-256-mib", b"\x62" + _HUGE, then=_BLOCKS)
    yield reading("receipt-of-256-mib", b"\x40" + _HUGE, then=_BLOCKS)
    # Noise of other seeds begins with a long message, whose end is waited for.
    yield from (reading(f"noise-{seed}", noise(seed)) for seed in (3, 5))
    if script.version != "5":
        yield reading("end-in-3.1.1", b"\xe0\0")
        return
    yield reading("removal-without-reasons", b"\xb0\2\0\1")
    yield reading("end", b"\xe0\2\x8b\0")
    yield reading("end-for-another-client", b"\xe0\2\x8e\0")
    yield reading("end-cut-off", b"\xe0\3\0\5\x1f")
    yield reading("end-with-an-unknown-property", b"\xe0\4\0\2\x77\0")
    yield reading("end-with-a-property-three-times", b"\xe0\x08\0\6\x25\1\x25\1\x25\1")
    for name, properties in [
        ("alias", b"\x23\0\1"),
        ("unknown-property-of-a-message", b"\x7f\0"),
        ("property-of-a-welcome", b"\x21\0\1"),
        ("property-cut-off", b"\x02\0"),
        ("text-longer-than-its-properties", b"\x03\xff\xffx"),
        ("number-of-a-subscription-without-an-end", b"\x0b" + b"\xff" * 8),
    ]:
        yield reading(name, publish(properties=properties))
    yield reading("properties-longer-than-their-message", packet(0x30, text(b"t") + _HUGE + b"x"))
    size = encode_length(5 * MIB)
    yield reading("properties-of-5-mib", b"\x30" + _HUGE + text(b"t/x") + size, then=_BLOCKS)


def _huge(script: Script) -> Iterator[bytes]:
    """Yield a message of 256 MiB, in blocks."""
    head = script.publish(b"")[2:]
    yield b"\x30" + _HUGE + head
    left = 268_435_455 - len(head)
    while left:
        yield bytes(min(MIB, left))
        left -= min(MIB, left)


def _harmless(script: Script) -> Iterator[Hostile]:
    harmless, publish = script.harmless, script.publish
    yield harmless("honest", lambda _: [])
    for name, topic in [
        ("empty", b""), ("of-no-utf-8", b"\xff\xfe"), ("with-a-wildcard", b"t/#"),
        ("with-nul", b"t\0x"), ("of-other-levels", b"elsewhere"), ("of-64-kib", b"/" * 65_535),
    ]:  # fmt: skip
        yield harmless(f"topic-{name}", once(publish(topic=topic)))
    yield harmless(
        "500-topics-of-64-kib",
        lambda _: (publish(topic=b"%d" % n + b"/" * 65_500) for n in range(500)),
    )
    yield harmless("number-0", lambda _: [publish(first=0x32)])
    yield harmless("number-twice", lambda _: [publish(first=0x32, packet_id=7)] * 2)
    yield harmless("qos-2-of-one-number", lambda _: [publish(first=0x34, packet_id=7)] * 1_000)
    yield harmless("repeats-of-nothing", lambda _: [publish(first=0x3D, packet_id=7)] * 1_000)
    yield harmless("receipts-of-nothing", lambda _: repeat(b"\x40\2\0\1" * BLOCK, 4))
    yield harmless("releases-of-nothing", lambda _: repeat(b"\x62\2\0\1" * BLOCK, 4))
    yield harmless("message-of-256-mib", lambda _: _huge(script))
    yield harmless("message-one-byte-over-the-limit", lambda _: [publish(bytes(4 * MIB))])
    yield harmless("pongs", lambda _: repeat(b"\xd0\0" * BLOCK, 8))
    yield harmless("removals-of-nothing", lambda i: [packet(0xB0, i + script.none * 2)] * 10_000)
    yield harmless(
        "counts-of-dropped-messages",
        lambda _: (
            publish(b"%d" % (n << 40), b"$SYS/broker/publish/messages/dropped")
            for n in range(10_000)
        ),
    )
    yield harmless(
        "slices-of-one-byte",
        lambda _: (bytes((each,)) for each in publish(b"slow", topic=b"t/" + b"s" * 500)),
    )
    yield harmless("more-than-the-window", lambda _: _unsettled(script), Cost.ROOM)
    yield harmless(
        "more-than-the-window-of-qos-0",
        lambda _: repeat(publish(bytes(1 << 16)) * 16),
        Cost.ROOM,
    )
    if script.version == "5":
        for name, properties in [
            ("of-170000-properties", b"\x26\0\0\0\0" * 170_000),
            ("with-an-answer-to-a-wildcard", b"\x08" + text(b"a/#")),
            ("with-text-that-is-none", b"\x01\1"),
            ("that-has-expired", b"\x02\0\0\0\0"),
        ]:
            yield harmless(f"message-{name}", once(publish(b"\xff", properties=properties)))


def _sendings(script: Script) -> Iterator[Hostile]:
    sending = script.sending
    yield sending("silence", lambda _: [])
    yield sending("receipt-of-another", lambda _: [b"\x40\2\xff\xff"])
    yield sending("receipt-of-number-0", lambda _: [b"\x40\2\0\0"])
    yield sending("receipt-cut-off", lambda _: [b"\x40\1\0"])
    yield sending("receipt-of-qos-2", lambda body: [packet(0x50, packet_id(body))])
    yield sending("receipts-of-qos-2", lambda body: repeat(packet(0x50, packet_id(body)) * BLOCK))
    yield sending("packet-of-256-mib-for-a-receipt", lambda _: _flood(b"\x40" + _HUGE))
    yield sending("messages-that-nobody-asked-for", lambda _: _unsettled(script))
    yield sending("connect-for-a-receipt", lambda _: [b"\x10\0"])
    yield sending("noise-for-a-receipt", lambda _: [noise(8)])
    if script.version == "5":
        yield sending("end-for-a-receipt", lambda _: [b"\xe0\2\x97\0"])


def _wire(version: str) -> HostileWire:
    def settings(port: int) -> MqttSettings:
        return MqttSettings(
            host="127.0.0.1", port=port, version=version, qos=2, connect_timeout=1.0,
            answer_timeout=1.0, keepalive=2, receive_window_bytes=MIB, max_packet_in=4 * MIB,
        )  # fmt: skip

    parts = (_log_ins, _sources, _readings, _harmless, _sendings)
    script = Script(version)
    return HostileWire(
        "mqtt",
        f"mqtt-{version}",
        "t/#",
        "t/x",
        settings,
        partial(_honest, version),
        [each for part in parts for each in part(script)],
    )


def _honest(version: str, request: pytest.FixtureRequest, stack: ExitStack) -> MqttSettings:
    folder = request.getfixturevalue("tmp_path_factory").mktemp("mosquitto")
    broker = Mosquitto(servers.required("mosquitto"), folder, OPEN)
    stack.callback(broker.kill)
    broker.start()
    return MqttSettings(host="127.0.0.1", port=broker.port, version=version)


MQTT: Final = _wire("5")
MQTT_3: Final = _wire("3.1.1")
