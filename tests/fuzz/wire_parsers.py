"""The parsers of bytes that come from a network: MQTT, SMF and YAMI4."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from gateway.endpoints.solace.message_reader import SolaceMessageReader, decoding_error
from gateway.endpoints.yami4.bodies import BodyReader, BodyWriter
from gateway.errors import (
    WireError,
)
from gateway.model.message import DeliveryMode, Headers, Value
from gateway.wire.mqtt.packet_fields import encode_length
from gateway.wire.mqtt.packets import PacketDecoder
from gateway.wire.mqtt.session_packets import (
    decode_connack,
    decode_disconnect,
    decode_suback,
    decode_unsuback,
)
from gateway.wire.smf import frames as smf_frames
from gateway.wire.smf.assured_control import ControlField, decode_control
from gateway.wire.smf.client_control import decode_login
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import DELIVERY_MODE, TOPIC, encode_parameter
from gateway.wire.smf.relayed_message import decode_direct, decode_published, read_topic
from gateway.wire.smf.sdt import MAX_ELEMENTS, decode_value
from gateway.wire.smf.subscriptions import decode_subscription
from gateway.wire.yami4 import frames as yami4_frames
from gateway.wire.yami4.messages import HeaderReader, encode_request
from gateway.wire.yami4.parameters import Long, decode_parameters, encode_parameters
from tests.copy_proofs import PROOF
from tests.fuzz.inputs import around
from tests.fuzz.parser import Parser, in_two
from tests.wire.smf_dumps import DUMPS, dump
from tests.wire.smf_requests import encode_value

EVERYTHING: Final[dict[str, Value]] = {
    "none": None,
    "flag": True,
    "int": -5,
    "long": 2**40,
    "float": 0.5,
    "text": "é",
    "bytes": b"\0\xff",
    "list": [1, "x", b"y", 2.5],
    "map": {"inner": {"deep": [1]}},
}


def publish(
    topic: bytes, payload: bytes, properties: bytes | None = b"", first: int = 0x32
) -> bytes:
    body = struct.pack(">H", len(topic)) + topic + (b"\0\1" if first & 6 else b"")
    if properties is not None:
        body += encode_length(len(properties)) + properties
    body += payload
    return bytes((first,)) + encode_length(len(body)) + body


def user_property(name: bytes, value: bytes) -> bytes:
    return b"\x26" + struct.pack(">H", len(name)) + name + struct.pack(">H", len(value)) + value


PROPERTIES: Final = (
    b"\x01\x01\x02\0\0\0\x05\x03\0\1t\x08\0\1r\x09\0\2\0\xff\x0b\x80\x01"
    + user_property(b"a", b"1") * 3
    + user_property(b"gateway-types", b'{"a":"int","b":"bytes","c":"json"}')
    + user_property(b"b", b"AA==")
    + user_property(b"c", b"[1,{}]")
    + user_property(b"gateway-priority", b"5")
    + user_property(b"gateway-origin", b"x,y")
    + user_property(b"gateway-proof", PROOF.encode())
)


def mqtt_packets(version: str) -> Parser:
    five = version == "5"

    def parse(data: bytes) -> None:
        in_two(lambda part: PacketDecoder.feed(decoder, part).messages, data)

    decoder = PacketDecoder(version, lambda: 0)
    decoder._large = 512  # noqa: SLF001  # so that short packets are large ones

    def fresh(data: bytes) -> None:
        nonlocal decoder
        try:
            parse(data)
        finally:
            if decoder._parts:  # an incomplete packet  # noqa: SLF001  # the caches stay
                decoder._parts, decoder._have, decoder._need = [], 0, 2  # noqa: SLF001

    def large() -> Iterator[bytes]:
        yield publish(b"t", bytes(8 << 20), b"" if five else None)
        if five:
            for count in around(10_000):
                yield publish(b"t", b"", user_property(b"", b"") * count)
            yield publish(b"t", b"", user_property(b"n" * 65_535, b"v" * 65_535) * 20)
            yield publish(b"t", b"", user_property(b"", b"") * 170_000)
            types = user_property(b"gateway-types", b'{"a":"json"}')
            for text in (b"9" * 65_535, b"[" * 65_535, b"[]," * 21_000, b'{"a":' * 13_000):
                yield publish(b"t", b"", types + user_property(b"a", text))

    plain = b"" if five else None
    return Parser(
        f"mqtt.packets-{version}",
        fresh,
        (WireError,),
        (
            publish(b"a/b", b"payload", plain),
            publish(b"a/b", b"payload", PROPERTIES if five else None, 0x35) * 2,
            publish("ä/€".encode(), b"x" * 700, PROPERTIES if five else None, 0x30),
            b"\x40\x02\0\1" * 3 + b"\x50\x03\0\1\x10\xd0\0\x62\x02\0\1\x70\x02\0\1",
            b"\x20\x02\0\0" + publish(b"t", b"", plain) + b"\xe0\0",
        ),
        (user_property(b"k", b"v"), b"\x0b\xff\xff", b"\x23\0\1", b"\x32\x80\x80\x80\x80\x01"),
        large,
    )


def mqtt_session() -> Parser:
    def parse(data: bytes) -> None:
        five, kind = len(data) % 4 > 0, data[0] >> 4 if data else 0
        if kind == 2:
            decode_connack(data, five=five)
        elif kind == 9:
            decode_suback(data, five=five)
        elif kind == 11:
            decode_unsuback(data, five=five)
        else:
            decode_disconnect(data)

    facts = (
        b"\x11\0\0\0\x05\x12\0\2id\x13\0\x3c\x21\0\x14\x24\1\x25\0\x27\0\0\1\0\x28\1\x29\1\x2a\1"
        b"\x1f\0\2no" + user_property(b"a", b"b") * 2
    )
    return Parser(
        "mqtt.session",
        parse,
        (WireError,),
        (
            b"\x20" + bytes((len(facts) + 3, 0, 0, len(facts))) + facts,
            b"\x20\x02\0\x05",
            b"\x90\x06\0\1\0\0\1\x87",
            b"\xb0\x04\0\1\0\0",
            b"\xb0\x02\0\1",
            b"\xe0\0",
            b"\xe0\x02\x8e\0",
            b"\xe0\x07\x95\x05\x1f\0\2no",
        ),
        (user_property(b"", b""), b"\x1f\xff\xff"),
        lambda: iter(
            (b"\xe0\xff\xff\x7f\x95" + encode_length(900_000) + user_property(b"", b"") * 180_000,)
        ),
    )


def smf_stream() -> Parser:
    def parse(data: bytes) -> None:
        decoder = smf_frames.SmfDecoder(max_message=8_192, max_header=2_048)
        try:
            in_two(decoder.feed, data)
        finally:
            assert decoder.held <= 8_192 + len(data)

    return Parser(
        "smf.frames",
        parse,
        (WireError,),
        [
            dump(15) + dump(16),
            dump(1),
            dump(20) * 3,
            *(bytes.fromhex(each) for each in DUMPS.values()),
        ],
    )


def smf_control() -> Parser:
    def parse(data: bytes) -> None:
        frames = smf_frames.SmfDecoder().feed(data)
        for frame in frames:
            for read in (_smf_control, decode_login, decode_subscription, read_topic):
                try:
                    read(frame)
                except WireError:
                    continue
            for decode in (decode_published, decode_direct):
                try:
                    decode(frame)
                except WireError:
                    continue

    return Parser(
        "smf.control", parse, (WireError,), [bytes.fromhex(each) for each in DUMPS.values()]
    )


def _smf_control(frame: bytes) -> None:
    control = decode_control(frame)
    control.ack_ranges()
    for number in ControlField:
        control.get_int(number)
        control.get_text(number)


def sdt_large() -> Iterator[bytes]:
    """Structures at the limits of elements, containers, nesting and the length of integers."""
    for count in around(MAX_ELEMENTS):
        yield encode_value([None] * count)
        yield encode_value([1] * count)
        yield encode_value({f"{number:x}": 0.5 for number in range(count // 2)})
        yield encode_value(["text"] * count)
    for count in around(128, 13_107):
        yield encode_value([[] for _ in range(count)])
        yield encode_value([{} for _ in range(count)])
        short = b"\x2c\x02" * count
        yield b"\x2f" + (len(short) + 5).to_bytes(4, "big") + short
    yield b"\x2f" + (200_005).to_bytes(4, "big") + b"\x2c\x02" * 100_000
    for depth in around(32, 1_000):
        nested = b""
        for _ in range(depth):
            nested = b"\x2f" + (len(nested) + 5).to_bytes(4, "big") + nested
        yield nested
    for size in (*around(1, 2, 4, 8), 2_000, 1 << 20):
        yield bytes((2 << 2 | 3,)) + (size + 5).to_bytes(4, "big") + b"\xff" * size
        yield bytes((3 << 2 | 3,)) + (size + 5).to_bytes(4, "big") + b"\xff" * size


SDT: Final = [encode_value(EVERYTHING), encode_value([EVERYTHING, 2**64 - 1]), encode_value("x")]


def sdt() -> Parser:
    return Parser(
        "smf.sdt", decode_value, (WireError,), SDT, (b"\x2c\x02", b"\x2f\0\0\0\x05"), sdt_large
    )


def solace_message() -> Parser:
    reader = SolaceMessageReader()

    def parse(data: bytes) -> None:
        message = reader.read(data, 1_000_000)
        fault = decoding_error(message)
        assert "unexpected error" not in str(fault), fault

    def whole(metadata: bytes, payload: bytes) -> bytes:
        def part(kind: int, content: bytes) -> bytes:
            return bytes((kind << 4 | 6,)) + len(content).to_bytes(4, "big") + b"\0"

        summary = b"".join(
            bytes((kind << 4 | 5,)) + len(content).to_bytes(4, "big")
            for kind, content in ((4, metadata), (2, payload))
        )
        parameters = encode_parameter(TOPIC, b"a/b\0") + encode_parameter(0x16, summary)
        parameters += encode_parameter(DELIVERY_MODE, b"\1")
        return encode_frame(Protocol.MESSAGE, parameters, metadata + payload)

    def described(content: bytes) -> bytes:
        return b"\1" + struct.pack(">I", len(content)) + content

    def large() -> Iterator[bytes]:
        for content in sdt_large():
            kind = encode_value([b"\x0a", {"p": {"a": 1}}])
            yield whole(described(kind), content)
            yield whole(described(content), b"")
        yield whole(described(encode_value([b"\x80", {}])), bytes(8 << 20))

    return Parser(
        "solace.message",
        parse,
        (),
        [dump(number) for number in (15, 16, 17, 18, 19, 20, 22, 30)]
        + [
            whole(
                described(
                    encode_value([b"\x0a", {"p": EVERYTHING, "h": {"ts": 5, "ex": 2**63 - 1}}])
                ),
                SDT[0],
            )
        ],
        (b"\x2c\x02", b"\x2f\0\0\0\x05"),
        large,
    )


YAMI4_VALUES: Final[dict[str, Value]] = {
    "b": True,
    "i": 1,
    "l": Long(1),
    "d": 1.5,
    "s": "text",
    "x": b"bytes",
    "bs": [True] * 40,
    "is": [1, 2],
    "ls": [Long(1)],
    "ds": [1.0],
    "ss": ["a", "b"],
    "xs": [b"a"],
    "o": {"p": {"q": 1}},
    "os": [{"a": 1}, {}],
}
YAMI4_BODY: Final = encode_parameters(YAMI4_VALUES)
YAMI4_LIMITS: Final = yami4_frames.FrameLimits(
    payload=4096, message=4096, held=16_384, incomplete=16
)


def yami4_stream() -> Parser:
    reader = HeaderReader()

    def parse(data: bytes) -> None:
        decoder = yami4_frames.FrameDecoder(YAMI4_LIMITS, skip_large=bool(data[:1] > b"\x7f"))
        packets = []
        cut = len(data) // 2
        try:
            packets += decoder.feed(data[:cut])
            packets += decoder.feed(data[cut:])
        except WireError:
            assert decoder.fault is not None
        assert decoder.held <= YAMI4_LIMITS.held + YAMI4_LIMITS.payload + 16
        for header, _ in packets:
            reader.read(header)

    def large() -> Iterator[bytes]:
        request = encode_request(b"a" * 100, b"b", 1)
        yield b"".join(
            yami4_frames.encode_message(number, request, bytes(8_000))[:4_096]
            for number in range(20)
        )
        yield yami4_frames.HEAD.pack(1, -1, 4, 2**31 - 1)
        yield yami4_frames.HEAD.pack(1, 2**31 - 1, 4, 4) * 2 + bytes(8)

    return Parser(
        "yami4.frames",
        parse,
        (WireError,),
        (
            yami4_frames.encode_message(1, encode_request(b"a.b", b"publish", 1), YAMI4_BODY),
            yami4_frames.encode_message(2, encode_request(b"a.b", b"publish", 2), YAMI4_BODY, 128),
            yami4_frames.encode_message(3, encode_request(b"x", b"y", 3), bytes(4)) * 3,
        ),
        (),
        large,
    )


def yami4_array(code: int, count: int, element: bytes) -> bytes:
    content = element * count if code != 7 else bytes(-(-count // 32) * 4)
    return struct.pack("<iii", 1, 1, ord("a")) + struct.pack("<ii", code, count) + content


def yami4_large() -> Iterator[bytes]:
    yield yami4_array(7, 8 << 20, b"")
    for count in around(1_000_000):
        for code, element in ((7, b""), (8, bytes(4)), (9, bytes(8)), (10, bytes(8))):
            yield yami4_array(code, count, element)
    for count in (*around(250_000, 500_000), 1_000_000):
        for code, element in ((11, bytes(4)), (12, bytes(4)), (14, bytes(4))):
            yield yami4_array(code, count, element)
        names = b"".join(
            struct.pack("<i", 8) + f"{number:08x}".encode() + struct.pack("<ii", 1, 1)
            for number in range(count)
        )
        yield struct.pack("<i", count) + names
    level = struct.pack("<iiii", 1, 1, ord("a"), 13)
    for depth in (*around(64), 10_000):
        yield level * depth + bytes(4)


def yami4_parameters() -> Parser:
    return Parser(
        "yami4.parameters",
        decode_parameters,
        (WireError,),
        (YAMI4_BODY, encode_parameters({}), encode_parameters({"a": [{"b": [1.5] * 9}] * 3})),
        large=yami4_large,
    )


def yami4_bodies() -> Parser:
    reader, writer = BodyReader(), BodyWriter()
    headers = Headers(
        DeliveryMode.AT_LEAST_ONCE,
        priority=3,
        expiry=5,
        time=6,
        content_type="t",
        correlation_id=b"c",
        reply_to="r",
        source_id="s",
        origin=("x", "y"),
        properties={"a": 1, "b": [1]},
    )
    payloads = (b"bytes", "text", {"a": 1}, {"payload": b"x"}, {"_gateway": {"version": 1}})
    return Parser(
        "yami4.bodies",
        reader.read,
        (),
        [
            writer.write(payload, each, proof)
            for payload in payloads
            for each in (headers, Headers())
            for proof in ("", PROOF)
        ],
        large=yami4_large,
    )
