"""Behaviours of a hostile RabbitMQ server: an honest script, with one answer changed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import repeat
from typing import Any, Final, TypeAlias

import pytest
from pika import BasicProperties, spec
from pika.frame import Body, Header, Heartbeat, Method, decode_frame

from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from tests.brokers.hostile_servers import BLOCK, Behaviour, noise
from tests.brokers.rabbitmq_server import Vhost
from tests.hostile.behaviours import Cost, Hostile, HostileWire

FRAME_MAX: Final = 131_072
METHOD, HEADER, BODY = 1, 2, 3  # types of frames
_ABLE: Final = {"publisher_confirms": True, "consumer_cancel_notify": True, "basic.nack": True}
START: Final = (0, 9, {"version": "3.10.8", "capabilities": _ABLE}, "PLAIN", "en_US")
MIB: Final = 1 << 20
Asked: TypeAlias = Any  # a frame of pika; its channel, and its method if it has one
Answer: TypeAlias = Callable[[Asked], Iterable[bytes]]
PROTOCOL: Final = "protocol header"  # what the client says first


def frame(kind: int, channel: int, content: bytes, size: int | None = None) -> bytes:
    """Return a frame that claims to have `size` bytes."""
    head = struct.pack(">BHI", kind, channel, len(content) if size is None else size)
    return head + content + b"\xce"


def method(channel: int, wanted: object) -> bytes:
    found: bytes = Method(channel, wanted).marshal()
    return found


def raw_method(channel: int, numbers: tuple[int, int], arguments: bytes) -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", *numbers) + arguments)


def start(table: bytes, mechanisms: bytes = b"PLAIN", *, length: int | None = None) -> bytes:
    """Return a greeting; `length` is what its table claims."""
    size = struct.pack(">I", len(table) if length is None else length)
    rest = struct.pack(">I", len(mechanisms)) + mechanisms + b"\0\0\0\5en_US"
    return raw_method(0, (10, 10), b"\0\x09" + size + table + rest)


def nested(depth: int) -> bytes:
    """Return a field of a table that has tables in each other."""
    field = b"\1xV"
    for _ in range(depth):
        field = b"\1xF" + struct.pack(">I", len(field)) + field
    return field


def header(channel: int, size: int, properties: bytes = b"\0\0", of: int = 60) -> bytes:
    return frame(HEADER, channel, struct.pack(">HHQ", of, 0, size) + properties)


def deliver(channel: int, tag: int, consumer: str, key: str = "t.x") -> bytes:
    return method(channel, spec.Basic.Deliver(consumer, tag, False, "amq.topic", key))


def content(channel: int, payload: bytes) -> bytes:
    return bytes(Header(channel, len(payload), BasicProperties()).marshal()) + b"".join(
        Body(channel, payload[at : at + FRAME_MAX - 8]).marshal()
        for at in range(0, len(payload), FRAME_MAX - 8)
    )


def message(channel: int, tag: int, consumer: str, payload: bytes = b"1") -> bytes:
    return deliver(channel, tag, consumer) + content(channel, payload)


def say(*parts: bytes) -> Answer:
    return lambda _asked: parts


# The answers of a server with one empty queue, which is not a stream.
_HONEST: Final[Mapping[str, Callable[[Any], object]]] = {
    "Connection.StartOk": lambda _: spec.Connection.Tune(2_047, FRAME_MAX, 60),
    "Connection.Open": lambda _: spec.Connection.OpenOk(),
    "Connection.Close": lambda _: spec.Connection.CloseOk(),
    "Channel.Open": lambda _: spec.Channel.OpenOk(),
    "Channel.Close": lambda _: spec.Channel.CloseOk(),
    "Exchange.Declare": lambda _: spec.Exchange.DeclareOk(),
    "Queue.Declare": lambda asked: spec.Queue.DeclareOk(asked.queue, 0, 0),
    "Queue.Bind": lambda _: spec.Queue.BindOk(),
    "Basic.Qos": lambda _: spec.Basic.QosOk(),
    "Basic.Consume": lambda asked: spec.Basic.ConsumeOk(asked.consumer_tag),
    "stream?": lambda _: spec.Channel.Close(406, "PRECONDITION_FAILED - no stream", 60, 20),
    "Confirm.Select": lambda _: spec.Confirm.SelectOk(),
    "Basic.Publish": lambda _: spec.Basic.Ack(1),
}


def _name(asked: Asked) -> str:
    """Return what the client asks; a consumer with arguments is a question for a stream."""
    found = getattr(asked, "method", None)
    is_question = isinstance(found, spec.Basic.Consume) and found.arguments
    return "stream?" if is_question else str(getattr(found, "NAME", ""))


def amqp(at: str, answer: Answer) -> Behaviour:
    """Be honest but for the `answer` to the request `at`."""

    def answers(asked: Asked) -> Iterable[bytes]:
        if (name := _name(asked)) == at:
            return answer(asked)
        if (honest := _HONEST.get(name)) is not None:
            return [method(asked.channel_number, honest(asked.method))]
        return []

    def behave(client: socket.socket) -> None:
        client.recv(8, socket.MSG_WAITALL)
        greeting = answer(None) if at == PROTOCOL else [method(0, spec.Connection.Start(*START))]
        for part in greeting:
            client.sendall(part)
        heard = b""
        while data := client.recv(BLOCK):
            heard += data
            while (found := decode_frame(heard))[0]:
                heard = heard[found[0] :]
                for part in answers(found[1]):
                    client.sendall(part)

    return behave


def consuming(make: Callable[[int, str], Iterable[bytes]]) -> Behaviour:
    """Accept the consumer, and send what `make` returns for its channel and tag."""

    def answer(asked: Asked) -> Iterator[bytes]:
        channel, tag = asked.channel_number, asked.method.consumer_tag
        yield method(channel, spec.Basic.ConsumeOk(tag))
        yield from make(channel, tag)

    return amqp("Basic.Consume", answer)


def publishing(make: Callable[[int], Iterable[bytes]]) -> Behaviour:
    """Send what `make` returns for the channel on which a message is published."""
    return amqp("Basic.Publish", lambda asked: make(asked.channel_number))


def endless(*heads: bytes, block: bytes) -> Iterator[bytes]:
    yield from heads
    yield from repeat(block)


def unasked(channel: int, consumer: str, size: int) -> Iterator[bytes]:
    """Return messages without an end, whatever the client acknowledges."""
    tag, payload = 0, content(channel, bytes(size))
    while True:
        tag += 1
        yield deliver(channel, tag, consumer) + payload


def _then_honest(
    make: Callable[[int, str], Iterable[bytes]], tag: int
) -> Callable[[int, str], Iterator[bytes]]:
    """Send an honest message behind what `make` returns."""

    def both(channel: int, consumer: str) -> Iterator[bytes]:
        yield from make(channel, consumer)
        yield message(channel, tag, consumer, b"honest")

    return both


def _log_in(name: str, at: str, *parts: bytes) -> Hostile:
    return Hostile(name, amqp(at, say(*parts)), Cost.LOG_IN)


def _log_in_flood(name: str, at: str, head: bytes, block: bytes = bytes(MIB)) -> Hostile:
    return Hostile(name, amqp(at, lambda _asked: endless(head, block=block)), Cost.LOG_IN)


def _tune(name: str, channels: int, size: int) -> Hostile:
    return _log_in(
        f"tune-{name}", "Connection.StartOk", method(0, spec.Connection.Tune(channels, size, 60))
    )


def _source(name: str, at: str, answer: Answer) -> Hostile:
    return Hostile(name, amqp(at, answer), Cost.SOURCE)


def _reading(name: str, make: Callable[[int, str], Iterable[bytes]]) -> Hostile:
    return Hostile(name, consuming(make), Cost.READING)


def _harmless(
    name: str, make: Callable[[int, str], Iterable[bytes]], deliveries: int = 0
) -> Hostile:
    return Hostile(name, consuming(_then_honest(make, deliveries + 1)), Cost.NOTHING)


def _raw(seed: int) -> Callable[[int, str], Iterable[bytes]]:
    return lambda _channel, _consumer: [noise(seed)]


def _noisy(kind: int, seed: int) -> Callable[[int, str], Iterable[bytes]]:
    """Send frames of noise; one that the library takes for nothing is followed by another."""
    data = noise(seed)
    parts = [data[at : at + 40] for at in range(0, len(data), 40)]
    return lambda channel, _consumer: (frame(kind, channel, part) for part in parts)


def _sending(name: str, make: Callable[[int], Iterable[bytes]]) -> Hostile:
    return Hostile(name, publishing(make), Cost.SENDING)


_LONG: Final = "\x1b[2J\r\n" + "x" * 240
_END: Final = method(0, spec.Connection.Close(320, _LONG, 0, 0))
_GREETING: Final = method(0, spec.Connection.Start(*START))
_HUGE: Final = struct.pack(">BHI", METHOD, 0, (1 << 32) - 1)
_START_OK, _OPEN, _CHANNEL = "Connection.StartOk", "Connection.Open", "Channel.Open"
_LOG_INS: Final = [
    _log_in("another-protocol", PROTOCOL, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    _log_in("another-version", PROTOCOL, b"AMQP\0\1\0\0"),
    _log_in("start-of-amqp-1", PROTOCOL, method(0, spec.Connection.Start(1, 0, {}, "PLAIN"))),
    _log_in("no-mechanism", PROTOCOL, start(b"", b"")),
    _log_in("unknown-mechanism", PROTOCOL, start(b"", b"X")),
    _log_in("mechanisms-of-no-utf-8", PROTOCOL, start(b"", b"\xff\xfe")),
    _log_in("tables-in-tables", PROTOCOL, start(nested(10_000))),
    _log_in("table-longer-than-its-frame", PROTOCOL, start(b"\1xV", length=1 << 31)),
    _log_in("value-of-an-unknown-type", PROTOCOL, start(b"\1xQ")),
    _log_in("date-past-the-year-9999", PROTOCOL, start(b"\1xT" + b"\xff" * 8)),
    _log_in("text-longer-than-its-table", PROTOCOL, start(b"\1xS\xff\xff\xff\xff")),
    _log_in("start-cut-off", PROTOCOL, raw_method(0, (10, 10), b"\0")),
    _log_in("start-on-channel-1", PROTOCOL, method(1, spec.Connection.Start(*START))),
    _log_in("tune-before-start", PROTOCOL, method(0, spec.Connection.Tune(0, FRAME_MAX, 60))),
    _log_in("empty-method", PROTOCOL, frame(METHOD, 0, b"")),
    _log_in("frame-of-an-unknown-type", PROTOCOL, frame(77, 0, b"x")),
    _log_in("frame-without-an-end", PROTOCOL, _GREETING[:-1] + b"\0"),
    _log_in_flood("first-frame-of-4-gib", PROTOCOL, _HUGE),
    _log_in("start-twice", _START_OK, _GREETING),
    _log_in("challenge", _START_OK, method(0, spec.Connection.Secure("x"))),
    _log_in("log-in-refused", _START_OK, method(0, spec.Connection.Close(403, _LONG, 0, 0))),
    _tune("frames-of-1-byte", 2_047, 1),
    _tune("frames-of-8-bytes", 2_047, 8),
    _tune("frames-below-the-smallest", 2_047, 4_095),
    _tune("one-channel", 1, FRAME_MAX),
    _log_in("tune-cut-off", _START_OK, raw_method(0, (10, 30), b"\0")),
    _log_in("closed-at-once", _OPEN, _END),
    _log_in("close-of-1-mib", _OPEN, raw_method(0, (10, 50), b"\1\x40\xff" + bytes(MIB))),
    _log_in("close-of-no-utf-8", _OPEN, raw_method(0, (10, 50), b"\1\x40\2\xff\xfe" + bytes(4))),
    _log_in_flood("frame-of-4-gib-in-the-log-in", _OPEN, _HUGE),
    _log_in("channel-refused", _CHANNEL, method(1, spec.Channel.Close(504, _LONG, 20, 10))),
    _log_in("another-channel-opened", _CHANNEL, method(9, spec.Channel.OpenOk())),
    _log_in("unknown-method", _CHANNEL, raw_method(1, (99, 99), b"")),
]
_SOURCES: Final = [
    _source(
        "queue-in-no-words", "Queue.Declare",
        lambda asked: [raw_method(asked.channel_number, (50, 11), b"\xff")],
    ),
    _source(
        "another-consumer", "Basic.Consume",
        lambda asked: [method(asked.channel_number, spec.Basic.ConsumeOk("another"))],
    ),
    _source(
        "refusal-of-an-unknown-code", "Queue.Bind",
        lambda asked: [method(asked.channel_number, spec.Channel.Close(65_535, _LONG, 0, 0))],
    ),
    _source(
        "content-before-its-channel", "Basic.Qos",
        lambda asked: [header(asked.channel_number + 1, 1 << 40)],
    ),
]  # fmt: skip
_READINGS: Final = [
    _reading(
        "body-of-2-to-63",
        lambda c, t: endless(
            deliver(c, 1, t), header(c, 1 << 63), block=frame(BODY, c, bytes(FRAME_MAX - 8))
        ),
    ),
    _reading(
        "body-frame-of-4-gib",
        lambda c, t: endless(
            deliver(c, 1, t), header(c, 1 << 20),
            struct.pack(">BHI", BODY, c, (1 << 32) - 1), block=bytes(MIB),
        ),
    ),
    _reading("body-frame-of-16-mib", lambda c, _t: [frame(BODY, c, bytes(16 * MIB))]),
    _reading(
        "body-frames-without-bytes",
        lambda c, t: endless(deliver(c, 1, t), header(c, 1), block=frame(BODY, c, b"") * 10_000),
    ),
    _reading(
        "body-longer-than-its-header",
        lambda c, t: [deliver(c, 1, t), header(c, 1), frame(BODY, c, b"12")],
    ),
    _reading("body-without-a-header", lambda c, _t: [frame(BODY, c, b"1")]),
    _reading("header-without-a-delivery", lambda c, _t: [header(c, 0)]),
    _reading("header-twice", lambda c, t: [deliver(c, 1, t), header(c, 9), header(c, 9)]),
    _reading("header-cut-off", lambda c, t: [deliver(c, 1, t), frame(HEADER, c, b"\0\x3c")]),
    _reading("delivery-cut-off", lambda c, _t: [raw_method(c, (60, 60), b"\xff")]),
    _reading("delivery-without-its-content", lambda c, t: [deliver(c, 1, t), deliver(c, 2, t)]),
    _reading("content-on-an-unknown-channel", lambda _c, t: [message(999, 1, t)]),
    _reading(
        "bodies-on-unknown-channels",
        lambda _c, _t: (header(each, MIB) for each in range(900, 60_000)),
    ),
    _reading("method-of-a-client", lambda c, _t: [raw_method(c, (60, 41), b"")]),
    _reading("method-on-an-unknown-channel", lambda _c, _t: [method(9, spec.Channel.OpenOk())]),
    _reading("delivery-to-nobody", lambda c, t: [message(c, 1, "nobody"), message(c, 2, t)]),
    _reading("tags-that-jump", lambda c, t: [message(c, 1, t), message(c, 900, t)]),
    _reading("tag-0", lambda c, t: [message(c, 0, t)]),
    _reading("tag-twice", lambda c, t: [message(c, 1, t), message(c, 1, t)]),
    _reading("tag-that-falls", lambda c, t: [message(c, 5, t), message(c, 4, t)]),
    _reading(
        "tag-2-to-64", lambda c, t: [message(c, (1 << 64) - 1, t), message(c, 1, t)]
    ),
    _reading("more-than-was-asked-for", lambda c, t: unasked(c, t, 1)),
    _reading("cancelled", lambda c, t: [method(c, spec.Basic.Cancel(t))]),
    _reading("another-one-cancelled", lambda c, _t: [method(c, spec.Basic.Cancel("x"))]),
    _reading("channel-closed", lambda c, _t: [method(c, spec.Channel.Close(404, _LONG, 0, 0))]),
    _reading("connection-closed", lambda _c, _t: [_END]),
    *(_reading(f"noise-{seed}", _raw(seed)) for seed in range(5)),
    *(_reading(f"noise-in-methods-{seed}", _noisy(METHOD, seed)) for seed in range(5)),
    *(_reading(f"noise-in-headers-{seed}", _noisy(HEADER, seed)) for seed in range(5)),
]  # fmt: skip
_HARMLESS: Final = [
    _harmless(
        "redelivered-255",
        lambda c, t: [
            raw_method(
                c, (60, 60),
                bytes((len(t),)) + t.encode() + struct.pack(">QB", 1, 255) + b"\0\3t.x",
            ),
            content(c, b"1"),
        ],
        1,
    ),
    _harmless(
        "key-of-no-utf-8",
        lambda c, t: [
            raw_method(
                c, (60, 60),
                bytes((len(t),)) + t.encode() + struct.pack(">QB", 1, 0) + b"\0\4t.\xff\xfe",
            ),
            content(c, b"1"),
        ],
        1,
    ),
    _harmless(
        "headers-nested",
        lambda c, t: [
            deliver(c, 1, t),
            header(c, 0, b"\x20\0" + struct.pack(">I", len(nested(5_000))) + nested(5_000)),
        ],
        1,
    ),
    _harmless("headers-cut-off", lambda c, t: [deliver(c, 1, t), header(c, 0, b"\xff\xfe")], 1),
    _harmless("headers-of-zeros", lambda c, t: [deliver(c, 1, t), header(c, 0, bytes(130_000))], 1),
    _harmless("heartbeats", lambda _c, _t: repeat(Heartbeat().marshal() * 1_000, 20)),
    _harmless(
        "blocked-again-and-again",
        lambda _c, _t: repeat(
            method(0, spec.Connection.Blocked(_LONG)) + method(0, spec.Connection.Unblocked()), 500
        ),
    ),
    _harmless("start-when-open", lambda _c, _t: [_GREETING]),
    _harmless(
        "return-of-nothing",
        lambda c, _t: [
            method(c, spec.Basic.Return(312, _LONG, "amq.topic", "t.x")), content(c, b"1")
        ],
    ),
    _harmless("flow-off", lambda c, _t: [method(c, spec.Channel.Flow(False))]),
]  # fmt: skip
_SENDINGS: Final = [
    _sending("silence", lambda _c: []),
    _sending("confirm-0", lambda c: [method(c, spec.Basic.Ack(0))]),
    _sending("confirm-of-another", lambda c: [method(c, spec.Basic.Ack(2))]),
    _sending("confirm-of-all-to-2-to-64", lambda c: [method(c, spec.Basic.Ack(2**64 - 1, True))]),
    _sending("refusal-of-another", lambda c: [method(c, spec.Basic.Nack(1 << 63))]),
    _sending("confirm-cut-off", lambda c: [raw_method(c, (60, 80), b"\0")]),
    _sending(
        "return-of-another-message",
        lambda c: [
            method(c, spec.Basic.Return(312, _LONG, "amq.topic", "t.y")), content(c, b"1"),
            method(c, spec.Basic.Ack(1)),
        ],
    ),
    _sending(
        "return-of-2-to-63",
        lambda c: endless(
            method(c, spec.Basic.Return(312, "x", "amq.topic", "t.x")), header(c, 1 << 63),
            block=frame(BODY, c, bytes(FRAME_MAX - 8)),
        ),
    ),
    _sending("frame-of-4-gib-for-a-confirm", lambda _c: endless(_HUGE, block=bytes(MIB))),
    _sending("channel-closed-for-it", lambda c: [method(c, spec.Channel.Close(404, _LONG, 0, 0))]),
    _sending("connection-closed-for-it", lambda _c: [_END]),
]  # fmt: skip


def _settings(port: int) -> RabbitmqSettings:
    return RabbitmqSettings(
        url=f"amqp://guest:guest@127.0.0.1:{port}/", connect_timeout=2.0, answer_timeout=2.0,
        receive_window=100, receive_window_bytes=MIB,
    )  # fmt: skip


def _honest(request: pytest.FixtureRequest, stack: ExitStack) -> RabbitmqSettings:
    vhost = Vhost(request.getfixturevalue("session_rabbitmq"), "neighbour")
    vhost.api("PUT", "vhosts")
    stack.callback(vhost.api, "DELETE", "vhosts")
    return vhost.settings


RABBITMQ: Final = HostileWire(
    "rabbitmq",
    "rabbitmq",
    "t.#",
    "t.x",
    _settings,
    _honest,
    [*_LOG_INS, *_SOURCES, *_READINGS, *_HARMLESS, *_SENDINGS],
)
