"""The parsers of the drivers of NATS and RabbitMQ, with the gateway's limits around them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

import pika
from nats.errors import ProtocolError
from pika import spec
from pika.channel import Channel

from gateway.endpoints.nats.client import MAX_LINE, GatewayClient
from gateway.endpoints.rabbitmq.client import AmqpClient, ServerFaultError
from tests.fuzz.inputs import around
from tests.fuzz.parser import Parser, in_two

MAX_PAYLOAD: Final = 4_096  # bytes that are kept
FRAME_MAX: Final = 131_072
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8


class _NatsClient(GatewayClient):
    """A client without a connection: it keeps what it reads. Mutable: one message at a time."""

    def __init__(self) -> None:
        super().__init__(encrypted=False)
        self.received: Any = None
        subscription = SimpleNamespace(
            _received=0, _max_msgs=0, _jsi=None, _future=None, _pending_size=0,
            _pending_bytes_limit=0, _pending_queue=SimpleNamespace(put_nowait=self.keep),
        )  # fmt: skip
        self._subs: Any = {1: subscription}
        self._limits = {1: MAX_PAYLOAD}

    def keep(self, message: Any) -> None:  # noqa: ANN401  # the library's
        self.received = message

    async def _process_ping(self) -> None:
        """Answer nobody."""

    async def _process_pong(self) -> None:
        """Wait for no answer."""

    async def _process_err(self, err_msg: str) -> None:
        """End no connection."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Know no other server."""


def nats_lines() -> Parser:
    def parse(data: bytes) -> None:
        client = _NatsClient()

        def feed(part: bytes) -> list[object]:
            with suppress(StopIteration):
                client._ps.parse(part).send(None)  # noqa: SLF001  # the library's
                raise AssertionError("the parser waits")
            return []

        in_two(feed, data)
        assert len(client._ps.buf) <= max(len(data), MAX_LINE)  # noqa: SLF001

    def large() -> Iterator[bytes]:
        yield b"MSG " + b"x" * 1_000_000
        yield b"x" * 1_000_000
        for size in around(MAX_PAYLOAD):
            yield b"MSG t.x 1 %d\r\n%b\r\n" % (size, bytes(size))
            yield b"HMSG t.x 1 12 %d\r\nNATS/1.0\r\n\r\n%b\r\n" % (12 + size, bytes(size))
        yield b"MSG t.x 1 1000000\r\n" + bytes(1_000_000) + b"\r\n"
        yield b"MSG t.x 1 0\r\n\r\n" * 1_000
        headers = b"NATS/1.0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n"
        yield b"HMSG t.x 1 %d %d\r\n%b\r\n" % (len(headers), len(headers), headers)

    return Parser(
        "nats.lines",
        parse,
        (ProtocolError,),
        (
            b"PING\r\nPONG\r\n+OK\r\n",
            b"MSG t.x 1 $JS.ACK.T.c.1.2.3.4.5 3\r\nabc\r\nMSG t.x 2 0\r\n\r\n",
            b"HMSG t.x 1 r 22 25\r\nNATS/1.0\r\nkey: one\r\n\r\nabc\r\n",
            b"HMSG t.x 1 36 36\r\nNATS/1.0 503 No Responders\r\na: b\r\n\r\n\r\n",
            b"INFO {\"headers\": true}\r\n-ERR 'Stale Connection'\r\n",
        ),
        (b"MSG ", b"HMSG ", b"INFO ", b"-ERR ", b"\r\n", b" 1 ", b"NATS/1.0", b"9" * 30, b"\xff"),
        large,
        seconds_per_mebibyte=0.5,  # the library copies what is left after each line
    )


class _AmqpClient(AmqpClient):
    """A client with an open channel and without a socket: it answers nobody."""

    def __init__(self) -> None:
        parameters = pika.ConnectionParameters(frame_max=FRAME_MAX)
        super().__init__(parameters, MAX_PAYLOAD, internal_connection_workflow=False)
        self.channel: Any = Channel(self, 1, lambda _: None)
        self.channel._set_state(Channel.OPEN)  # noqa: SLF001  # the library's
        self.channel._consumers["c"] = lambda *_: None  # noqa: SLF001
        self._channels[1] = self.channel

    def _output_marshaled_frames(self, marshaled_frames: object) -> None:
        """Send nothing."""

    def _terminate_stream(self, error: object) -> None:
        """End nothing."""

    _adapter_connect_stream = _adapter_disconnect_stream = _terminate_stream


def _frame(kind: int, content: bytes, channel: int = 1) -> bytes:
    return struct.pack(">BHI", kind, channel, len(content)) + content + b"\xce"


def _method(method: Any) -> bytes:  # noqa: ANN401  # the library's
    return _frame(METHOD, struct.pack(">I", method.INDEX) + b"".join(method.encode()))


def _delivery(body: bytes, *, claimed: int | None = None, properties: bytes = b"\0\0") -> bytes:
    size = len(body) if claimed is None else claimed
    parts = [body[at : at + 60_000] for at in range(0, len(body), 60_000)]
    return (
        _method(spec.Basic.Deliver("c", 1, False, "e", "k"))
        + _frame(HEADER, struct.pack(">HHQ", 60, 0, size) + properties)
        + b"".join(_frame(BODY, part) for part in parts)
    )


def rabbitmq_frames() -> Parser:
    def parse(data: bytes) -> None:
        client = _AmqpClient()

        def feed(part: bytes) -> list[object]:
            client._on_data_available(part)  # noqa: SLF001  # the library's
            return []

        try:
            in_two(feed, data)
            kept = sum(each.buffer.tell() for each in client._arriving.values())  # noqa: SLF001
            assert kept <= MAX_PAYLOAD
        finally:
            client.ioloop.close()

    def large() -> Iterator[bytes]:
        for size in (*around(MAX_PAYLOAD), 1_000_000):
            yield _delivery(bytes(size))
        yield _delivery(b"x", claimed=1 << 63)
        yield _delivery(b"x" * 5, claimed=4)
        yield _delivery(b"", properties=b"\x20\0\0\0\0\4\1aFI")
        yield _delivery(b"x") * 500
        yield _frame(HEARTBEAT, b"", 0) * 2_000
        for size in around(FRAME_MAX - 8):
            yield struct.pack(">BHI", BODY, 1, size) + bytes(size) + b"\xce"

    return Parser(
        "rabbitmq.frames",
        parse,
        (ServerFaultError,),
        (
            _delivery(b"abc"),
            _delivery(b""),
            _method(spec.Basic.Ack(3, True)) + _method(spec.Basic.Nack(4, False)),
            _method(spec.Basic.Return(312, "NO_ROUTE", "e", "k")) + _delivery(b"x")[28:],
            _method(spec.Channel.Close(404, "no queue", 60, 20)),
            _frame(HEARTBEAT, b"", 0) + _method(spec.Basic.Cancel("c")),
            b"AMQP\0\0\x09\1",
        ),
        (b"\xce", b"\0\x3c\0\x3c", b"\1\0\1", b"\2\0\1", b"\3\0\1", b"\xff" * 8, b"AMQP"),
        large,
        seconds_per_mebibyte=0.5,
    )
