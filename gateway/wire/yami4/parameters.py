"""YAMI4 typed parameters: bytes to a dictionary of values and back.

Every count is checked against the bytes that are there before anything is built from it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gateway.errors import TranslationError, WireError
from gateway.model.message import Value

WORD: Final = struct.Struct("<i")
LONG: Final = struct.Struct("<q")
DOUBLE: Final = struct.Struct("<d")
PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")  # by what is over whole words
EMPTY: Final = WORD.pack(0)  # an object without entries, the smallest body there is
MAX_DEPTH: Final = 64
_ENTRY: Final = 12  # bytes of the smallest entry: empty name, type, one word of value


class Code(IntEnum):
    BOOLEAN = 1
    INTEGER = 2
    LONG = 3
    DOUBLE = 4
    STRING = 5
    BINARY = 6
    BOOLEANS = 7
    INTEGERS = 8
    LONGS = 9
    DOUBLES = 10
    STRINGS = 11
    BINARIES = 12
    OBJECT = 13
    OBJECTS = 14


class Long(int):
    """An integer that arrived as `long long`, and leaves as one however small it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """How deep and how many: entries and array elements together."""

    depth: int = MAX_DEPTH
    values: int = 1_000_000


DEFAULT_LIMITS: Final = ValueLimits()


def blob(data: bytes) -> bytes:
    """Length, bytes, zeros up to a whole word."""
    size = len(data)
    return WORD.pack(size) + data + PADDING[size & 3]


def entry_head(name: str, code: Code) -> bytes:
    return blob(_utf8(name)) + WORD.pack(code)


def encode_parameters(values: Mapping[str, Value]) -> bytes:
    """Write `values` in their order.

    Raises:
        TranslationError: a value YAMI4 has no type for; `rule` says which kind.
    """
    parts: list[bytes] = []
    _put_object(parts, values, 0)
    return b"".join(parts)


