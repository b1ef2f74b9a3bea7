"""Tables of AMQP 0-9-1, with the field types of RabbitMQ: bytes to values and back.

Types: <https://www.rabbitmq.com/amqp-0-9-1-errata.html>, section 3. pika has no floating-point
numbers, and a date past the year 9999 ends its connection.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Final

from gateway.errors import TranslationError, WireError
from gateway.model.dead_letter_rule import HEADER_BYTES, PROPERTY, SURROGATE
from gateway.model.message import Value

MAX_DEPTH: Final = 64  # tables and arrays in each other
MAX_SHORT: Final = 255  # bytes
_INT64: Final = 1 << 63
_FIXED: Final[Mapping[bytes, struct.Struct]] = {
    b"b": struct.Struct(">b"),
    b"B": struct.Struct(">B"),
    b"s": struct.Struct(">h"),
    b"U": struct.Struct(">h"),
    b"u": struct.Struct(">H"),
    b"I": struct.Struct(">i"),
    b"i": struct.Struct(">I"),
    b"l": struct.Struct(">q"),
    b"L": struct.Struct(">q"),
    b"f": struct.Struct(">f"),
    b"d": struct.Struct(">d"),
    b"T": struct.Struct(">Q"),
}


def encode_table(table: Mapping[str, Value], depth: int = 0) -> bytes:
    """Return a table with its length; `depth` is the number of values around it.

    Raises:
        TranslationError: a name or a value has no form.
    """
    return _with_length(
        b"".join(
            short_text(name, f"the header name {name[:40]!r}") + _encode(value, depth)
            for name, value in table.items()
        )
    )


def short_text(text: str | bytes, what: str) -> bytes:
    """Return a short string with its length.

    Raises:
        TranslationError: it is too long, or has no UTF-8.
    """
    data = text if isinstance(text, bytes) else _utf8(text)
    if len(data) > MAX_SHORT:
        reason = f"{what} is {len(data)} bytes, limit {MAX_SHORT}"
        raise TranslationError("rabbitmq", "", HEADER_BYTES, reason)
    return bytes((len(data),)) + data


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("rabbitmq", "", SURROGATE, "a header has no UTF-8") from error


def _with_length(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _encode(value: Value, depth: int) -> bytes:  # noqa: PLR0911  # one type each
    if depth > MAX_DEPTH:
        raise TranslationError("rabbitmq", "", PROPERTY, "a header is nested too deeply")
    match value:
        case None:
            return b"V"
        case bool():
            return b"t\1" if value else b"t\0"
        case int() if -_INT64 <= value < _INT64:
            return struct.pack(">cq", b"l", value)
        case float() if isfinite(value):  # Erlang has no others
            return struct.pack(">cd", b"d", value)
        case str():
            return b"S" + _with_length(_utf8(value))
        case bytes():
            return b"x" + _with_length(value)
        case Mapping():
            return b"F" + encode_table(value, depth + 1)
        case list() | tuple():
            return b"A" + _with_length(b"".join(_encode(each, depth + 1) for each in value))
        case _:
            pass
    kind = type(value).__name__
    raise TranslationError("rabbitmq", "", PROPERTY, f"no form for this {kind} in a header")


class TableReader:
    """Reads values one behind another. Mutable: the position."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes.

        Raises:
            WireError: the data ends before.
        """
        end = self.at + count
        if end > len(self.data):
            raise WireError("rabbitmq: the headers end within a value")
        found = self.data[self.at : end]
        self.at = end
        return found

    def short(self) -> str | bytes:
        """Return a short string; bytes where it is not UTF-8."""
        return _text_or_bytes(self.take(self.take(1)[0]))

    def table(self, depth: int = 0) -> dict[str, Value]:
        """Return a table.

        Raises:
            WireError: it is malformed.
        """
        found: dict[str, Value] = {}
        end = self._end()
        while self.at < end:
            name = self.take(self.take(1)[0]).decode("utf-8", "replace")
            found[name] = self._value(depth)
        return found

    def _end(self) -> int:
        end = int.from_bytes(self.take(4), "big") + self.at
        if end > len(self.data):
            raise WireError("rabbitmq: the headers end within a table")
        return end

    def _value(self, depth: int) -> Value:
        kind = self.take(1)
        if (fixed := _FIXED.get(kind)) is not None:
            number: int | float = fixed.unpack(self.take(fixed.size))[0]
            return number
        if depth >= MAX_DEPTH:
            raise WireError("rabbitmq: the headers are nested too deeply")
        read = _READERS.get(kind)
        if read is None:
            raise WireError(f"rabbitmq: no type of a header is called {kind!r}")
        return read(self, depth)

    def _long(self) -> bytes:
        return self.take(int.from_bytes(self.take(4), "big"))

    def _decimal(self) -> str:
        places, number = self.take(1)[0], int.from_bytes(self.take(4), "big", signed=True)
        return f"{Decimal(number).scaleb(-places):f}"

    def _array(self, depth: int) -> list[Value]:
        found: list[Value] = []
        end = self._end()
        while self.at < end:
            found.append(self._value(depth + 1))
        return found


_READERS: Final[Mapping[bytes, Callable[[TableReader, int], Value]]] = {
    b"t": lambda reader, _: reader.take(1) != b"\0",
    b"S": lambda reader, _: _text_or_bytes(reader._long()),  # noqa: SLF001  # of this module
    b"x": lambda reader, _: reader._long(),  # noqa: SLF001
    b"D": lambda reader, _: reader._decimal(),  # noqa: SLF001
    b"A": lambda reader, depth: reader._array(depth),  # noqa: SLF001
    b"F": lambda reader, depth: reader.table(depth + 1),
    b"V": lambda _reader, _: None,
}


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
