"""The parsers of bytes and texts from outside: their errors, valid inputs, words and large inputs.

A parser is made again for each run, since some of them remember what they have read.
"""

from __future__ import annotations

import asyncio
import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, cast

import msgpack

from gateway.archive.journal.ends import read_head, read_trailer
from gateway.archive.journal.records import MAGIC, MARK, Rows, pack, read_records
from gateway.archive.lookup.name_store import _entry as read_name_line
from gateway.archive.seals.seal import from_json
from gateway.cli.mapping.name_requests import answer_line
from gateway.config.load import load
from gateway.dialects.names import check_name
from gateway.dialects.patterns import read_pattern
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.jms.message_reader import BatchReader
from gateway.endpoints.jms.subscription_filter import SubscriptionFilter
from gateway.endpoints.jms.value_codec import ValueReader, write_value
from gateway.endpoints.rabbitmq.headers import read_properties, write_properties
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.solace.message_reader import SolaceMessageReader, decoding_error
from gateway.endpoints.yami4.bodies import BodyReader, BodyWriter
from gateway.errors import (
    ArchiveError,
    ConfigErrors,
    GatewayError,
    SpoolError,
    SubjectError,
    TranslationError,
    WireError,
)
from gateway.imports.document import render
from gateway.imports.ems.importer import import_ems
from gateway.imports.mosquitto.importer import import_mosquitto
from gateway.model.message import DeliveryMode, Headers, Message, Value
from gateway.routing.payload_conversion import PayloadConversion, PayloadForm, convert_payload
from gateway.routing.selectors.selector import MAX_CHARACTERS, parse_selector
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.runtime.delivery.outbound_batch import PendingRow
from gateway.runtime.outbound.spool_codec import pack_batch, unpack_batch
from gateway.web import connection as web
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpRequest, HttpResponse
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
from gateway.wire.smf.sdt import MAX_ELEMENTS, decode_value, encode_value
from gateway.wire.smf.subscriptions import decode_subscription
from gateway.wire.yami4 import frames as yami4_frames
from gateway.wire.yami4.messages import HeaderReader, encode_request
from gateway.wire.yami4.parameters import Long, decode_parameters, encode_parameters
from tests.endpoints.jms.test_message_reader import packed
from tests.fuzz.inputs import around
from tests.web.status_samples import FakeStatus, status
from tests.wire.smf_dumps import DUMPS, dump

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "tests/imports/samples"
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


@dataclass(frozen=True, slots=True)
class Parser:
    """One parser: only `errors` may leave `parse`. `large` gives inputs near its limits.

    An input has 75 ms of processor time, and `seconds_per_mebibyte` if it is past `MAX_INPUT`.
    """

    name: str
    parse: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    valid: Sequence[bytes]
    words: Sequence[bytes] = ()
    large: Callable[[], Iterator[bytes]] = field(default=lambda: iter(()))
    regressions: Sequence[bytes] = ()  # inputs that once broke a rule
    seconds_per_mebibyte: float = 0.15


def in_two(feed: Callable[[bytes], Sequence[object]], data: bytes) -> None:
    """Feed a stream cut at a place that its content decides."""
    cut = sum(data[-2:]) % (len(data) + 1)
    feed(data[:cut])
    feed(data[cut:])


# MQTT


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
)


def mqtt_packets(version: str) -> Parser:
    five = version == "5"

    def parse(data: bytes) -> None:
        in_two(lambda part: PacketDecoder.feed(decoder, part).messages, data)

    decoder = PacketDecoder(version, lambda: 0, large=512)

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


# SMF and Solace


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


# YAMI4

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
        [writer.write(payload, each) for payload in payloads for each in (headers, Headers())],
        large=yami4_large,
    )


# JMS


