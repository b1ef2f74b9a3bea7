"""Solace structured data (SDT): bytes to values and back; it knows no message.

The vendor's Python library cuts byte arrays inside maps at their first NUL when it reads them;
this reader does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value

NULL, BOOLEAN, INTEGER, UNSIGNED, FLOAT, CHARACTER = 0, 1, 2, 3, 4, 5
BYTES, STRING, DESTINATION, SMF, MAP, STREAM = 6, 7, 8, 9, 10, 11
DEEPEST: Final = 32  # containers within each other

_F32, _F64 = Struct(">f"), Struct(">d")
_I64_MAX: Final = 2**63 - 1
_CHARACTERS: Final = range(0x110000)
_SURROGATES: Final = range(0xD800, 0xE000)


def decode_value(data: bytes) -> Value:
    """The one value that `data` holds.

    Raises:
        WireError: it is cut off, of an unknown type, or nested too deep.
    """
    try:
        value, end = _read(data, 0, len(data), 0)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise WireError(f"smf: malformed structured data: {error}") from error
    if end != len(data):
        raise WireError(f"smf: {len(data) - end} bytes behind the structured data")
    return value


def encode_value(value: Value) -> bytes:  # noqa: PLR0911  # one return for each type
    """Raises: WireError: an integer past 64 bits, or a type that SDT does not have."""
    match value:
        case None:
            return _element(NULL, b"")
        case bool():
            return _element(BOOLEAN, bytes((value,)))
        case int():
            return _encode_integer(value)
        case float():
            return _element(FLOAT, _F64.pack(value))
        case str():
            return _element(STRING, value.encode() + b"\0")
        case bytes():
            return _element(BYTES, value)
        case Mapping():
            pairs = (encode_value(key) + encode_value(each) for key, each in value.items())
            return _element(MAP, b"".join(pairs), container=True)
        case list() | tuple():
            return _element(STREAM, b"".join(map(encode_value, value)), container=True)


def encode_destination(topic: str) -> bytes:
    return _element(DESTINATION, b"\0" + topic.encode() + b"\0")


def _encode_integer(value: int) -> bytes:
    if not -(2**63) <= value < 2**64:
        raise WireError(f"smf: integer {value} does not fit into 64 bits")
    kind = UNSIGNED if value > _I64_MAX else INTEGER
    return _element(kind, value.to_bytes(8, "big", signed=kind == INTEGER))


def _element(kind: int, value: bytes, *, container: bool = False) -> bytes:
    size = len(value) + 2
    if size <= 0xFF and not container:  # noqa: PLR2004  # what one byte holds
        return bytes((kind << 2, size)) + value
    return bytes((kind << 2 | 3,)) + (len(value) + 5).to_bytes(4, "big") + value


def _read(data: bytes, position: int, end: int, depth: int) -> tuple[Value, int]:
    tag = data[position]
    start = position + 2 + (tag & 3)
    stop = position + int.from_bytes(data[position + 1 : start], "big")
    if not start <= stop <= end:
        raise IndexError(f"element 0x{tag:02x} ends outside")
    kind = tag >> 2
    if kind in {MAP, STREAM}:
        if depth >= DEEPEST:
            raise WireError(f"smf: more than {DEEPEST} containers within each other")
        return _container(kind, _read_items(data, start, stop, depth + 1)), stop
    return _scalar(kind, data[start:stop]), stop


def _read_items(data: bytes, position: int, end: int, depth: int) -> list[Value]:
    items: list[Value] = []
    while position < end:
        item, position = _read(data, position, end, depth)
        items.append(item)
    return items


def _container(kind: int, items: Sequence[Value]) -> Value:
    if kind == STREAM:
        return list(items)
    keys, values = items[::2], items[1::2]
    if len(keys) != len(values):
        raise WireError("smf: a map whose last key has no value")
    return {str(key): value for key, value in zip(keys, values, strict=True)}


def _scalar(kind: int, value: bytes) -> Value:  # noqa: PLR0911  # one return for each type
    match kind:
        case 7:  # STRING
            return value[:-1].decode() if value.endswith(b"\0") else value.decode()
        case 2:  # INTEGER
            return int.from_bytes(value, "big", signed=True)
        case 3:  # UNSIGNED
            return int.from_bytes(value, "big")
        case 6 | 9:  # BYTES, SMF
            return value
        case 0:  # NULL
            return None
        case 1:  # BOOLEAN
            return any(value)
        case 4:  # FLOAT
            unpacked: float = (_F32 if len(value) == _F32.size else _F64).unpack(value)[0]
            return unpacked
        case 5:  # CHARACTER
            return _character(int.from_bytes(value, "big"))
        case 8:  # DESTINATION: a type byte, the name and its NUL
            return value[1:].partition(b"\0")[0].decode()
        case _:
            raise WireError(f"smf: structured data of type {kind} is not known")


def _character(code: int) -> str:
    if code in _CHARACTERS and code not in _SURROGATES:
        return chr(code)
    raise WireError(f"smf: {code:#x} is no character")
