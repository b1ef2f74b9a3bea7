"""Messages to YAMI4 bodies and back; `docs/yami4.md` has the table of the parameters.

The payload comes first and the headers follow in one object. The common body (bytes under headers
that were read before) is therefore read without decoding its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, cast

from gateway.endpoints.header_fields import FIELD_CHECKS, read_fields
from gateway.errors import WireError
from gateway.model.dead_letter_rule import NO_RULE, NOT_UTF_8, NUL, DeadLetterRule
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import NO_HEADERS, Headers, Payload, Value
from gateway.wire.yami4.parameters import (
    PADDING,
    WORD,
    Long,
    TypeCode,
    decode_parameters,
    encode_parameters,
    entry_head,
)

PAYLOAD: Final = "payload"  # parameter: a payload of bytes or text
RESERVED: Final = "_gateway"  # parameter: the headers
VERSION: Final = 1
UNDECODED: Final = "yami4.undecoded"  # property: the payload is a body that cannot be decoded

_ONE, _TWO = WORD.pack(1), WORD.pack(2)
_BINARY = entry_head(PAYLOAD, TypeCode.BINARY)
_STRING = entry_head(PAYLOAD, TypeCode.STRING)
_OBJECT = entry_head(PAYLOAD, TypeCode.OBJECT)
_HEAD_SIZE = 4 + len(_BINARY)
_ONE_BINARY, _TWO_BINARY = _ONE + _BINARY, _TWO + _BINARY
_COMMON_STARTS = {  # start of a body -> number of parameters, whether the payload is text
    _ONE_BINARY: (1, False),
    _TWO_BINARY: (2, False),
    _ONE + _STRING: (1, True),
    _TWO + _STRING: (2, True),
}
_UNDECODED_HEADERS = Headers(properties=MappingProxyType({UNDECODED: True}))
_MAX_CACHED = 2 << 20  # bytes of tails


def find_address_fault(address: str) -> DeadLetterRule:
    """Return the rule that a tag list or a pattern list violates, or NO_RULE."""
    if "\0" in address:
        return NUL  # the broker would end the list there
    try:
        address.encode()
    except UnicodeEncodeError:
        return NOT_UTF_8
    return NO_RULE


class BodyWriter:
    """Writes bodies, and caches the encoded headers that many messages share.

    Mutable: used by one thread at a time.
    """

    def __init__(self) -> None:
        # by id(); the value keeps the headers, so that id() is not reused
        self._tails: LimitedCache[int, tuple[Headers, bytes]] = LimitedCache(_MAX_CACHED)

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
            return _TWO + _OBJECT + content + (tail or _encode_tail(NO_HEADERS))
        if not tail:
            return content
        return WORD.pack(len(payload) + 1) + content[4:] + tail

    def _tail(self, headers: Headers) -> bytes:
        if headers is NO_HEADERS:
            return b""
        known = self._tails.get(id(headers))
        if known is not None:
            return known[1]
        tail = b"" if headers == NO_HEADERS else _encode_tail(headers)
        self._tails.add(id(headers), (headers, tail), 4 * len(tail))
        return tail


def _must_be_wrapped(payload: Mapping[str, Value], tail: bytes) -> bool:
    """Return whether the map, written without a wrapper, would be read as something else."""
    if RESERVED in payload:
        return True
    value = payload.get(PAYLOAD)
    kinds = (bytes, str, Mapping) if tail else (bytes, str)
    return len(payload) == 1 and isinstance(value, kinds)


def _encode_tail(headers: Headers) -> bytes:
    values: dict[str, Value] = {"version": VERSION}
    for name in FIELD_CHECKS:
        value = getattr(headers, name)
        if value != getattr(NO_HEADERS, name):
            values[name] = value
    for name in ("expiry", "time"):  # always `long long`, also for a small number
        if name in values:
            values[name] = Long(cast(int, values[name]))
    return encode_parameters({RESERVED: values})[4:]


class BodyReader:
    """Reads bodies, and caches the decoded headers that many messages share.

    Mutable: used by one thread at a time.
    """

    def __init__(self) -> None:
        self._tails: LimitedCache[bytes, Headers] = LimitedCache(_MAX_CACHED)

    def read(self, body: bytes) -> tuple[Payload, Headers]:
        """Return payload and headers; a body that cannot be decoded is the payload itself."""
        common = _COMMON_STARTS.get(body[:_HEAD_SIZE])
        if common is not None and len(body) >= _HEAD_SIZE + 4:
            count, is_text = common
            start = _HEAD_SIZE + 4
            end = start + WORD.unpack_from(body, _HEAD_SIZE)[0]
            padded = end + (-end & 3)  # the head is whole words
            if start <= end and padded <= len(body):
                headers = NO_HEADERS if count == 1 else self._headers(body[padded:])
                if headers is not None:
                    try:
                        return body[start:end].decode() if is_text else body[start:end], headers
                    except UnicodeDecodeError:
                        return body, _UNDECODED_HEADERS
        return _read_all(body)

    def _headers(self, tail: bytes) -> Headers | None:
        headers = self._tails.get(tail)
        if headers is not None:
            return headers
        try:
            headers = _read_headers(decode_parameters(_ONE + tail).get(RESERVED))
        except WireError:
            return None
        if headers is not None:
            self._tails.add(tail, headers, 4 * len(tail))
        return headers


def _read_all(body: bytes) -> tuple[Payload, Headers]:
    try:
        fields = decode_parameters(body)
    except WireError:
        return body, _UNDECODED_HEADERS
    headers = _read_headers(fields.get(RESERVED))
    if headers is not None:
        del fields[RESERVED]
    value = fields.get(PAYLOAD)
    kinds = (bytes, str) if headers is None else (bytes, str, Mapping)
    if len(fields) == 1 and isinstance(value, kinds):
        return value, headers or NO_HEADERS
    return fields, headers or NO_HEADERS


def _read_headers(found: Value) -> Headers | None:
    """Return the headers if a gateway wrote `found`; fields of later versions are skipped."""
    if not isinstance(found, Mapping) or found.get("version") != VERSION:
        return None
    fields = read_fields(found)
    return None if fields is None else Headers(**fields)
