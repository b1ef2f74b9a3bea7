"""YAMI4 typed parameters: bytes to a dictionary of values and back.

Every count is checked against the bytes that follow before anything is allocated for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from gateway.errors import TranslationError, WireError
from gateway.model.dead_letter_rule import (
    FIELD_NAME,
    INTEGER_RANGE,
    MIXED_LIST,
    NESTED_LIST,
    NESTING,
    NOT_UTF_8,
    NULL_VALUE,
    VALUE_TYPE,
)
from gateway.model.message import Value

WORD: Final = struct.Struct("<i")
LONG: Final = struct.Struct("<q")
DOUBLE: Final = struct.Struct("<d")
PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")  # by the bytes after the last whole word
EMPTY: Final = WORD.pack(0)  # an object without entries, the smallest body there is
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 1_000_000
_MIN_ENTRY: Final = 12  # bytes of the smallest entry: empty name, type, one word of value
_LARGE: Final = 4  # numbers that take the memory of an entry, a text, a binary or an object


class TypeCode(IntEnum):
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
    """An integer of the type `long long`; it is written as one, however small it is."""

    __slots__ = ()


def encode_blob(data: bytes) -> bytes:
    """Return the length, the bytes, and zeros up to a whole word."""
    size = len(data)
    return WORD.pack(size) + data + PADDING[size & 3]


def entry_head(name: str, code: TypeCode) -> bytes:
    return encode_blob(_utf8(name)) + WORD.pack(code)


def encode_parameters(values: Mapping[str, Value]) -> bytes:
    """Encode `values` in their order.

    Raises:
        TranslationError: YAMI4 has no type for a value; `rule` names the reason.
    """
    parts: list[bytes] = []
    _append_object(parts, values, 0)
    return b"".join(parts)


def _append_object(parts: list[bytes], values: Mapping[str, Value], depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise TranslationError("yami4", "", NESTING, f"is nested deeper than {MAX_DEPTH}")
    parts.append(WORD.pack(len(values)))
    for name, value in values.items():
        if not isinstance(name, str):
            raise TranslationError("yami4", repr(name), FIELD_NAME, "a name must be text")
        code = _type_code(name, value)
        parts.append(entry_head(name, code))
        if code is TypeCode.OBJECT and isinstance(value, Mapping):
            _append_object(parts, value, depth + 1)
        elif isinstance(value, list | tuple):
            _append_array(parts, code, value, depth)
        else:
            parts.append(_SCALAR_WRITERS[code](value))


def _append_array(
    parts: list[bytes], code: TypeCode, items: list[Value] | tuple[Value, ...], depth: int
) -> None:
    parts.append(WORD.pack(len(items)))
    match code:
        case TypeCode.BOOLEANS:
            bits = sum(1 << position for position, item in enumerate(items) if item)
            parts.append(bits.to_bytes(-(-len(items) // 32) * 4, "little"))
        case TypeCode.OBJECTS:
            for item in items:
                if isinstance(item, Mapping):
                    _append_object(parts, item, depth + 1)
        case _:
            write = _SCALAR_WRITERS[_ELEMENT_CODES[code]]
            parts.extend(write(item) for item in items)


def _type_code(name: str, value: Value) -> TypeCode:
    if isinstance(value, list | tuple):
        return _array_code(name, value)
    code = next((code for kind, code in _TYPE_CODES if isinstance(value, kind)), None)
    if code is None:
        rule = NULL_VALUE if value is None else VALUE_TYPE
        raise TranslationError("yami4", name, rule, f"no type for {type(value).__name__}")
    if isinstance(value, int) and code is TypeCode.INTEGER:
        return _integer_code(name, value)
    return code


def _integer_code(name: str, value: int) -> TypeCode:
    if not -(2**63) <= value < 2**63:
        raise TranslationError("yami4", name, INTEGER_RANGE, "is outside 64 bits")
    small = -(2**31) <= value < 2**31 and not isinstance(value, Long)
    return TypeCode.INTEGER if small else TypeCode.LONG


def _array_code(name: str, items: list[Value] | tuple[Value, ...]) -> TypeCode:
    if any(isinstance(item, list | tuple) for item in items):
        raise TranslationError("yami4", name, NESTED_LIST, "a list holds no lists here")
    codes = {_type_code(name, item) for item in items} or {TypeCode.INTEGER}
    if codes == {TypeCode.INTEGER, TypeCode.LONG}:
        return TypeCode.LONGS
    if len(codes) > 1:
        kinds = ", ".join(sorted(code.name.lower() for code in codes))
        raise TranslationError("yami4", name, MIXED_LIST, f"one list holds {kinds}")
    return _ARRAY_CODES[codes.pop()]


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("yami4", text, NOT_UTF_8, "is no valid Unicode") from error


def decode_parameters(
    data: bytes, *, depth: int = MAX_DEPTH, values: int = MAX_VALUES, errors: str = "strict"
) -> dict[str, Value]:
    """Decode an object; trailing bytes are ignored, and a repeated name keeps its last value.

    `values` limits the elements of arrays of numbers; an entry and any other element count as four.
    `errors` chooses the treatment of text that is not UTF-8, as for `bytes.decode`.

    Raises:
        WireError: truncated, an unknown type, too deep, too many values, or not UTF-8.
    """
    reader = _Reader(data, depth, values, errors)
    try:
        return reader.read_object()
    except struct.error as error:
        raise reader.error("it ends too early") from error
    except UnicodeDecodeError as error:
        raise reader.error("its text is no UTF-8") from error


class _Reader:
    """Reads values one after the other.

    Mutable: `offset` advances with each value.
    """

    __slots__ = ("data", "depth", "errors", "offset", "values")

    def __init__(self, data: bytes, depth: int, values: int, errors: str) -> None:
        self.data, self.errors, self.offset = data, errors, 0
        self.depth, self.values = depth, values

    def error(self, reason: str) -> WireError:
        return WireError(f"yami4: parameters at byte {self.offset}: {reason}")

    def read_word(self) -> int:
        value: int = WORD.unpack_from(self.data, self.offset)[0]
        self.offset += 4
        return value

    def read_count(self, bits: int, cost: int = 1) -> int:
        """Read a number of things that take at least `bits` bits each, and check that they fit.

        Each counts as `cost` values.
        """
        number = self.read_word()
        if not 0 <= number * bits <= 8 * (len(self.data) - self.offset):
            raise self.error(f"a count of {number} does not fit what follows")
        self.values -= number * cost
        if self.values < 0:
            raise self.error("too many values")
        return number

    def read_bytes(self, size: int) -> bytes:
        start, self.offset = self.offset, self.offset + size
        if self.offset > len(self.data):
            raise self.error("it ends too early")
        return self.data[start : self.offset]

    def read_blob(self) -> bytes:
        size = self.read_word()
        if size < 0:
            raise self.error(f"a length of {size}")
        data = self.read_bytes(size)
        self.read_bytes(-size % 4)
        return data

    def read_text(self) -> str:
        return self.read_blob().decode("utf-8", self.errors)

    def read_object(self) -> dict[str, Value]:
        self.depth -= 1
        if self.depth < 0:
            raise self.error("nested too deep")
        values: dict[str, Value] = {}
        for _ in range(self.read_count(8 * _MIN_ENTRY, _LARGE)):
            name = self.read_text()
            code = self.read_word()
            read = _VALUE_READERS.get(code)
            if read is None:
                raise self.error(f"unknown type {code}")
            values[name] = read(self)
        self.depth += 1
        return values

    def read_booleans(self) -> list[Value]:
        number = self.read_count(1)
        bits = int.from_bytes(self.read_bytes(-(-number // 32) * 4), "little")
        return (
            [digit == "1" for digit in f"{bits:0{number}b}"[: -number - 1 : -1]] if number else []
        )

    def read_numbers(self, letter: str, width: int) -> list[Value]:
        number = self.read_count(8 * width)
        return list(struct.unpack(f"<{number}{letter}", self.read_bytes(number * width)))

    def read_list(self, read: Callable[[_Reader], Value]) -> list[Value]:
        return [read(self) for _ in range(self.read_count(32, _LARGE))]


_SCALAR_WRITERS: Final[Mapping[TypeCode, Callable[..., bytes]]] = {
    TypeCode.BOOLEAN: lambda value: WORD.pack(bool(value)),
    TypeCode.INTEGER: WORD.pack,
    TypeCode.LONG: LONG.pack,
    TypeCode.DOUBLE: DOUBLE.pack,
    TypeCode.STRING: lambda value: encode_blob(_utf8(value)),
    TypeCode.BINARY: encode_blob,
}
_TYPE_CODES: Final = (  # bool before int: a bool is an int too
    (str, TypeCode.STRING),
    (bool, TypeCode.BOOLEAN),
    (int, TypeCode.INTEGER),
    (bytes, TypeCode.BINARY),
    (float, TypeCode.DOUBLE),
    (Mapping, TypeCode.OBJECT),
)
_ARRAY_CODES: Final = {  # the code of an array is six above that of its elements
    **{code: TypeCode(code + 6) for code in _SCALAR_WRITERS},
    TypeCode.OBJECT: TypeCode.OBJECTS,
}
_ELEMENT_CODES: Final = {array: element for element, array in _ARRAY_CODES.items()}
_VALUE_READERS: Final[Mapping[int, Callable[[_Reader], Value]]] = {
    TypeCode.BOOLEAN: lambda reader: reader.read_word() != 0,
    TypeCode.INTEGER: _Reader.read_word,
    TypeCode.LONG: lambda reader: Long(LONG.unpack(reader.read_bytes(8))[0]),
    TypeCode.DOUBLE: lambda reader: float(DOUBLE.unpack(reader.read_bytes(8))[0]),
    TypeCode.STRING: _Reader.read_text,
    TypeCode.BINARY: _Reader.read_blob,
    TypeCode.BOOLEANS: _Reader.read_booleans,
    TypeCode.INTEGERS: lambda reader: reader.read_numbers("i", 4),
    TypeCode.LONGS: lambda reader: [Long(value) for value in reader.read_numbers("q", 8)],  # type: ignore[arg-type]
    TypeCode.DOUBLES: lambda reader: reader.read_numbers("d", 8),
    TypeCode.STRINGS: lambda reader: reader.read_list(_Reader.read_text),
    TypeCode.BINARIES: lambda reader: reader.read_list(_Reader.read_blob),
    TypeCode.OBJECT: _Reader.read_object,
    TypeCode.OBJECTS: lambda reader: reader.read_list(_Reader.read_object),
}
