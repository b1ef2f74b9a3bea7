"""Messages to YAMI4 bodies and back: which parameter carries what. `docs/yami4.md` has the table.

The payload comes first and the rest of a message in one object after it, so that the common
body, bytes under headers seen before, is read without looking at a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, cast

from gateway.errors import WireError
from gateway.model.message import NO_PROPERTIES, PLAIN, DeliveryMode, Headers, Payload, Value
from gateway.wire.yami4.parameters import (
    PADDING,
    WORD,
    Code,
    Long,
    decode_parameters,
    encode_parameters,
    entry_head,
)

PAYLOAD: Final = "payload"  # the parameter of a payload that is bytes or text
RESERVED: Final = "_gateway"  # the parameter of everything else
VERSION: Final = 1
UNDECODED: Final = "yami4.undecoded"  # property: the payload is a body that is no parameters

_ONE, _TWO = WORD.pack(1), WORD.pack(2)
_BINARY = entry_head(PAYLOAD, Code.BINARY)
_STRING = entry_head(PAYLOAD, Code.STRING)
_OBJECT = entry_head(PAYLOAD, Code.OBJECT)
_HEAD_SIZE = 4 + len(_BINARY)
_ONE_BINARY, _TWO_BINARY = _ONE + _BINARY, _TWO + _BINARY
_FAST = {  # how a body begins: the number of its parameters, and whether the payload is text
    _ONE_BINARY: (1, False),
    _TWO_BINARY: (2, False),
    _ONE + _STRING: (1, True),
    _TWO + _STRING: (2, True),
}
_RAW = Headers(properties=MappingProxyType({UNDECODED: True}))
_MOST_KEPT = 1_024
_LONGEST_KEPT = 2_048  # bytes of a tail worth remembering


def find_fault(address: str) -> str:
    """Name the rule that keeps a tag list or a pattern list from being said, or nothing."""
    if "\0" in address:
        return "nul"  # the broker would cut it there
    if not address.isascii():
        try:
            address.encode()
        except UnicodeEncodeError:
            return "not-utf-8"
    return ""


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_mode(value: Value) -> bool:
    return _is_number(value) and value in tuple(DeliveryMode)


def _is_origin(value: Value) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _is_flag(value: Value) -> bool:
    return isinstance(value, bool)


_CHECKS: Final[Mapping[str, Callable[[Value], bool]]] = {
    "mode": _is_mode,
    "retained": _is_flag,
    "redelivered": _is_flag,
    "priority": _is_number,
    "expiry": _is_number,
    "time": _is_number,
    "content_type": _is_text,
    "correlation_id": lambda value: isinstance(value, str | bytes),
    "reply_to": _is_text,
    "source_id": _is_text,
    "origin": _is_origin,
    "properties": lambda value: isinstance(value, Mapping),
}


class BodyWriter:
    """Writes bodies; remembers what it wrote for headers that many messages share."""

    def __init__(self) -> None:
        self._tails: dict[int, tuple[Headers, bytes]] = {}  # by identity, which the value keeps

    def write(self, payload: Payload, headers: Headers) -> bytes:
        """Return the body of a message.

        Raises:
            TranslationError: YAMI4 has no type for a value.
        """
        tail = self._tail(headers)
        if isinstance(payload, bytes):
            size = len(payload)
            head = _TWO_BINARY if tail else _ONE_BINARY
            return b"".join((head, WORD.pack(size), payload, PADDING[size & 3], tail))
        if isinstance(payload, str):
            return (_TWO if tail else _ONE) + encode_parameters({PAYLOAD: payload})[4:] + tail
        content = encode_parameters(payload)
        if _must_be_wrapped(payload, tail):
            return _TWO + _OBJECT + content + (tail or _encode_tail(PLAIN))
        if not tail:
            return content
        return WORD.pack(len(payload) + 1) + content[4:] + tail

    def _tail(self, headers: Headers) -> bytes:
        if headers is PLAIN:
            return b""
        known = self._tails.get(id(headers))
        if known is not None:
            return known[1]
        tail = b"" if headers == PLAIN else _encode_tail(headers)
        if len(self._tails) >= _MOST_KEPT:
            self._tails.clear()
        self._tails[id(headers)] = headers, tail
        return tail


def _must_be_wrapped(payload: Mapping[str, Value], tail: bytes) -> bool:
    """Say whether the map, left as it is, would be read as something else."""
    if RESERVED in payload:
        return True
    value = payload.get(PAYLOAD)
    kinds = (bytes, str, Mapping) if tail else (bytes, str)
    return len(payload) == 1 and isinstance(value, kinds)


def _encode_tail(headers: Headers) -> bytes:
    values: dict[str, Value] = {"version": VERSION}
    for name in _CHECKS:
        value = getattr(headers, name)
        if value != getattr(PLAIN, name):
            values[name] = value
    for name in ("expiry", "time"):  # one type, however small the number
        if name in values:
            values[name] = Long(cast(int, values[name]))
    return encode_parameters({RESERVED: values})[4:]


class BodyReader:
    """Reads bodies; remembers the headers that many messages share."""

    def __init__(self) -> None:
        self._tails: dict[bytes, Headers] = {}

    def read(self, body: bytes) -> tuple[Payload, Headers]:
        """Return what a body holds; one that is no parameters is a payload as it stands."""
        fast = _FAST.get(body[:_HEAD_SIZE])
        if fast is not None and len(body) >= _HEAD_SIZE + 4:
            count, is_text = fast
            start = _HEAD_SIZE + 4
            end = start + WORD.unpack_from(body, _HEAD_SIZE)[0]
            padded = end + (-end & 3)  # the head is whole words
            if start <= end and padded <= len(body):
                headers = PLAIN if count == 1 else self._headers(body[padded:])
                if headers is not None:
                    try:
                        return body[start:end].decode() if is_text else body[start:end], headers
                    except UnicodeDecodeError:
                        return body, _RAW
        return _read_all(body)

    def _headers(self, tail: bytes) -> Headers | None:
        headers = self._tails.get(tail)
        if headers is not None:
            return headers
        try:
            headers = _read_headers(decode_parameters(_ONE + tail).get(RESERVED))
        except WireError:
            return None
        if headers is not None and len(tail) <= _LONGEST_KEPT:
            if len(self._tails) >= _MOST_KEPT:
                self._tails.clear()
            self._tails[tail] = headers
        return headers


def _read_all(body: bytes) -> tuple[Payload, Headers]:
    try:
        fields = decode_parameters(body)
    except WireError:
        return body, _RAW
    headers = _read_headers(fields.get(RESERVED))
    if headers is not None:
        del fields[RESERVED]
    value = fields.get(PAYLOAD)
    kinds = (bytes, str) if headers is None else (bytes, str, Mapping)
    if len(fields) == 1 and isinstance(value, kinds):
        return value, headers or PLAIN
    return fields, headers or PLAIN


def _read_headers(found: Value) -> Headers | None:
    """Return the headers when `found` is what a gateway writes; names it adds later are skipped."""
    if not isinstance(found, Mapping) or found.get("version") != VERSION:
        return None
    fields = {name: found[name] for name in _CHECKS if name in found}
    if not all(_CHECKS[name](value) for name, value in fields.items()):
        return None
    values = cast(dict[str, object], fields)
    values["mode"] = DeliveryMode(cast(int, values.get("mode", 0)))
    values["origin"] = tuple(cast(list[str], values.get("origin", ())))
    values["properties"] = values.get("properties", NO_PROPERTIES)
    for name in ("priority", "expiry", "time"):
        if name in values:
            values[name] = int(cast(int, values[name]))
    return Headers(**values)  # type: ignore[arg-type]  # checked above, field by field
