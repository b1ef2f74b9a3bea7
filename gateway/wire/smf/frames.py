"""SMF framing: a stream of bytes to whole messages and back."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from gateway.errors import WireError

HEADER_SIZE: Final = 12
GUARANTEED: Final = 0x10  # in byte 0: the message is acknowledged
DISCARDED: Final = 0x80  # in byte 0: messages before this one were dropped
DMQ_ELIGIBLE: Final = 0x08  # in byte 0: goes to the dead message queue when rejected
MAX_MESSAGE: Final = 32 << 20  # bytes of one message, header included
MAX_HEADER: Final = 1 << 20  # bytes of the header with its parameters

_VERSION: Final = 3
_LENGTHS: Final = Struct(">II")
_HEAD: Final = Struct(">BBBBII")


class Protocol(IntEnum):
    """The low six bits of byte 1."""

    ASSURED_CONTROL = 0x09
    KEEPALIVE = 0x0B
    CLIENT_CONTROL = 0x0C
    MESSAGE = 0x0D
    SUBSCRIPTION = 0x0F


def protocol_of(frame: bytes) -> int:
    """Return the protocol number of a whole message; it may be unknown."""
    return frame[1] & 0x3F


def split_frame(frame: bytes) -> tuple[bytes, bytes]:
    """Return the header parameters and the body of a message from `SmfDecoder`."""
    header_size: int = _LENGTHS.unpack_from(frame, 4)[0]
    return frame[HEADER_SIZE:header_size], frame[header_size:]


def encode_frame(
    protocol: int, parameters: bytes, body: bytes = b"", *, flags: int = 0, time_to_live: int = 1
) -> bytes:
    """Return a whole message; `protocol` may include the two bits for unknown-protocol handling."""
    header_size = HEADER_SIZE + len(parameters)
    head = _HEAD.pack(
        flags | _VERSION, protocol, 0, time_to_live, header_size, header_size + len(body)
    )
    return head + parameters + body


class SmfDecoder:
    """Collects slices of bytes and returns whole messages.

    It holds an incomplete message of at most `max_message` bytes, plus one slice. After a WireError
    it cannot be used.
    Mutable: owned by the receiving thread.
    """

    def __init__(self, max_message: int = MAX_MESSAGE, max_header: int = MAX_HEADER) -> None:
        self._max_message, self._max_header = max_message, max_header
        self._slices: list[bytes] = []
        self._needed = HEADER_SIZE  # bytes that complete the next message or its header
        self.held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes.

        Raises:
            WireError: the bytes are not SMF, or a message is longer than allowed.
        """
        self.held += len(data)
        if self._slices:
            self._slices.append(data)
            if self.held < self._needed:
                return []
            data = b"".join(self._slices)
            self._slices.clear()
        return self._split(data)

    def _split(self, data: bytes) -> list[bytes]:
        frames: list[bytes] = []
        position, end = 0, len(data)
        self._needed = HEADER_SIZE
        while position < end:
            if data[position] & 7 != _VERSION:
                raise WireError(f"smf: version {data[position] & 7} is not {_VERSION}")
            if end - position < HEADER_SIZE:
                break
            header, total = _LENGTHS.unpack_from(data, position + 4)
            if total > self._max_message:
                raise WireError(f"smf: message size {total} is above {self._max_message}")
            if not HEADER_SIZE <= header <= total or header > self._max_header:
                limit = min(total, self._max_header)
                raise WireError(f"smf: header size {header} is outside 12..{limit}")
            if end - position < total:
                self._needed = total
                break
            frames.append(data[position : position + total])
            position += total
        self.held = end - position
        if self.held:
            self._slices.append(data[position:])
        return frames
