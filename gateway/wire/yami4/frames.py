"""YAMI4 frames: bytes to whole messages and back.

A message is a header and a body, split into frames of a 16-byte head and a payload.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.errors import WireError
from gateway.model.message import DroppedPayload

Packet: TypeAlias = tuple[bytes, bytes]  # header, body

HEAD: Final = struct.Struct("<iiii")  # wire id, frame number, header size, payload size
MAX_FRAME: Final = 4096  # bytes with the head; the default of every peer
WORD: Final = 4
_SINGLE: Final = -1  # frame number of a message of one frame
_INVALID_NUMBERS: Final = (0, -(2**31))  # of no whole message; such frames are dropped
_FRAME_COST: Final = 128  # bytes of memory of a waiting frame beside its payload


def encode_message(wire_id: int, header: bytes, body: bytes, max_frame: int = MAX_FRAME) -> bytes:
    """Split one message into frames; the body must hold at least one word."""
    size = len(header) + len(body)
    if size + HEAD.size <= max_frame:
        return b"".join((HEAD.pack(wire_id, _SINGLE, len(header), size), header, body))
    return _encode_frames(wire_id, len(header), header + body, max_frame - HEAD.size)


def _encode_frames(wire_id: int, header_size: int, content: bytes, step: int) -> bytes:
    parts: list[bytes] = []
    for number, start in enumerate(range(0, len(content), step), start=1):
        payload = content[start : start + step]
        signed = -number if start + step >= len(content) else number
        parts += (HEAD.pack(wire_id, signed, header_size, len(payload)), payload)
    return b"".join(parts)


def to_wire_id(number: int) -> int:
    """Return the wire id of a connection's message number, counted from 1; it wraps at 2**31."""
    return (number - 1) % 0x7FFFFFFF + 1


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """Limits of the memory that one connection may occupy."""

    payload: int = 16 << 20  # bytes of one frame
    message: int = 16 << 20  # bytes of one message of several frames
    held: int = 32 << 20  # bytes of all incomplete messages, with the cost of their frames
    incomplete: int = 256  # incomplete messages


DEFAULT_LIMITS: Final = FrameLimits()


@dataclass(slots=True)
class _Incomplete:
    """The frames of one message that have arrived.

    Mutable: it grows until the last gap is filled.
    """

    payloads: dict[int, bytes] = field(default_factory=dict)
    header_size: int = 0
    last: int = 0  # number of the last frame; 0 while unknown
    size: int = 0  # bytes that have arrived
    kept: int = 0  # bytes in `payloads`, or in `header` once the message is too large
    header: bytes | None = None  # of a message that is too large, if it came first


