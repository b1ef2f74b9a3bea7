"""The client of pika, with limits at what a server sends, and messages as they arrived.

A frame has at most the size that was agreed on. The body of a message is put together here, and
one that is longer than `max_body` is dropped as it arrives: the message comes without it. All else
that no server of RabbitMQ sends ends the connection, and `fault` says why.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import pika
from pika.exceptions import AMQPError, ChannelWrongStateError, ConnectionClosedByClient
from pika.frame import Body, Header, Heartbeat, decode_frame
from pika.heartbeat import HeartbeatChecker

from gateway.endpoints.rabbitmq.blocks import (
    BLOCK,
    BODY,
    END,
    FRAME,
    HEADER,
    HEADER_START,
    METHOD,
    Confirm,
    read_confirms,
    read_delivery,
    write_messages,
)
from gateway.endpoints.settings.rabbitmq import MAX_BODY
from gateway.errors import first_line
from gateway.untyped import Untyped

log = logging.getLogger(__name__)

MIN_FRAME: Final = 4_096  # bytes: AMQP 0-9-1, 4.2.3
_CONTENT: Final = struct.Struct(">HHQ")  # class, weight, size of the body
# The library's errors at what no server sends.
_MALFORMED: Final = (
    AMQPError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class Properties:
    """Received properties, as they were encoded.

    `dropped` is the size of a body that was too long; 0 for a message with its body.
    """

    encoded: bytes
    dropped: int = 0


class ServerFaultError(Exception):
    """A fault of the server: it sent something that no server sends."""


@dataclass(slots=True)
class _Arriving:
    """A body that arrives. Mutable: what it has, and how much is still to come.

    One that is too long has no buffer, and the header that stands for its message.
    """

    left: int
    buffer: BytesIO
    instead: Header | None = None


class _PatientChecker(HeartbeatChecker):  # type: ignore[misc]  # pika has no types
    """Notices no silence of a server of which nothing is read."""

    @property
    def _has_received_data(self) -> bool:
        has_received: bool = super()._has_received_data
        return has_received or self._connection.paused


class AmqpClient(pika.SelectConnection):  # type: ignore[misc]  # pika has no types
    """Does not decode properties: a strange header of one message would end the connection."""

    def __init__(self, parameters: pika.Parameters, max_body: int, **options: Untyped) -> None:
        self.max_body = max_body
        self.fault: ServerFaultError | None = None
        self.paused = False  # nothing is read
        self.skipping = False  # no body is kept
        self._arriving: dict[int, _Arriving] = {}  # by channel
        self._confirmed: dict[int, Callable[[list[Confirm]], object]] = {}  # by channel
        self._rest = b""  # of a frame that has begun
        super().__init__(parameters, **options)

    def confirm(
        self,
        channel: Untyped,
        taken: Callable[[list[Confirm]], object],
        callback: Callable[[Any], object],
    ) -> None:
        """Ask for confirms on a channel, for `taken`; `callback` gets the server's answer."""
        self._confirmed[channel.channel_number] = taken
        channel.confirm_delivery(lambda _frame: None, callback)

    def publish(self, channel: Untyped, messages: Iterable[tuple[bytes, bytes, bytes]]) -> None:
        """Send messages: method, properties and body of each.

        Raises:
            AMQPError: the channel is not open.
        """
        if not channel.is_open:
            raise ChannelWrongStateError("Channel is closed.")
        number, longest = channel.channel_number, self._body_max_length
        self._output_marshaled_frames(write_messages(number, messages, longest))

    def _proto_connection_made(self, transport: Untyped) -> None:
        transport._MAX_RECV_BYTES = BLOCK  # noqa: SLF001  # else 4 KiB
        super()._proto_connection_made(transport)

    def _on_data_available(self, data_in: bytes) -> None:
        """Read; whatever an error is, the library then ends the connection."""
        self.bytes_received += len(data_in)
        data, at = self._rest + data_in, 0
        try:
            while (after := self._read_next(data, at)) > at:
                at = after
        except ServerFaultError as error:
            self.fault = error
            raise
        except _MALFORMED as error:
            log.debug("malformed answer of a server", exc_info=True)
            self.fault = ServerFaultError(
                f"the server gave a malformed answer ({first_line(error)})"
            )
            raise self.fault from error
        self._rest = data[at:]

    def _read_next(self, data: bytes, at: int) -> int:
        """Read what begins at `at`; return where it ends, which is `at` if it is not whole."""
        return (
            self._read_delivery(data, at)
            or self._read_confirms(data, at)
            or self._read_frame_at(data, at)
        )

    def _read_delivery(self, data: bytes, at: int) -> int:
        """Hand over a message as the library does; return its end, 0 for all else."""
        most = self.params.frame_max
        found = read_delivery(data, at, most, 0 if self.skipping else min(most, self.max_body))
        if found is None:
            return 0
        delivery, end = found
        channel = self._channels.get(delivery.channel)
        if channel is None or self._awaits_content(delivery.channel):
            return 0
        consume = channel._consumers.get(delivery.consumer)  # noqa: SLF001  # the driver's
        if consume is None or delivery.consumer in channel._cancelled:  # noqa: SLF001
            return 0
        consume(channel, delivery, delivery, delivery.body)
        return end

    def _read_confirms(self, data: bytes, at: int) -> int:
        """Hand over confirms; return the end of the last one, 0 for all else."""
        found, end = read_confirms(data, at)
        taken = self._confirmed.get(found[0].channel) if found else None
        if taken is None or self._awaits_content(found[0].channel):
            return 0
        taken(found)
        return end

    def _read_frame_at(self, data: bytes, at: int) -> int:
        """Have the library process a frame; return its end, or `at` if it is not whole."""
        size, frame = self._decode(data, at)
        if size:
            self._process_frame(frame)
        return at + size

    def _decode(self, data: bytes, at: int) -> tuple[int, Any]:
        """Return the size of a frame and its content, or 0 if it is not whole."""
        found: tuple[int, Any]
        if len(data) - at < FRAME.size or data.startswith(b"AMQP", at):
            found = decode_frame(data[at:])
            return found
        kind, channel, size = FRAME.unpack_from(data, at)
        start, most = at + FRAME.size, self.params.frame_max
        end = start + size
        if FRAME.size + size >= most:
            raise _fault(f"a frame of {size} bytes, limit {most - FRAME.size - 1}")
        if len(data) <= end:
            return 0, None
        if data[end] != END:
            raise _fault("a frame without an end")
        if channel and channel not in self._channels:
            raise _fault(f"a frame on channel {channel}, which is not open")
        whole = FRAME.size + size + 1
        if kind == HEADER:
            return whole, self._begin(channel, data[start:end])
        if kind == BODY:
            return whole, self._continue(channel, memoryview(data)[start:end])
        if kind == METHOD and self._awaits_content(channel):
            raise _fault("a method within a message")
        found = decode_frame(data[at : end + 1])
        return found

    def _awaits_content(self, channel: int) -> bool:
        """Return whether a message of the channel has begun; its frames follow one another."""
        if channel not in self._channels:
            return False
        assembler = self._channels[channel]._content_assembler  # noqa: SLF001  # the driver's
        return assembler._method_frame is not None  # noqa: SLF001

    def _begin(self, channel: int, content: bytes) -> Untyped:
        """Return the header of a message; a frame without effect where its body is too long."""
        _, _, size = _CONTENT.unpack_from(content)
        if channel in self._arriving or not self._awaits_content(channel):
            raise _fault("a header without a message")
        if size > MAX_BODY:
            raise _fault(f"a message of {size} bytes")
        encoded = content[HEADER_START:]
        if size > (0 if self.skipping else self.max_body):
            instead = Header(channel, 0, Properties(encoded, size))
            self._arriving[channel] = _Arriving(size, BytesIO(), instead)
            return Heartbeat()
        if size:
            self._arriving[channel] = _Arriving(size, BytesIO())
        return Header(channel, size, Properties(encoded))

    def _continue(self, channel: int, fragment: memoryview) -> Untyped:
        """Return the whole body with its last frame; before that a frame without effect."""
        body = self._arriving.get(channel)
        if body is None or not 0 < len(fragment) <= body.left:
            raise _fault(f"{len(fragment)} bytes for a body that has other ones")
        body.left -= len(fragment)
        if body.instead is None:
            body.buffer.write(fragment)
        if body.left:
            return Heartbeat()
        del self._arriving[channel]
        return body.instead or Body(channel, body.buffer.getvalue())

    def _on_connection_tune(self, method_frame: Untyped) -> None:
        if 0 < (most := method_frame.method.frame_max) < MIN_FRAME:
            raise _fault(f"{most} bytes as the largest frame")
        super()._on_connection_tune(method_frame)

    def _create_heartbeat_checker(self) -> HeartbeatChecker | None:
        return _PatientChecker(self, self.params.heartbeat) if self.params.heartbeat else None

    def pause(self) -> None:
        """Read nothing more; heartbeats and answers still leave."""
        transport = self._transport
        if transport is None or self.paused:
            return
        self.paused = True
        transport._nbio.remove_reader(transport._sock.fileno())  # noqa: SLF001  # the driver's
        if hasattr(transport, "_ssl_readable_action"):  # it calls itself, without the socket
            transport._ssl_readable_action = None  # noqa: SLF001

    def resume(self) -> None:
        """Read again, also what TLS has decrypted already."""
        transport = self._transport
        if transport is None or not self.paused:
            return
        self.paused = False
        read = transport._on_socket_readable  # noqa: SLF001  # the driver's
        if hasattr(transport, "_ssl_readable_action"):
            transport._ssl_readable_action = transport._consume  # noqa: SLF001
        transport._nbio.set_reader(transport._sock.fileno(), read)  # noqa: SLF001
        transport._nbio.add_callback_threadsafe(read)  # noqa: SLF001

    def leave(self) -> None:
        """Say the end of the connection, and nothing of channels and consumers.

        `Connection.close` of pika cancels each consumer first: the server gives the next reader
        newer messages before the unsettled ones, or its queue breaks down (RabbitMQ 3.10).
        """
        self._error = ConnectionClosedByClient(200, "closed")
        self._set_connection_state(self.CONNECTION_CLOSING)
        self._on_close_ready()

    def drop(self) -> None:
        """Close the socket without an answer of the server; or stop connecting."""
        if self._transport is not None:
            self._transport.abort()
        elif not (self.is_closing or self.is_closed):
            self.close()


def _fault(what: str) -> ServerFaultError:
    return ServerFaultError(f"the server sent {what}")
