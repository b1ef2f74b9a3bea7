"""Solace structured data types (SDT): bytes to values.

The vendor's Python library cuts byte arrays in maps at their first NUL; this decoder does not.
Limits on elements and containers bound the memory of the values, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value

NULL, BOOLEAN, INTEGER, UNSIGNED, FLOAT, CHARACTER = 0, 1, 2, 3, 4, 5
BYTES, STRING, DESTINATION, SMF, MAP, STREAM = 6, 7, 8, 9, 10, 11
MAX_NESTING: Final = 32  # nested containers
MAX_ELEMENTS: Final = 65_536  # values in one structure; a map entry has two
MAX_SHORT_CONTAINERS: Final = 128  # more containers need 5 bytes each, as their writers use

_CONTAINER_HEAD: Final = 5  # bytes of a container's tag and length, as Solace's libraries write it
_INTEGER_SIZES: Final = frozenset({1, 2, 4, 8})
_CHARACTER_SIZES: Final = frozenset({1, 2, 4})
_F32, _F64 = Struct(">f"), Struct(">d")
_CHARACTERS: Final = range(0x110000)
_SURROGATES: Final = range(0xD800, 0xE000)


def decode_value(data: bytes) -> Value:
    """Return the value encoded in `data`.

    Raises:
        WireError: the data is truncated, has an unknown type or a number of unknown size, is
            nested too deep or has too many elements.
    """
    try:
        value, end = _Reader(data).read(0, len(data), 0)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise WireError(f"smf: malformed structured data: {error}") from error
    if end != len(data):
        raise WireError(f"smf: {len(data) - end} bytes behind the structured data")
    return value


class _Reader:
    """Reads the elements of one structure and counts them.

    Mutable: owned by one call; each element reduces the limits that are left.
    """

    __slots__ = ("_containers", "_data", "_elements")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._elements = MAX_ELEMENTS
        self._containers = max(MAX_SHORT_CONTAINERS, len(data) // _CONTAINER_HEAD)

    def read(self, position: int, end: int, depth: int) -> tuple[Value, int]:
        """Return the element at `position`, and its end."""
        data = self._data
        tag = data[position]
        start = position + 2 + (tag & 3)
        stop = position + int.from_bytes(data[position + 1 : start], "big")
        if not start <= stop <= end:
            raise IndexError(f"element 0x{tag:02x} ends outside")
        kind = tag >> 2
        if kind in {MAP, STREAM}:
            self._count_container(depth)
            items = self._read_items(start, stop, depth + 1)
            return items if kind == STREAM else _map(items), stop
        decode = _SCALARS.get(kind)
        if decode is None:
            raise WireError(f"smf: structured data of type {kind} is not known")
        return decode(data[start:stop]), stop

    def _read_items(self, position: int, end: int, depth: int) -> list[Value]:
        items: list[Value] = []
        while position < end:
            if not self._elements:
                raise WireError(f"smf: structured data has more than {MAX_ELEMENTS} elements")
            self._elements -= 1
            item, position = self.read(position, end, depth)
            items.append(item)
        return items

    def _count_container(self, depth: int) -> None:
        if depth >= MAX_NESTING:
            raise WireError(f"smf: containers are nested deeper than {MAX_NESTING}")
        if not self._containers:
            raise WireError("smf: structured data has more containers than its bytes allow")
        self._containers -= 1


def _map(items: list[Value]) -> dict[str, Value]:
    if len(items) % 2:
        raise WireError("smf: the last key of a map has no value")
    return {str(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


def _integer(value: bytes, *, signed: bool) -> int:
    if len(value) in _INTEGER_SIZES:
        return int.from_bytes(value, "big", signed=signed)
    raise WireError(f"smf: an integer has {len(value)} bytes, expected 1, 2, 4 or 8")


def _character(value: bytes) -> str:
    if len(value) not in _CHARACTER_SIZES:
        raise WireError(f"smf: a character has {len(value)} bytes, expected 1, 2 or 4")
    code = int.from_bytes(value, "big")
    if code in _CHARACTERS and code not in _SURROGATES:
        return chr(code)
    raise WireError(f"smf: {code:#x} is no character")


_SCALARS: Final[Mapping[int, Callable[[bytes], Value]]] = {
    NULL: lambda _: None,
    BOOLEAN: any,
    INTEGER: partial(_integer, signed=True),
    UNSIGNED: partial(_integer, signed=False),
    FLOAT: lambda value: (_F32 if len(value) == _F32.size else _F64).unpack(value)[0],
    CHARACTER: _character,
    BYTES: bytes,
    STRING: lambda value: value.removesuffix(b"\0").decode(),
    DESTINATION: lambda value: value[1:].partition(b"\0")[0].decode(),  # behind its type
    SMF: bytes,
}