def jms_values() -> Parser:
    def large() -> Iterator[bytes]:
        for depth in (*around(64), 20_000):
            yield b"\x0d\0\0\0\x01" * depth + b"\0"
            yield b"\x0c\0\0\0\x01\0\0\0\1a" * depth + b"\0"
        for count in (65_536, 2**31 - 1):
            yield b"\x0d" + count.to_bytes(4, "big") + b"\0" * 65_536
            yield b"\x0c" + count.to_bytes(4, "big") + b"\0\0\0\0\0" * 65_536

    return Parser(
        "jms.values",
        lambda data: ValueReader(data).read_value(),
        (WireError,),
        [write_value(EVERYTHING), write_value([EVERYTHING] * 2)],
        (b"\x0d\0\0\0\x01", b"\x0c\0\0\0\x01\0\0\0\1a", b"\x09\0\0\xd8\0"),
        large,
    )


def rabbitmq_properties() -> Parser:
    settings = RabbitmqSettings()
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, priority=3, expiry=9, time=5, content_type="a/b",
        correlation_id=b"\xff", reply_to="queue:q", source_id="i", origin=("a",),
        properties=EVERYTHING | {"CC": ["a"]},
    )  # fmt: skip

    def parse(data: bytes) -> None:
        read_properties(data, settings, {}, now=1, redelivered=False)

    def large() -> Iterator[bytes]:
        for kind in (b"A", b"F\0\0\0\0", b"V", b"S\0\0\0\0"):
            table = b"\1a" + b"A" + struct.pack(">I", 130_000) + kind * 130_000
            yield b"\x20\0" + struct.pack(">I", len(table)) + table

    return Parser(
        "rabbitmq.properties",
        parse,
        (),
        [write_properties(headers, settings, 0)],
        (b"\xff\xff\xff\xff", b"A\0\0\0\5", b"F\0\0\0\0", b"D\xff", b"T", b"d"),
        large,
    )


def jms_batch() -> Parser:
    reader = BatchReader(SubscriptionFilter([(1, "t"), (2, "q")]), 1, keep_temporary=True)
    properties: dict[str, Value] = {
        "a": 1,
        "JMSXGroupID": "g",
        "gateway_types": '{"a":"int","b":"json","c":"bytes"}',
        "b": "[1]",
        "c": "AA==",
        "gateway_origin": "x,y",
        "gateway_time": 5,
        "gateway_correlation": "hex",
        "_x4a_MS": 1,
        "JMS_TIBCO_IMPORTED": True,
    }
    batches = (
        packed((1, b"x", {}), (0, "é".encode(), {"a": "b"})),
        packed((2, write_value(EVERYTHING), properties), (3, write_value([1]), properties)),
        packed((7, b"why", {}), (5, b"", {}), (4, b"\xac\xed", {"n": None}), (6, b"", {})),
    )

    def large() -> Iterator[bytes]:
        digits: dict[str, Value] = {"a": "9" * 70_000, "gateway_types": '{"a":"int"}'}
        nested: dict[str, Value] = {"a": "[" * 70_000, "gateway_types": '{"a":"json"}'}
        types: dict[str, Value] = {"gateway_types": "[" * 70_000}
        for each in (digits, nested, types):
            yield packed((1, b"x", each))
        yield packed((1, b"x", {f"n{number}": number for number in range(30_000)}))
        yield (2**31 - 1).to_bytes(4, "big") + bytes(100)

    number_as_type = write_value(None) + b"\0" + write_value(None) + write_value(5) + bytes(12)
    regressions = (packed((1, b"x", {}))[:-2] + number_as_type, b"\0\0\0\2" + bytes(36))
    return Parser("jms.batch", reader.read, (WireError,), batches, (), large, regressions)


# Payloads, names, selectors, templates


