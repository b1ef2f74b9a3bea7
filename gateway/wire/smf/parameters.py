"""Header parameters of SMF messages, in the standard and the light format."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from gateway.errors import WireError

LIGHT_TAG: Final = -1  # light types are negative here: -1 is 0, -2 is 1, and so on
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
OF_ONE_CONNECTION: Final = frozenset(
    {MESSAGE_ID, PREVIOUS_ID, REDELIVERED, FLOW_ID, ACK_MESSAGE_ID, LIGHT_ACK_NOW}
)

U32: Final = Struct(">I")
U64: Final = Struct(">Q")
_LIGHT_FLAG: Final = 0x20
_ELEMENT_SIZES: Final = {0: 0, 1: 1, 2: 2, 3: 4, 4: 8}  # size code of an extended element -> bytes


class Parameter(NamedTuple):
    kind: int  # a standard type, or a negative number for a light one
    value: bytes
    raw: bytes  # the whole parameter, head included


def read_parameters(
    data: bytes, mask: int = 0x1F, fault: str = "header parameter 0x{:02x} ends outside its header"
) -> Iterator[Parameter]:
    """Yield the parameters in order, without padding.

    A type is the bits of `mask`: 0x3F is for fields of assured control, which have no light format.

    Raises:
        WireError: a parameter ends behind the header.
    """
    position, end = 0, len(data)
    while position < end:
        first = data[position]
        if not first:
            position += 1
            continue
        if first & _LIGHT_FLAG & ~mask:
            kind, start = -1 - (first >> 2 & 7), position + 1
            stop = start + (first & 3)
        else:
            kind = first & mask
            start, stop = _value_bounds(data, position)
        if not start <= stop <= end:
            raise WireError(f"smf: {fault.format(first)}")
        yield Parameter(kind, data[start:stop], data[position:stop])
        position = stop


def _value_bounds(data: bytes, position: int) -> tuple[int, int]:
    """Return the start and the end of the value of a standard parameter."""
    size = data[position + 1] if position + 1 < len(data) else -1
    if size:
        return position + 2, position + size
    if position + 6 > len(data):
        return position, -1
    return position + 6, position + int(U32.unpack_from(data, position + 2)[0])


def encode_parameter(kind: int, value: bytes, *, handling: int = 0) -> bytes:
    """Encode a standard parameter; `handling` (0 to 3) is for readers that do not know it."""
    size = len(value) + 2
    if size <= 0xFF:  # what one byte holds
        return bytes((handling << 6 | kind, size)) + value
    return bytes((handling << 6 | kind, 0)) + U32.pack(size + 4) + value


def encode_tag(tag: bytes) -> bytes:
    """Encode the correlation tag (three bytes, repeated in the answer); an empty one gives b""."""
    return b"\x23" + tag if tag else b""


def read_extended(value: bytes) -> dict[int, bytes]:
    """Return the elements of parameter 0x1f by their type.

    Raises:
        WireError: an element ends outside the parameter.
    """
    found: dict[int, bytes] = {}
    position = 0
    while position + 2 <= len(value):
        word = int.from_bytes(value[position : position + 2], "big")
        position += 2
        code = word >> 12 & 7
        if code in _ELEMENT_SIZES:
            start, stop = position, position + _ELEMENT_SIZES[code]
        else:  # code 5: the length takes one byte, code 6: two; it counts the head too
            width = 1 if code == 5 else 2
            start = position + width
            stop = position - 2 + int.from_bytes(value[position:start], "big")
        if not start <= stop <= len(value):
            raise WireError(f"smf: extended parameter 0x{word:04x} ends outside its stream")
        found[word & 0xFFF] = value[start:stop]
        position = stop
    return found
