"""The parsers of bytes and texts from outside: their errors, valid inputs, words and large inputs.

A parser is made again for each run, since some of them remember what they have read.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, cast

from gateway.cli.mapping.name_requests import answer_line
from gateway.dialects.names import check_name
from gateway.dialects.patterns import read_pattern
from gateway.dialects.registry import DIALECTS
from gateway.endpoints.amqp.bodies import read_body
from gateway.endpoints.amqp.headers import read_head, write_head
from gateway.endpoints.jms.message_reader import BatchReader
from gateway.endpoints.jms.value_codec import ValueReader, write_value
from gateway.endpoints.kafka.headers import RecordHeaderReader, RecordHeaderWriter
from gateway.endpoints.rabbitmq.headers import read_properties, write_properties
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.errors import (
    SubjectError,
    TranslationError,
    WireError,
)
from gateway.model.message import DeliveryMode, Headers, Message, Value
from gateway.routing.message_fields import read_fields
from gateway.routing.payload_conversion import PayloadConversion, PayloadForm
from gateway.routing.payload_pick import PayloadPick
from gateway.routing.selectors.selector import MAX_CHARACTERS, parse_selector
from gateway.routing.source_pattern import parse_source
from gateway.routing.template import parse_template
from gateway.web import http_connection as web
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpRequest, HttpResponse
from gateway.wire.amqp import frames, sections, values
from gateway.wire.amqp.frames import AmqpDecoder
from tests.copy_proofs import PROOF
from tests.endpoints.jms.test_message_reader import packed
from tests.fuzz.driver_parsers import nats_lines, rabbitmq_frames
from tests.fuzz.file_parsers import (
    archive_texts,
    configuration,
    ems_import,
    journal,
    mosquitto_import,
    nanomq_import,
    rabbitmq_import,
    spool,
)
from tests.fuzz.inputs import around
from tests.fuzz.parser import NAME_WORDS, Parser
from tests.fuzz.wire_parsers import (
    EVERYTHING,
    mqtt_packets,
    mqtt_session,
    sdt,
    smf_control,
    smf_stream,
    solace_message,
    yami4_bodies,
    yami4_parameters,
    yami4_stream,
)
from tests.web.status_samples import FakeStatus, status


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


def amqp_values() -> Parser:
    return Parser(
        "amqp.values",
        values.read_value,
        (WireError,),
        [values.encode_value(EVERYTHING), values.encode_value([EVERYTHING] * 2)],
        (
            b"\xd0\xff\xff\xff\xff",
            b"\xf0\0\0\0\5\xff\xff\xff\xff\x40",
            b"\0\0\0",
            b"\x73\0\0\xd8\0",
        ),
        lambda: iter([b"\xc0\xff\1" * 50_000, b"\0\x40" * 100_000]),
    )


def amqp_frames() -> Parser:
    opened = frames.encode_frame(frames.OPEN, [values.string("x"), None, values.uint(512)])
    sent = frames.encode_frame(frames.TRANSFER, [values.uint(0), values.uint(1)], b"payload")

    def parse(data: bytes) -> None:
        AmqpDecoder(65_536).feed(frames.HEADER + data)

    def large() -> Iterator[bytes]:
        yield frames.EMPTY * 100_000

    return Parser(
        "amqp.frames", parse, (WireError,), [opened, opened + sent], (b"\0\0\0\x08",), large
    )


def amqp_message() -> Parser:
    settings = AmqpSettings()
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, priority=3, expiry=9, time=5, content_type="a/b",
        correlation_id=b"\xff", reply_to="queue:q", source_id="i", origin=("a",),
        properties=EVERYTHING | {"amqp_x-opt-a": 1},
    )  # fmt: skip

    def parse(data: bytes) -> None:
        parts = sections.find_parts(data)
        read_body(data, parts, len(data), 1_000)
        read_head(parts.head, settings, 1)

    def large() -> Iterator[bytes]:
        yield b"\x00\x53\x75\xa0\0" * 50_000

    made = [
        write_head(headers, settings, "/queues/q", 0, proof) + sections.data_section(b"x")
        for proof in ("", PROOF)
    ]
    return Parser("amqp.message", parse, (WireError,), made, (b"\x00\x53\x77\x40",), large)


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
        [write_properties(headers, settings, 0, proof) for proof in ("", PROOF)],
        (b"\xff\xff\xff\xff", b"A\0\0\0\5", b"F\0\0\0\0", b"D\xff", b"T", b"d"),
        large,
    )


def kafka_headers() -> Parser:
    """Names and values of headers, each ended by a zero byte."""
    writer = RecordHeaderWriter()
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE, priority=3, expiry=9, time=5, content_type="a/b",
        correlation_id=b"\xff", reply_to="t:q", source_id="i", origin=("a",), properties=EVERYTHING,
    )  # fmt: skip

    def parse(data: bytes) -> None:
        parts = data.split(b"\0")
        pairs = [*zip(parts[::2], parts[1::2], strict=False)]
        found = [(name.decode(errors="replace"), value or None) for name, value in pairs]
        writer.write(RecordHeaderReader().read(found, 5).headers)

    def large() -> Iterator[bytes]:
        yield b"a\0b\0" * 100_000
        for value in (
            b"[" * 500_000,
            b'{"properties":' * 50_000,
            b"9" * 500_000,
            b"\xff" * 500_000,
        ):
            for name in (
                b"gateway_fields", b"gateway_time", b"gateway_message_id", b"gateway_proof",
                b"content-type",
            ):  # fmt: skip
                yield name + b"\0" + value

    written, _ = writer.write(headers)
    return Parser(
        "kafka.headers",
        parse,
        (TranslationError,),
        [b"\0".join(name.encode() + b"\0" + (value or b"") for name, value in written)],
        (
            b"gateway_fields\0",
            b"gateway_time\0",
            b"gateway_message_id\0",
            b"gateway_proof\0",
            b"{",
            b"[",
            b'{"base64":',
            b"-",
        ),
        large,
    )


def jms_batch() -> Parser:
    reader = BatchReader(JmsSettings(), [(1, "t"), (2, "q")])
    properties: dict[str, Value] = {
        "a": 1,
        "JMSXGroupID": "g",
        "gateway_types": '{"a":"int","b":"json","c":"bytes"}',
        "b": "[1]",
        "c": "AA==",
        "gateway_origin": "x,y",
        "gateway_proof": PROOF,
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


def payloads() -> Parser:
    forms = (
        PayloadConversion(PayloadForm.MAP),
        PayloadConversion(PayloadForm.JSON),
        PayloadConversion(PayloadForm.TEXT),
        PayloadConversion(PayloadForm.MAP, "utf-16"),
        PayloadConversion(PayloadForm.TEXT, "latin-1"),
        PayloadPick(None),
        PayloadPick((("a",), ("b", "c"))),
    )

    def parse(data: bytes) -> None:
        forms[len(data) % len(forms)].convert(data)
        read_fields(["payload.a", "payload.b.c"], Message("x", data))

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


class _Writer:
    """Takes the bytes of responses."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


def web_requests() -> Parser:
    loop = asyncio.new_event_loop()
    application = WebApplication(FakeStatus(status()), ("a-token",), mutual_tls=False)

    async def answer(request: HttpRequest) -> HttpResponse:
        if request.path == "/metrics":  # renders all metrics, which parses nothing
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
    "nats.lines": nats_lines,
    "rabbitmq.frames": rabbitmq_frames,
    "rabbitmq.properties": rabbitmq_properties,
    "kafka.headers": kafka_headers,
    "amqp.values": amqp_values,
    "amqp.frames": amqp_frames,
    "amqp.message": amqp_message,
    "payload.json": payloads,
    "names.json": names_requests,
    "names.text": names_and_patterns,
    "selector": selectors,
    "template": templates,
    "web.request": web_requests,
    "configuration": configuration,
    "import.ems": ems_import,
    "import.mosquitto": mosquitto_import,
    "import.nanomq": nanomq_import,
    "import.rabbitmq": rabbitmq_import,
    "archive.journal": journal,
    "archive.texts": archive_texts,
    "spool": spool,
}