class FrameDecoder:
    """Takes bytes in any slices and returns whole messages.

    A protocol error ends the stream: `feed` returns the messages before it and leaves the error in
    `fault`, or raises it when there were none. Frames numbered 0 or INT_MIN are dropped, as no
    whole message contains them. With `skip_large`, a message of several frames that exceeds its
    limit is not an error: its body is a `DroppedPayload`, of which nothing is kept as it comes. It
    is skipped and counted in `skipped` if its header does not come before the rest.
    Mutable: used by one thread at a time.
    """

    def __init__(self, limits: FrameLimits = DEFAULT_LIMITS, *, skip_large: bool = False) -> None:
        self.fault: WireError | None = None
        self.skipped = 0
        self._limits, self._skip_large = limits, skip_large
        self._rest = bytearray()
        self._needed = 0  # bytes; with fewer in `_rest` no frame is whole
        self._messages: dict[int, _Incomplete] = {}
        self._collected = 0

    @property
    def held(self) -> int:
        """Bytes kept for incomplete frames and messages."""
        return len(self._rest) + self._collected

    def feed(self, data: bytes) -> list[Packet]:
        if self.fault is not None:
            raise self.fault
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        packets: list[Packet] = []
        try:
            self._split(data, packets)
        except WireError as error:
            self.fault = error
            self._rest.clear()
            self._messages.clear()
            self._collected = 0
            if not packets:
                raise
        return packets

    def _split(self, data: bytes, packets: list[Packet]) -> None:
        unpack, maximum, end = HEAD.unpack_from, self._limits.payload, len(data)
        offset, needed = 0, HEAD.size
        while end - offset >= HEAD.size:
            wire_id, number, header_size, size = unpack(data, offset)
            if not 0 < size <= maximum or size % WORD:
                raise WireError(f"yami4: payload size {size} is outside 4..{maximum}, step 4")
            start = offset + HEAD.size
            stop = start + size
            if stop > end:
                needed = HEAD.size + size
                break
            if number == _SINGLE:
                _check_header_size(header_size, size)
                body = start + header_size
                packets.append((data[start:body], data[body:stop]))
            elif number not in _INVALID_NUMBERS:
                self._collect(wire_id, number, header_size, data[start:stop], packets)
            offset = stop
        if offset < end:
            self._rest += memoryview(data)[offset:]
        self._needed = needed

    def _collect(
        self, wire_id: int, number: int, header_size: int, payload: bytes, packets: list[Packet]
    ) -> None:
        message = self._messages.get(wire_id)
        if message is None:
            if len(self._messages) >= self._limits.incomplete:
                raise WireError(f"yami4: {self._limits.incomplete} messages are incomplete")
            message = self._messages[wire_id] = _Incomplete()
        if abs(number) == 1:
            message.header_size = header_size
        self._keep(message, wire_id, number, payload)
        if len(message.payloads) == message.last:
            self._remove(wire_id, message)
            _check_header_size(message.header_size, message.size)
            if message.header is not None:
                packets.append((message.header, DroppedPayload(message.size - len(message.header))))
                return
            if message.kept < message.size:
                self.skipped += 1
                return
            content = b"".join(message.payloads[n] for n in range(1, message.last + 1))
            packets.append((content[: message.header_size], content[message.header_size :]))

    def _keep(self, message: _Incomplete, wire_id: int, number: int, payload: bytes) -> None:
        index = abs(number)
        if number < 0:
            if message.last or index < max(message.payloads, default=0):
                raise WireError(f"yami4: message {wire_id} has two ends, {message.last}, {index}")
            message.last = index
        if index in message.payloads or (message.last and index > message.last):
            raise WireError(f"yami4: frame {index} of message {wire_id} has no place in it")
        message.size += len(payload)
        if message.size > self._limits.message:
            self._free_payloads(wire_id, message)
            payload = b""
        message.payloads[index] = payload
        message.kept += len(payload)
        self._collected += len(payload) + _FRAME_COST
        if self._collected > self._limits.held:
            raise WireError(f"yami4: incomplete messages are over {self._limits.held} bytes")

    def _free_payloads(self, wire_id: int, message: _Incomplete) -> None:
        """Free the payloads of a message that is too large; frame numbers and header stay."""
        if not self._skip_large:
            raise WireError(f"yami4: message {wire_id} is over {self._limits.message} bytes")
        if message.kept and message.header is None:
            message.header = _read_header(message)
            message.payloads = dict.fromkeys(message.payloads, b"")
            self._collected -= message.kept
            message.kept = len(message.header or b"")
            self._collected += message.kept

    def _remove(self, wire_id: int, message: _Incomplete) -> None:
        del self._messages[wire_id]
        self._collected -= message.kept + _FRAME_COST * len(message.payloads)


def _read_header(message: _Incomplete) -> bytes | None:
    """Return the header if the first frames have it whole."""
    found, size = bytearray(), message.header_size
    for number in range(1, len(message.payloads) + 1):
        if len(found) >= size or number not in message.payloads:
            break
        found += message.payloads[number]
    return bytes(found[:size]) if 0 < size <= len(found) else None


def _check_header_size(header_size: int, size: int) -> None:
    if not 0 <= header_size < size or header_size % WORD:
        raise WireError(f"yami4: header size {header_size} is outside 0..{size - WORD}, step 4")
