"""Typed values to bytes and back: the Python side of ValueCodec.java.

Java's narrower numbers are subclasses of `int` and `float`. The rest of the gateway treats them as
plain values, and a JMS sink restores the original type.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from typing import Final

from gateway.errors import TranslationError, WireError
from gateway.model.dead_letter_rule import INTEGER_SIZE, MAP_NAME, NESTING, DeadLetterRule
from gateway.model.message import Value

SURROGATES: Final = "surrogatepass"  # Java's text may contain lone surrogates
NULL, TRUE, FALSE, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, TEXT, BYTES, MAP, LIST = range(14)
INT32, INT64 = 2**31, 2**63
MAX_NESTING = 64  # maps within maps

_I32, _I64 = Struct(">i"), Struct(">q")
_TAGGED32, _TAGGED64 = Struct(">Bi"), Struct(">Bq")
_FLOAT, _DOUBLE = Struct(">f"), Struct(">d")
_TAGGED_FLOAT, _TAGGED_DOUBLE = Struct(">Bf"), Struct(">Bd")


class JavaByte(int):
    """An integer that Java had as a `byte`."""


class JavaShort(int):
    """An integer that Java had as a `short`."""


class JavaLong(int):
    """An integer that Java had as a `long`, within the range of an `int`."""


class JavaFloat(float):
    """A number that Java had as a `float`."""


class JavaChar(str):
    """A text that Java had as a `char`."""

    __slots__ = ()


_NARROW: Final[Mapping[type, int]] = {JavaByte: BYTE, JavaShort: SHORT}


class UnsendableError(TranslationError):
    """A message that JMS or EMS cannot carry; `rule` is the short name of the broken rule."""

    def __init__(self, rule: DeadLetterRule, reason: str) -> None:
        super().__init__("jms", "", rule, reason)


def write_text(text: str) -> bytes:
    data = text.encode("utf-8", SURROGATES)
    return _I32.pack(len(data)) + data


def write_value(value: Value, depth: int = 0) -> bytes:  # noqa: C901, PLR0911  # one for each type
    """Return the value's tag and bytes.

    Raises:
        UnsendableError: an integer needs more than 64 bits, or values are nested too deep.
    """
    if depth > MAX_NESTING:
        raise UnsendableError(NESTING, f"values are nested deeper than {MAX_NESTING}")
    match value:
        case None:
            return bytes((NULL,))
        case bool():
            return bytes((TRUE if value else FALSE,))
        case int():
            return _write_int(value)
        case JavaFloat():
            return _TAGGED_FLOAT.pack(FLOAT, value)
        case float():
            return _TAGGED_DOUBLE.pack(DOUBLE, value)
        case JavaChar() if len(value.encode("utf-16-be", SURROGATES)) == 2:  # one unit
            return _TAGGED32.pack(CHAR, ord(value))
        case str():
            return bytes((TEXT,)) + write_text(value)
        case bytes():
            return _TAGGED32.pack(BYTES, len(value)) + value
        case Mapping():
            return _write_map(value, depth)
        case _:
            parts = [write_value(each, depth + 1) for each in value]
            return _TAGGED32.pack(LIST, len(parts)) + b"".join(parts)


def _write_int(value: int) -> bytes:
    if not -INT64 <= value < INT64:
        reason = f"an integer of {value.bit_length()} bits does not fit into 64 bits"
        raise UnsendableError(INTEGER_SIZE, reason)
    if value.__class__ is JavaLong or not -INT32 <= value < INT32:
        return _TAGGED64.pack(LONG, value)
    return _TAGGED32.pack(_NARROW.get(value.__class__, INT), value)


def _write_map(value: Mapping[str, Value], depth: int) -> bytes:
    parts = [_TAGGED32.pack(MAP, len(value))]
    for name, each in value.items():
        if not name:
            raise UnsendableError(MAP_NAME, "a value of a map has no name")
        parts += (write_text(name), write_value(each, depth + 1))
    return b"".join(parts)


class ValueReader:
    """Reads values one after another.

    Mutable: owned by one call; it has a position.
    """

    def __init__(self, data: bytes, position: int = 0) -> None:
        self._data, self.position = data, position

    def read_value(self, depth: int = 0) -> Value:
        """Return the next value.

        Raises:
            WireError: ValueCodec.java would not have written these bytes.
        """
        try:
            return self._read_value(depth)
        except (IndexError, StructError, ValueError) as error:
            raise WireError(f"jms: malformed values at {self.position}: {error}") from error

    def read_int(self) -> int:
        self.position += 4
        found: int = _I32.unpack_from(self._data, self.position - 4)[0]
        return found

    def read_long(self) -> int:
        self.position += 8
        found: int = _I64.unpack_from(self._data, self.position - 8)[0]
        return found

    def read_byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]

    def read_text(self) -> str:
        return self._read_bytes().decode("utf-8", SURROGATES)

    def _read_bytes(self) -> bytes:
        size = self.read_int()
        end = self.position + size
        if not 0 <= size <= len(self._data) - self.position:
            raise WireError(f"jms: {size} bytes at {self.position} are past the end")
        data, self.position = self._data[self.position : end], end
        return data

    def _read_value(self, depth: int) -> Value:  # noqa: C901, PLR0911, PLR0912  # one for each tag
        if depth > MAX_NESTING:
            raise WireError(f"jms: values are nested deeper than {MAX_NESTING}")
        match self.read_byte():
            case 0:  # NULL
                return None
            case 1 | 2 as flag:  # TRUE, FALSE
                return flag == TRUE
            case 3 | 4 | 5 as tag:  # BYTE, SHORT, INT
                return (JavaByte, JavaShort, int)[tag - BYTE](self.read_int())
            case 6:  # LONG
                value = self.read_long()
                return JavaLong(value) if -INT32 <= value < INT32 else value
            case 7:  # FLOAT
                return JavaFloat(_FLOAT.unpack(_I32.pack(self.read_int()))[0])
            case 8:  # DOUBLE
                return float(_DOUBLE.unpack(_I64.pack(self.read_long()))[0])
            case 9:  # CHAR
                return JavaChar(chr(self.read_int()))
            case 10:  # TEXT
                return self.read_text()
            case 11:  # BYTES
                return self._read_bytes()
            case 12:  # MAP
                return {
                    self.read_text(): self._read_value(depth + 1) for _ in range(self.read_int())
                }
            case 13:  # LIST
                return [self._read_value(depth + 1) for _ in range(self.read_int())]
            case tag:
                raise WireError(f"jms: a value has the unknown tag {tag}")
