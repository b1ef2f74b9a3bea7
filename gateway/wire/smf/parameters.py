"""Header parameters of SMF messages: the two formats, read and written; it keeps no state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from gateway.errors import WireError

LIGHT_TAG: Final = -1  # light types are negative here: -1 is 0, -2 is 1, and so on
LIGHT_TOPIC: Final = -2
LIGHT_QUEUE: Final = -3
LIGHT_ACK_NOW: Final = -4

PUBLISHER_ID: Final = 0x01
PRIORITY: Final = 0x03
USER: Final = 0x06
PASSWORD: Final = 0x07
RESPONSE: Final = 0x08
DELIVERY_MODE: Final = 0x10
MESSAGE_ID: Final = 0x11
PREVIOUS_ID: Final = 0x12
REDELIVERED: Final = 0x13
SUMMARY: Final = 0x16
FLOW_ID: Final = 0x17
TOPIC: Final = 0x18
ACK_MESSAGE_ID: Final = 0x19
TIME_TO_LIVE: Final = 0x1C
EXTENDED: Final = 0x1F

U32: Final = Struct(">I")
U64: Final = Struct(">Q")
_LIGHT: Final = 0x20
_SIZES: Final = {0: 0, 1: 1, 2: 2, 3: 4, 4: 8}  # size code of an extended element -> bytes


class Parameter(NamedTuple):
    kind: int  # a standard type, or a negative number for a light one
    value: bytes
    raw: bytes  # as it came, head included


@dataclass(frozen=True, slots=True)
class Response:
    """What the broker answers: a code and a text that clients match, case included."""

    code: int
    text: str


OK: Final = Response(200, "OK")


def read_parameters(data: bytes) -> Iterator[Parameter]:
    """The parameters in their order; padding is skipped.

    Raises:
        WireError: one of them ends after the header does.
    """
    position, end = 0, len(data)
    while position < end:
        first = data[position]
        if not first:
            position += 1
            continue
        if first & _LIGHT:
            kind, start = -1 - (first >> 2 & 7), position + 1
            stop = start + (first & 3)
        else:
            kind = first & 0x1F
            start, stop = _bounds(data, position)
        if not start <= stop <= end:
            raise WireError(f"smf: header parameter 0x{first:02x} ends outside its header")
        yield Parameter(kind, data[start:stop], data[position:stop])
        position = stop


def _bounds(data: bytes, position: int) -> tuple[int, int]:
    """Where the value of a standard parameter begins and ends."""
    size = data[position + 1] if position + 1 < len(data) else -1
    if size:
        return position + 2, position + size
    if position + 6 > len(data):
        return position, -1
    return position + 6, position + int(U32.unpack_from(data, position + 2)[0])


def encode_parameter(kind: int, value: bytes, *, handling: int = 0) -> bytes:
    """A standard parameter; `handling` is what a reader does that does not know it, 0 to 3."""
    size = len(value) + 2
    if size <= 0xFF:  # noqa: PLR2004  # what one byte holds
        return bytes((handling << 6 | kind, size)) + value
    return bytes((handling << 6 | kind, 0)) + U32.pack(size + 4) + value


def encode_tag(tag: bytes) -> bytes:
    """The correlation tag, three bytes that are repeated in the answer; nothing for nothing."""
    return b"\x23" + tag if tag else b""


def encode_response(response: Response) -> bytes:
    return encode_parameter(RESPONSE, U32.pack(response.code) + response.text.encode())


def decode_response(value: bytes) -> Response:
    """Raises: WireError: it has no code."""
    if len(value) < U32.size:
        raise WireError("smf: a response without a code")
    return Response(U32.unpack_from(value)[0], value[4:].decode("utf-8", "replace"))


def read_number(value: bytes, what: str, size: int) -> int:
    """An unsigned number of exactly `size` bytes.

    Raises:
        WireError: it has another size.
    """
    if len(value) != size:
        raise WireError(f"smf: {what} has {len(value)} bytes instead of {size}")
    return int.from_bytes(value, "big")


def read_extended(value: bytes) -> dict[int, bytes]:
    """The elements of parameter 0x1f by their type; 4 bytes of length come first.

    Raises:
        WireError: an element ends outside of it.
    """
    found: dict[int, bytes] = {}
    position = 0
    while position + 2 <= len(value):
        word = int.from_bytes(value[position : position + 2], "big")
        position += 2
        code = word >> 12 & 7
        if code in _SIZES:
            start, stop = position, position + _SIZES[code]
        else:  # code 5: the length takes one byte, code 6: two; it counts the head too
            width = 1 if code == 5 else 2  # noqa: PLR2004
            start = position + width
            stop = position - 2 + int.from_bytes(value[position:start], "big")
        if not start <= stop <= len(value):
            raise WireError(f"smf: extended parameter 0x{word:04x} ends outside of its stream")
        found[word & 0xFFF] = value[start:stop]
        position = stop
    return found
