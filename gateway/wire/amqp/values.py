"""Values of AMQP 1.0: bytes to values and back.

A received value is a plain one of Python: an unsigned number, a timestamp (milliseconds) and a
number of any width are an int, a symbol, a character and a UUID are a str, a decimal is its bytes,
an array is a list. A described value keeps its descriptor.
Source: OASIS AMQP 1.0, part 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

from gateway.errors import TranslationError, WireError
from gateway.model.dead_letter_rule import PROPERTY, SURROGATE

MAX_DEPTH: Final = 64  # lists, maps, arrays and descriptors in each other
MAX_WIDTHLESS: Final = 65_536  # elements of an array that have no bytes
SHORT: Final = 256  # bytes, from which on a length has four bytes
_INT64: Final = 1 << 63
_TAKEN: Final = (IndexError, struct.error)

Found: TypeAlias = tuple[Any, int]  # a value, and the place behind it
_Read: TypeAlias = Callable[[bytes, int, int], Found]


class Described(NamedTuple):
    """A value with the descriptor of its type: a number, or a name."""

    descriptor: Any
    value: Any


def read_value(data: bytes, at: int = 0, depth: int = 0) -> Found:
    """Return the value that begins at `at`, and the place behind it.

    Raises:
        WireError: it is malformed, or nested deeper than `MAX_DEPTH`.
    """
    try:
        return _read(data, at, depth)
    except _TAKEN as error:
        raise WireError("amqp: the bytes end within a value") from error


def _read(data: bytes, at: int, depth: int) -> Found:
    return _reader(data[at])(data, at + 1, depth)


def _reader(code: int) -> _Read:
    read = _READERS.get(code)
    if read is None:
        raise WireError(f"amqp: no type has the code 0x{code:02x}")
    return read


def _constant(value: object) -> _Read:
    return lambda _data, at, _depth: (value, at)


def _fixed(form: str, convert: Callable[[Any], Any] | None = None) -> _Read:
    one = struct.Struct(form)
    unpack, size = one.unpack_from, one.size
    if convert is None:
        return lambda data, at, _depth: (unpack(data, at)[0], at + size)
    return lambda data, at, _depth: (convert(unpack(data, at)[0]), at + size)


def _variable(size: int, convert: Callable[[bytes], Any]) -> _Read:
    def read(data: bytes, at: int, _depth: int) -> Found:
        start = at + size
        end = start + int.from_bytes(data[at:start], "big")
        if end > len(data):
            raise IndexError
        return convert(data[start:end]), end

    return read


def _compound(width: int, data: bytes, at: int, depth: int) -> tuple[int, int, int]:
    """Return the count of a list, a map or an array, its start and its end."""
    if depth >= MAX_DEPTH:
        raise WireError("amqp: values are nested too deeply")
    end = at + width + int.from_bytes(data[at : at + width], "big")
    start = at + 2 * width
    if end > len(data) or start > end:
        raise IndexError
    return int.from_bytes(data[at + width : start], "big"), start, end


def _items(width: int) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    def read(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
        count, at, end = _compound(width, data, at, depth)
        if count > end - at:  # each has a byte at least
            raise IndexError
        found: list[Any] = []
        for _ in range(count):
            value, at = _reader(data[at])(data, at + 1, depth + 1)
            found.append(value)
        if at != end:
            raise WireError("amqp: a list has another size than its values")
        return found, at

    return read


def _map(width: int) -> _Read:
    read_items = _items(width)

    def read(data: bytes, at: int, depth: int) -> Found:
        items, at = read_items(data, at, depth)
        keys = items[::2]
        if len(items) % 2 or any(isinstance(key, list | dict | Described) for key in keys):
            raise WireError("amqp: a map has a key without a value, or one that is no simple value")
        return dict(zip(keys, items[1::2], strict=True)), at

    return read


def _array(width: int) -> _Read:
    def read(data: bytes, at: int, depth: int) -> Found:
        count, at, end = _compound(width, data, at, depth)
        while data[at] == 0:  # a descriptor of all elements
            _, at = _read(data, at + 1, depth + 1)
        read_one, at = _reader(data[at]), at + 1
        if count > max(end - at, MAX_WIDTHLESS):
            raise IndexError
        found: list[Any] = []
        for _ in range(count):
            value, at = read_one(data, at, depth + 1)
            found.append(value)
        if at != end:
            raise WireError("amqp: an array has another size than its elements")
        return found, at

    return read


def _described(data: bytes, at: int, depth: int) -> Found:
    if depth >= MAX_DEPTH:
        raise WireError("amqp: values are nested too deeply")
    descriptor, at = _read(data, at, depth + 1)
    value, at = _read(data, at, depth + 1)
    return Described(descriptor, value), at


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _character(code: int) -> str:
    if code >= 0x110000 or 0xD800 <= code < 0xE000:  # Unicode
        raise WireError(f"amqp: 0x{code:x} is no character")
    return chr(code)


def _symbol(data: bytes) -> str:
    return data.decode("latin-1")


_READERS: Final[Mapping[int, _Read]] = {
    0x00: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(0),
    0x44: _constant(0),
    0x45: lambda _data, at, _depth: ([], at),
    0x50: _fixed(">B"),
    0x51: _fixed(">b"),
    0x52: _fixed(">B"),
    0x53: _fixed(">B"),
    0x54: _fixed(">b"),
    0x55: _fixed(">b"),
    0x56: _fixed(">B", bool),
    0x60: _fixed(">H"),
    0x61: _fixed(">h"),
    0x70: _fixed(">I"),
    0x71: _fixed(">i"),
    0x72: _fixed(">f"),
    0x73: _fixed(">I", _character),
    0x74: _fixed(">4s"),
    0x80: _fixed(">Q"),
    0x81: _fixed(">q"),
    0x82: _fixed(">d"),
    0x83: _fixed(">q"),
    0x84: _fixed(">8s"),
    0x94: _fixed(">16s"),
    0x98: _fixed(">16s", lambda data: str(UUID(bytes=data))),
    0xA0: _variable(1, bytes),
    0xA1: _variable(1, _text),
    0xA3: _variable(1, _symbol),
    0xB0: _variable(4, bytes),
    0xB1: _variable(4, _text),
    0xB3: _variable(4, _symbol),
    0xC0: _items(1),
    0xD0: _items(4),
    0xC1: _map(1),
    0xD1: _map(4),
    0xE0: _array(1),
    0xF0: _array(4),
}

STRINGS: Final = frozenset({0xA1, 0xB1})  # codes of a text

NULL: Final = b"\x40"
TRUE: Final = b"\x41"
FALSE: Final = b"\x42"


def boolean(value: bool) -> bytes:
    return TRUE if value else FALSE


def ubyte(value: int) -> bytes:
    return bytes((0x50, value))


def ushort(value: int) -> bytes:
    return struct.pack(">BH", 0x60, value)


def uint(value: int) -> bytes:
    if value < SHORT:
        return bytes((0x52, value)) if value else b"\x43"
    return struct.pack(">BI", 0x70, value)


def ulong(value: int) -> bytes:
    if value < SHORT:
        return bytes((0x53, value)) if value else b"\x44"
    return struct.pack(">BQ", 0x80, value)


def timestamp(milliseconds: int) -> bytes:
    return struct.pack(">Bq", 0x83, milliseconds)


def symbol(text: str) -> bytes:
    return _sized(0xA3, text.encode("latin-1"))


def binary(data: bytes) -> bytes:
    return _sized(0xA0, data)


def string(text: str) -> bytes:
    """Return a text.

    Raises:
        TranslationError: it has no UTF-8.
    """
    try:
        return _sized(0xA1, text.encode())
    except UnicodeEncodeError as error:
        raise TranslationError("amqp", "", SURROGATE, "a header has no UTF-8") from error


def _sized(code: int, data: bytes) -> bytes:
    size = len(data)
    if size < SHORT:
        return bytes((code, size)) + data
    return struct.pack(">BI", code + 0x10, size) + data


def _joined(code: int, items: Sequence[bytes]) -> bytes:
    data, count = b"".join(items), len(items)
    if len(data) < SHORT - 1 and count < SHORT:
        return bytes((code, len(data) + 1, count)) + data
    return struct.pack(">BII", code + 0x10, len(data) + 4, count) + data


def list_of(items: Sequence[bytes]) -> bytes:
    """Return a list of encoded values."""
    return _joined(0xC0, items) if items else b"\x45"


def map_of(items: Mapping[bytes, bytes]) -> bytes:
    """Return a map of encoded keys and values."""
    return _joined(0xC1, [part for item in items.items() for part in item])


def symbols(texts: Sequence[str]) -> bytes:
    """Return an array of symbols, each of at most 255 bytes."""
    data = b"".join(bytes((len(each),)) + each.encode("latin-1") for each in texts)
    return struct.pack(">BIIB", 0xF0, len(data) + 5, len(texts), 0xA3) + data


def described(code: int, value: bytes) -> bytes:
    return b"\x00" + ulong(code) + value


def composite(code: int, fields: Sequence[bytes | None]) -> bytes:
    """Return a described list; None is null, and such fields at the end are left out."""
    last = next((n for n in range(len(fields), 0, -1) if fields[n - 1] is not None), 0)
    return described(code, list_of([NULL if each is None else each for each in fields[:last]]))


def encode_value(value: object, depth: int = 0) -> bytes:  # noqa: C901, PLR0911  # one type each
    """Return a value of an application: the widest type of its kind.

    Raises:
        TranslationError: it has no form.
    """
    if depth > MAX_DEPTH:
        raise TranslationError("amqp", "", PROPERTY, "a header is nested too deeply")
    match value:
        case None:
            return NULL
        case bool():
            return boolean(value)
        case int() if -_INT64 <= value < _INT64:
            narrow = -128 <= value < 128  # a byte
            return struct.pack(">Bb", 0x55, value) if narrow else struct.pack(">Bq", 0x81, value)
        case int() if 0 <= value < 2 * _INT64:
            return ulong(value)
        case float():
            return struct.pack(">Bd", 0x82, value)
        case str():
            return string(value)
        case bytes():
            return binary(value)
        case Mapping():
            return map_of(
                {
                    encode_value(key, depth + 1): encode_value(each, depth + 1)
                    for key, each in value.items()
                }
            )
        case list() | tuple():
            return list_of([encode_value(each, depth + 1) for each in value])
        case _:
            pass
    kind = type(value).__name__
    raise TranslationError("amqp", "", PROPERTY, f"no form for this {kind} in a header")