def _put_object(parts: list[bytes], values: Mapping[str, Value], depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise TranslationError("yami4", "", "nesting", f"is nested deeper than {MAX_DEPTH}")
    parts.append(WORD.pack(len(values)))
    for name, value in values.items():
        if not isinstance(name, str):
            raise TranslationError("yami4", repr(name), "field-name", "a name must be text")
        code = _code(name, value)
        parts.append(entry_head(name, code))
        if code is Code.OBJECT and isinstance(value, Mapping):
            _put_object(parts, value, depth + 1)
        elif isinstance(value, list | tuple):
            _put_array(parts, code, value, depth)
        else:
            parts.append(_SCALARS[code](value))


def _put_array(
    parts: list[bytes], code: Code, items: list[Value] | tuple[Value, ...], depth: int
) -> None:
    parts.append(WORD.pack(len(items)))
    match code:
        case Code.BOOLEANS:
            bits = sum(1 << place for place, item in enumerate(items) if item)
            parts.append(bits.to_bytes(-(-len(items) // 32) * 4, "little"))
        case Code.OBJECTS:
            for item in items:
                if isinstance(item, Mapping):
                    _put_object(parts, item, depth + 1)
        case _:
            write = _SCALARS[_ELEMENTS[code]]
            parts.extend(write(item) for item in items)


def _code(name: str, value: Value) -> Code:
    if isinstance(value, list | tuple):
        return _array_code(name, value)
    code = next((code for kind, code in _KINDS if isinstance(value, kind)), None)
    if code is None:
        rule = "null-value" if value is None else "value-type"
        raise TranslationError("yami4", name, rule, f"no type for {type(value).__name__}")
    return _integer_code(name, value) if isinstance(value, int) and code is Code.INTEGER else code


def _integer_code(name: str, value: int) -> Code:
    if not -(2**63) <= value < 2**63:
        raise TranslationError("yami4", name, "integer-range", "is outside 64 bits")
    small = -(2**31) <= value < 2**31 and not isinstance(value, Long)
    return Code.INTEGER if small else Code.LONG


def _array_code(name: str, items: list[Value] | tuple[Value, ...]) -> Code:
    if any(isinstance(item, list | tuple) for item in items):
        raise TranslationError("yami4", name, "nested-list", "a list holds no lists here")
    codes = {_code(name, item) for item in items} or {Code.INTEGER}
    if codes == {Code.INTEGER, Code.LONG}:
        return Code.LONGS
    if len(codes) > 1:
        kinds = ", ".join(sorted(code.name.lower() for code in codes))
        raise TranslationError("yami4", name, "mixed-list", f"one list holds {kinds}")
    return _ARRAYS[codes.pop()]


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("yami4", text, "not-utf-8", "is no valid Unicode") from error


def decode_parameters(
    data: bytes,
    limits: ValueLimits = DEFAULT_LIMITS,
    errors: str = "strict",
) -> dict[str, Value]:
    """Read an object; trailing bytes are ignored and a repeated name keeps its last value.

    `errors` is what to do with text that is no UTF-8, as for `bytes.decode`.

    Raises:
        WireError: truncated, an unknown type, too deep, too many values, or not UTF-8.
    """
    reader = _Reader(data, limits, errors)
    try:
        return reader.object()
    except struct.error as error:
        raise reader.fault("it ends too early") from error
    except UnicodeDecodeError as error:
        raise reader.fault("its text is no UTF-8") from error


class _Reader:
    """A place in the bytes, which moves as values are read."""

    __slots__ = ("data", "depth", "errors", "offset", "values")

    def __init__(self, data: bytes, limits: ValueLimits, errors: str) -> None:
        self.data, self.errors, self.offset = data, errors, 0
        self.depth, self.values = limits.depth, limits.values

    def fault(self, reason: str) -> WireError:
        return WireError(f"yami4: parameters at byte {self.offset}: {reason}")

    def word(self) -> int:
        value: int = WORD.unpack_from(self.data, self.offset)[0]
        self.offset += 4
        return value

    def count(self, bits: int) -> int:
        """How many things of at least `bits` bits each follow, checked before they are read."""
        number = self.word()
        if not 0 <= number * bits <= 8 * (len(self.data) - self.offset):
            raise self.fault(f"a count of {number} does not fit what follows")
        self.values -= number
        if self.values < 0:
            raise self.fault("too many values")
        return number

    def take(self, size: int) -> bytes:
        start, self.offset = self.offset, self.offset + size
        if self.offset > len(self.data):
            raise self.fault("it ends too early")
        return self.data[start : self.offset]

    def blob(self) -> bytes:
        size = self.word()
        if size < 0:
            raise self.fault(f"a length of {size}")
        data = self.take(size)
        self.take(-size % 4)
        return data

    def text(self) -> str:
        return self.blob().decode("utf-8", self.errors)

    def object(self) -> dict[str, Value]:
        self.depth -= 1
        if self.depth < 0:
            raise self.fault("nested too deep")
        values: dict[str, Value] = {}
        for _ in range(self.count(8 * _ENTRY)):
            name = self.text()
            code = self.word()
            read = _READERS.get(code)
            if read is None:
                raise self.fault(f"unknown type {code}")
            values[name] = read(self)
        self.depth += 1
        return values

    def booleans(self) -> list[Value]:
        number = self.count(1)
        bits = int.from_bytes(self.take(-(-number // 32) * 4), "little")
        return (
            [digit == "1" for digit in f"{bits:0{number}b}"[: -number - 1 : -1]] if number else []
        )

    def numbers(self, letter: str, width: int) -> list[Value]:
        number = self.count(8 * width)
        return list(struct.unpack(f"<{number}{letter}", self.take(number * width)))


def _boolean(value: Value) -> bytes:
    return WORD.pack(bool(value))


def _text(value: Value) -> bytes:
    return blob(_utf8(str(value)))


_SCALARS: Final[Mapping[Code, Callable[..., bytes]]] = {
    Code.BOOLEAN: _boolean,
    Code.INTEGER: WORD.pack,
    Code.LONG: LONG.pack,
    Code.DOUBLE: DOUBLE.pack,
    Code.STRING: _text,
    Code.BINARY: blob,
}
_KINDS: Final = (  # bool before int: a bool is an int too
    (str, Code.STRING),
    (bool, Code.BOOLEAN),
    (int, Code.INTEGER),
    (bytes, Code.BINARY),
    (float, Code.DOUBLE),
    (Mapping, Code.OBJECT),
)
_ARRAYS: Final = {
    Code.BOOLEAN: Code.BOOLEANS,
    Code.INTEGER: Code.INTEGERS,
    Code.LONG: Code.LONGS,
    Code.DOUBLE: Code.DOUBLES,
    Code.STRING: Code.STRINGS,
    Code.BINARY: Code.BINARIES,
    Code.OBJECT: Code.OBJECTS,
}
_ELEMENTS: Final = {array: element for element, array in _ARRAYS.items()}
_READERS: Final[Mapping[int, Callable[[_Reader], Value]]] = {
    Code.BOOLEAN: lambda reader: reader.word() != 0,
    Code.INTEGER: _Reader.word,
    Code.LONG: lambda reader: Long(LONG.unpack(reader.take(8))[0]),
    Code.DOUBLE: lambda reader: float(DOUBLE.unpack(reader.take(8))[0]),
    Code.STRING: _Reader.text,
    Code.BINARY: _Reader.blob,
    Code.BOOLEANS: _Reader.booleans,
    Code.INTEGERS: lambda reader: reader.numbers("i", 4),
    Code.LONGS: lambda reader: [Long(value) for value in reader.numbers("q", 8)],  # type: ignore[arg-type]
    Code.DOUBLES: lambda reader: reader.numbers("d", 8),
    Code.STRINGS: lambda reader: [reader.text() for _ in range(reader.count(32))],
    Code.BINARIES: lambda reader: [reader.blob() for _ in range(reader.count(32))],
    Code.OBJECT: _Reader.object,
    Code.OBJECTS: lambda reader: [reader.object() for _ in range(reader.count(32))],
}
