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
from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.dead_letter_rule import NO_RULE, NOT_UTF_8, NUL, DeadLetterRule
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import NO_HEADERS, Headers, Payload, Value
from gateway.model.proof_text import cut_proof, is_shared, read_proof
from gateway.wire.yami4.parameters import (
    PADDING,
    WORD,
    Long,
    TypeCode,
    decode_parameters,
    encode_blob,
    encode_parameters,
    entry_head,
)

PAYLOAD: Final = "payload"  # parameter: a payload of bytes or text
RESERVED: Final = "_gateway"  # parameter: the headers
PROOF: Final = "proof"  # the last field of the headers
VERSION: Final = 1
UNDECODED: Final = "yami4.undecoded"  # property: the payload is a body that cannot be decoded

_ONE, _TWO = WORD.pack(1), WORD.pack(2)
_EMPTY_TEXT = encode_blob(b"")
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
_PROOF_NAME = encode_blob(PROOF.encode()).rstrip(b"\0")  # another client may pad it otherwise
_PROOF_MARKS = tuple(entry_head(PROOF, TypeCode.STRING) + WORD.pack(size) for size in PROOF_SIZES)
_NOTHING = (NO_HEADERS, "")  # headers and proof of a body without them
_MAX_CACHED = 8 << 20  # bytes of tails


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
        # by id() and whether a proof follows; the value keeps the headers: id() is not reused
        self._tails: LimitedCache[tuple[int, bool], tuple[Headers, bytes]]
        self._tails = LimitedCache(_MAX_CACHED)

    def write(self, payload: Payload, headers: Headers, proof: str = "") -> bytes:
        """Return the body of a message.

        Raises:
            TranslationError: YAMI4 has no type for a value.
        """
        tail = self._tail(headers, has_proof=proof != "")
        if proof:
            tail += encode_blob(proof.encode())
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

    def _tail(self, headers: Headers, *, has_proof: bool) -> bytes:
        """Return the encoded headers, up to the proof if they have one."""
        if headers is NO_HEADERS and not has_proof:
            return b""
        key = (id(headers), has_proof)
        known = self._tails.get(key)
        if known is not None:
            return known[1]
        tail = b""
        if has_proof or headers != NO_HEADERS:
            tail = _encode_tail(headers, has_proof=has_proof)
        self._tails.add(key, (headers, tail), 4 * len(tail))
        return tail


def _must_be_wrapped(payload: Mapping[str, Value], tail: bytes) -> bool:
    """Return whether the map, written without a wrapper, would be read as something else."""
    if RESERVED in payload:
        return True
    value = payload.get(PAYLOAD)
    kinds = (bytes, str, Mapping) if tail else (bytes, str)
    return len(payload) == 1 and isinstance(value, kinds)


def _encode_tail(headers: Headers, *, has_proof: bool = False) -> bytes:
    values: dict[str, Value] = {"version": VERSION}
    for name in FIELD_CHECKS:
        value = getattr(headers, name)
        if value != getattr(NO_HEADERS, name):
            values[name] = value
    for name in ("expiry", "time"):  # always `long long`, also for a small number
        if name in values:
            values[name] = Long(cast(int, values[name]))
    if has_proof:
        values[PROOF] = ""
    encoded = encode_parameters({RESERVED: values})
    return encoded[4 : -len(_EMPTY_TEXT)] if has_proof else encoded[4:]


class BodyReader:
    """Reads bodies, and caches the decoded headers that many messages share.

    Mutable: used by one thread at a time.
    """

    def __init__(self) -> None:
        # by the bytes without a proof, and whether one was cut out
        self._tails: LimitedCache[tuple[bytes, bool], tuple[Headers, str]]
        self._tails = LimitedCache(_MAX_CACHED)

    def read(self, body: bytes) -> tuple[Payload, Headers, str]:
        """Return payload, headers and proof.

        A body that cannot be decoded is the payload itself.
        """
        common = _COMMON_STARTS.get(body[:_HEAD_SIZE])
        if common is not None and len(body) >= _HEAD_SIZE + 4:
            count, is_text = common
            start = _HEAD_SIZE + 4
            end = start + WORD.unpack_from(body, _HEAD_SIZE)[0]
            padded = end + (-end & 3)  # the head is whole words
            if start <= end and padded <= len(body):
                found = _NOTHING if count == 1 else self._read_tail(body, padded)
                if found is not None:
                    try:
                        return body[start:end].decode() if is_text else body[start:end], *found
                    except UnicodeDecodeError:
                        return body, _UNDECODED_HEADERS, ""
        return _read_all(body)

    def _read_tail(self, body: bytes, start: int) -> tuple[Headers, str] | None:
        """Return headers and proof from `start` on; None where no gateway wrote them."""
        rest, cut = cut_proof(body, start, len(body), _PROOF_MARKS)
        key = (rest, cut != "")
        known = self._tails.get(key)
        if known is not None:
            return (known[0], cut) if cut else known
        tail = body[start:]
        try:
            found = _read_headers(decode_parameters(_ONE + tail).get(RESERVED))
        except WireError:
            return None
        if found is not None and is_shared(tail, _PROOF_NAME, cut, found[1]):
            self._tails.add(key, found, 4 * len(rest))
        return found


def _read_all(body: bytes) -> tuple[Payload, Headers, str]:
    try:
        fields = decode_parameters(body)
    except WireError:
        return body, _UNDECODED_HEADERS, ""
    found = _read_headers(fields.get(RESERVED))
    if found is not None:
        del fields[RESERVED]
    value = fields.get(PAYLOAD)
    kinds = (bytes, str) if found is None else (bytes, str, Mapping)
    payload = value if len(fields) == 1 and isinstance(value, kinds) else fields
    return payload, *(found or _NOTHING)


def _read_headers(found: Value) -> tuple[Headers, str] | None:
    """Return headers and proof if a gateway wrote `found`; other fields are skipped."""
    if not isinstance(found, Mapping) or found.get("version") != VERSION:
        return None
    fields = read_fields(found)
    return None if fields is None else (Headers(**fields), read_proof(found.get(PROOF)))