def payloads() -> Parser:
    forms = (
        PayloadConversion(PayloadForm.MAP),
        PayloadConversion(PayloadForm.JSON),
        PayloadConversion(PayloadForm.TEXT),
        PayloadConversion(PayloadForm.MAP, "utf-16"),
        PayloadConversion(PayloadForm.TEXT, "latin-1"),
    )

    def parse(data: bytes) -> None:
        convert_payload(data, forms[len(data) % len(forms)])

    def large() -> Iterator[bytes]:
        for unit in (b"[", b'{"a":', b"9", b"[],", b'"\\ud800",', b"1e400,", b"{},"):
            for size in (60, 100_000):
                for extra in range(len(forms)):
                    yield b"[" + unit * (size // len(unit)) + b" " * extra

    return Parser(
        "payload.json",
        parse,
        (TranslationError,),
        (
            b'{"a": [1, 2.5, "x", null, true], "b": {"c": "\\u00e9"}}',
            b"[1,2]",
            '{"ä":"€"}'.encode("utf-16"),
        ),
        (b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\ud800", b"\\u", b"1e400", b"NaN", b"-0"),
        large,
    )


def names_requests() -> Parser:
    def parse(data: bytes) -> None:
        json.loads(answer_line(data))

    def request(**fields: object) -> bytes:
        return json.dumps(fields).encode()

    valid = []
    systems = list(DIALECTS)
    for one, other in zip(systems, systems[1:] + systems[:1], strict=True):
        valid += [
            request(op="match", system=one, pattern="a.*", name="a.b"),
            request(op="check", system=one, name="a/b"),
            request(op="check", system=one, pattern="a/#"),
            request(op="translate", name="a/b.c", **{"from": one, "to": other}),
            request(op="subscribe", pattern="a.>", **{"from": one, "to": other}),
            request(op="delivers", pattern="a/+/#", name="a/b", **{"from": one, "to": other}),
        ]
    return Parser(
        "names.json", parse, (), valid, [*NAME_WORDS, *(each.encode() for each in systems)]
    )


NAME_WORDS: Final = (
    b"*",
    b">",
    b"#",
    b"+",
    b"/",
    b".",
    b"$SYS",
    b"\\u0000",
    b"...",
    b"_RV",
    b"a" * 300,
    b"*/" * 40,
)


def names_and_patterns() -> Parser:
    dialects = list(DIALECTS.values())

    def parse(data: bytes) -> None:
        dialect = dialects[data[0] % len(dialects)] if data else dialects[0]
        text = data[1:].decode("utf-8", "surrogateescape")
        for read in (check_name, read_pattern):
            try:
                read(text, dialect)
            except SubjectError:
                continue

    valid = [
        bytes((at,)) + text
        for at in range(len(dialects))
        for text in (b"a.b.c", b"a/+/#", b"a.*.>")
    ]
    return Parser("names.text", parse, (), valid, NAME_WORDS)


def selectors() -> Parser:
    headers = Headers(priority=3, properties={"a": 1, "b": "x", "colour": "red"})

    def parse(data: bytes) -> None:
        parse_selector(data.decode("utf-8", "replace")).matches(headers)

    def large() -> Iterator[bytes]:
        for unit, joiner in ((b"a = 1", b" AND "), (b"b LIKE 'x%'", b" OR ")):
            for count in (*around(100), 2_000):
                yield joiner.join([unit] * count)
        yield b"(" * 100 + b"a = 1" + b")" * 100
        yield b"NOT " * 1_000 + b"a = 1"
        yield b"b IN (" + b",".join([b"'x'"] * 1_000) + b")"
        yield b"a = " + b"9" * 60_000
        yield b"b LIKE '" + b"%a" * 100 + b"' AND colour LIKE '" + b"%" * 1_000 + b"'"
        yield b" OR ".join([b"a"] * 5_000)
        yield b" OR ".join([b"a IS NULL"] * 5_000)[: MAX_CHARACTERS - 5]
        yield b" OR ".join(b"b LIKE '%d'" % number for number in range(3_900))
        yield b" OR ".join(b"b LIKE '" + b"%a" * 99 + b"%d'" % number for number in range(300))

    return Parser(
        "selector",
        parse,
        (SubjectError,),
        (
            b"a = 1 AND b LIKE 'x%' ESCAPE '\\' OR NOT (colour IN ('red', 'blue'))",
            b"a BETWEEN 1 AND 5.5e3 AND b IS NOT NULL",
            b"JMSPriority > 4 OR -a * 2 + 1 <> 0x",
            b"a NOT BETWEEN -1 AND 2 AND colour NOT LIKE '_e%' AND TRUE",
        ),
        (
            b" AND ",
            b" OR ",
            b"NOT ",
            b"(",
            b")",
            b"'",
            b" LIKE ",
            b" IN (",
            b"%",
            b"_",
            b"1e999",
            b"<>",
        ),
        large,
        seconds_per_mebibyte=3.5,  # 12 µs an operator; 0.22 s for MAX_CHARACTERS
    )


# The web server


class _Writer:
    """Takes the bytes of responses."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


def web_requests() -> Parser:
    loop = asyncio.new_event_loop()
    application = WebApplication(FakeStatus(status()), ("a-token",), mutual_tls=False)

    async def answer(request: HttpRequest) -> HttpResponse:
        if request.path == "/metrics":  # renders all metrics, which is no parsing
            return HttpResponse(200, b"")
        return application.answer(request)

    async def serve(data: bytes) -> None:
        reader = asyncio.StreamReader(loop=loop)
        reader.feed_data(data)
        reader.feed_eof()
        await web.serve(reader, cast(asyncio.StreamWriter, _Writer()), answer)

    head = b"Host: 127.0.0.1\r\nAuthorization: Bearer a-token\r\n"

    def large() -> Iterator[bytes]:
        for size in (64 << 10, 1 << 20):
            yield b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (size // 6) + b"\r\n"
            yield b"GET /" + b"a" * size + b" HTTP/1.1\r\n\r\n"
            yield b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * size
            yield (
                b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + b"1\r\na\r\n" * (size // 6)
            )
        yield b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 20

    return Parser(
        "web.request",
        lambda data: loop.run_until_complete(serve(data)),
        (),
        (
            b"GET / HTTP/1.1\r\n" + head + b"\r\n",
            b"GET /api/explain?text=a.b&system=ems&kind=name HTTP/1.1\r\n" + head + b"\r\n",
            b"GET /api/explain?text=%2Fa%2B&system=mqtt&kind=pattern HTTP/1.1\r\n" + head + b"\r\n",
            b"POST /readyz HTTP/1.1\r\nHost: [::1]:8047\r\nContent-Length: 5\r\n\r\nhello",
            b"HEAD /api/status HTTP/1.1\r\n"
            + head
            + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"GET /healthz HTTP/1.0\r\n\r\n",
        ),
        (
            b"\r\n",
            b"%",
            b"%00",
            b"&text=",
            b"Content-Length: 9\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Host: ",
            b"?",
            *NAME_WORDS,
        ),
        large,
        (b"HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",),
    )


# Files: configuration, imports, archive, spool


def configuration() -> Parser:
    folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108  # memory
    path = Path(folder.name) / "gateway.yaml"

    def parse(data: bytes, _: object = folder) -> None:  # the default keeps the folder
        path.write_bytes(data)
        load(path, {})

    text = b"""\
endpoints:
  plant: {kind: mqtt, host: 127.0.0.1, port: 1883, password: "${env:PW}"}
  core: {kind: memory, dialect: ems, prefix: p}
routes:
  lines:
    from: {endpoint: plant, pattern: "line/{line}/{rest...}"}
    to: {endpoint: core, template: "lines.{line}.{rest...}"}
web: {port: 8047}
archive: {path: archive}
"""
    return Parser(
        "configuration",
        parse,
        (ConfigErrors,),
        (
            text,
            b"defaults: {route: {queue: 5}}\n" + text,
            b"include: [x.yaml]\n",
            b"a: &a [1]\nb: *a\n",
        ),
        (
            b"&a ",
            b"*a",
            b"<<: ",
            b"!!int ",
            b"- ",
            b"{",
            b"}",
            b"[",
            b"]",
            b": ",
            b"\n",
            b"${env:A}",
            b"${",
            b"0x",
            b"|\n",
            b"%YAML 1.1\n",
        ),
        regressions=(b"a: &a [*a]", b"P: &a [b: *a\n]"),  # a value in itself
    )


def ems_import() -> Parser:
    def parse(data: bytes) -> None:
        at = data[0] % 3 if data else 0
        render(import_ems([(("bridges.conf", "topics.conf", "transports.conf")[at], data[1:])]))

    files = [
        bytes((at,)) + (SAMPLES / name).read_bytes()[:1_500]
        for at, name in enumerate(("bridges.conf", "topics.conf", "transports.conf"))
    ]
    return Parser(
        "import.ems",
        parse,
        (GatewayError,),
        files,
        (b"[topic:a.>]\n", b'selector="', b"queue=", b"\\\n", *NAME_WORDS),
        lambda: iter(
            (
                b"\0" + b"x\n" * 8_000,
                b"\0" + b"[topic:a.>]\nqueue=q\n" * 800,
                b"\0[topic:a]\n" + b"queue=q\n" * 1_500,
                b"\1a " + b"p," * 4_000,
                b"\1" + b"a import=x\n" * 1_000,
                b"\2[x]\n" + b"y=z\n" * 3_000,
            )
        ),
    )


def mosquitto_import() -> Parser:
    return Parser(
        "import.mosquitto",
        lambda data: render(import_mosquitto("mosquitto.conf", data)),
        (GatewayError,),
        (
            (SAMPLES / "mosquitto.conf").read_bytes()[400:1_400],
            b"connection a\naddress b:1\ntopic # both 2 x/ y/\n",
        ),
        (b"\ntopic ", b" both ", b" in 2 ", b'""', b"\nconnection x\naddress y\n", *NAME_WORDS),
        lambda: (
            b"connection a\naddress b\n" + lines
            for lines in (
                b"topic # both\n" * 1_200,
                b'topic a/+/# both 0 "" x/\ntopic a/# in\ntopic # out\n' * 350,
                b"topic a+ both\n" * 1_000,
                b"remote_password x\n" * 300 + b"#a\n" * 4_000,
                b"topic " + b"+/" * 4_000 + b"\n",
                b"topic " + b"a/" * 190 + b"# both\n",
                b"x\n" * 8_000,
            )
        ),
        (b"connection a\naddress b:65536\ntopic a\n",),  # a port that does not exist
    )


def framed(body: bytes) -> bytes:
    return MARK + struct.pack(">II", len(body), zlib.crc32(body)) + body


def journal() -> Parser:
    def parse(data: bytes) -> None:
        """Read a journal: the bytes as they are, and as the body of an intact record."""
        for each in (MAGIC + data, MAGIC + framed(data)):
            read_head(each)
            read_trailer(each)
            try:
                list(read_records(each))
            except ArchiveError:
                continue

    rows = Rows(2, {"leg": "received", "time": 5}, {"name": ["a", "b"], "hash": [b"x", b"y"]})
    shared = ["a", "b"]
    twice = Rows(2, {"leg": "delivered"}, {"name": shared, "route": shared})
    record = pack([rows, twice])
    return Parser(
        "archive.journal",
        parse,
        (),
        (record * 2, record[12:], msgpack.packb({"gateway": "a", "opened": 5})),
        (
            MARK,
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xdb\xff\xff\xff\xff",
            b"\x91" * 600,
        ),
        lambda: iter(
            ((MARK + struct.pack(">II", 1 << 19, 0)) * 90_000,)
        ),  # a payload can hold this
        (
            msgpack.packb([[1, {}, {}]]) + b"more",
            msgpack.packb([[1, {}, {"name": 5}]]),
            msgpack.packb([5]),
            msgpack.packb([[2, {}, {"name": ["a"]}]]),
            msgpack.packb("text"),
            b"\xc1",
        ),
    )


def archive_texts() -> Parser:
    def parse(data: bytes) -> None:
        if data and data[0] % 2:
            list(read_name_line(data[1:]))
        else:
            from_json(data[1:])

    seal = {
        "version": 1,
        "kind": "merged",
        "date": "2026-01-02",
        "generation": 1,
        "replaces": [],
        "segments": [],
        "keyed": False,
        "mac": "00",
    }
    name = {"digest": "00", "levels": ["a", "b"], "time": 5}
    valid = [bytes((at,)) + json.dumps(each).encode() for at, each in enumerate((seal, name))]
    return Parser(
        "archive.texts",
        parse,
        (ValueError, ArchiveError),
        valid,
        (b"[", b"{", b"null", b'"mac":', b"9" * 5_000),
    )


def spool() -> Parser:
    headers = Headers(
        DeliveryMode.AT_LEAST_ONCE, origin=("a",), properties={"n": 2**80, "m": {"x": [1]}}
    )
    messages = [Message("a/b", b"x", headers), Message("a/c", {"y": 1.5}, Headers())]
    pending = [PendingRow((0, 1), Rows(2, {"leg": "delivered"}, {"name": ["a", "b"]}), "plant")]
    return Parser(
        "spool",
        unpack_batch,
        (SpoolError,),
        (pack_batch(messages, pending), pack_batch(messages[:1], [])),
        (
            b"\xdd\xff\xff\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\xc7\x20\x01" + b"9" * 32,
            b"\x91" * 600,
            b"\xc0",
        ),
        regressions=[
            msgpack.packb(each)
            for each in (
                [1],
                [[1], [], []],
                [[], [[1]], []],
                [[], [["a", b"", 0]], []],
                [[], [], [5]],
            )
        ]
        + [b"\x93\x91\x81\xa4mode" + b"\x91" * 1_010 + b"\xc0\x90\x90"],  # no text of it
    )


def templates() -> Parser:
    dialects = list(DIALECTS.values())
    source = parse_source("a/{b}/{rest...}", DIALECTS["mqtt"])

    def parse(data: bytes) -> None:
        dialect = dialects[data[0] % len(dialects)] if data else dialects[0]
        parse_template(data[1:].decode("utf-8", "replace"), dialect, source)

    valid = [
        bytes((at,)) + text
        for at in range(len(dialects))
        for text in (b"a.{b}.{rest...}", b"x/{a|lower}/{b}")
    ]
    return Parser(
        "template",
        parse,
        (SubjectError, TranslationError),
        valid,
        (b"{", b"}", b"|", b"...", b"{a}", b"{{", *NAME_WORDS),
    )


PARSERS: Final[dict[str, Callable[[], Parser]]] = {
    "mqtt.packets-5": partial(mqtt_packets, "5"),
    "mqtt.packets-3.1.1": partial(mqtt_packets, "3.1.1"),
    "mqtt.session": mqtt_session,
    "smf.frames": smf_stream,
    "smf.control": smf_control,
    "smf.sdt": sdt,
    "solace.message": solace_message,
    "yami4.frames": yami4_stream,
    "yami4.parameters": yami4_parameters,
    "yami4.bodies": yami4_bodies,
    "jms.values": jms_values,
    "jms.batch": jms_batch,
    "rabbitmq.properties": rabbitmq_properties,
    "payload.json": payloads,
    "names.json": names_requests,
    "names.text": names_and_patterns,
    "selector": selectors,
    "template": templates,
    "web.request": web_requests,
    "configuration": configuration,
    "import.ems": ems_import,
    "import.mosquitto": mosquitto_import,
    "archive.journal": journal,
    "archive.texts": archive_texts,
    "spool": spool,
}
