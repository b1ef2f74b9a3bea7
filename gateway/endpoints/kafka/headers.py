"""Headers of a message to headers of Kafka and back.

A header of Kafka is a text with bytes or null, and one text may come again. A property that is a
text is a header with its UTF-8 bytes, null is null, and bytes that are not UTF-8 are themselves. A
list of such values is a header that comes again. Every other property stands with its type in the
header `gateway_fields`, one line of JSON, where bytes are `{"base64": ...}`; so do properties with
a NUL in their name, and the fields for which Kafka has no place. Time, content type, message id and
the proof of a copy have headers of their own: what differs from message to message stands apart, so
that the rest is written and read once for many messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import methodcaller
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.endpoints.json_fields import read_json, write_json
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import PROPERTY_NAME
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size
from gateway.model.message import CHOSEN_PARTITION, SOURCE_NAME, DeliveryMode, Headers, Value
from gateway.model.proof_text import proof_of
from gateway.untyped import Untyped

KafkaHeaders: TypeAlias = list[tuple[str, bytes | None]]
_Values: TypeAlias = "bytes | list[bytes | None] | None"  # of one name

FIELDS: Final = "gateway_fields"
PROOF: Final = "gateway_proof"
TIME: Final = "gateway_time"
MESSAGE_ID: Final = "gateway_message_id"  # of the system in which the message began
CONTENT_TYPE: Final = "content-type"  # CloudEvents, "Kafka Protocol Binding", 3.2.1
TOMBSTONE: Final = "kafka_tombstone"  # property of a message with a null payload
MALFORMED: Final = "kafka_malformed"  # property with the reason of unreadable headers
MAX_CACHED: Final = 16 << 20  # bytes of a reader or a writer
_NUL: Final = "\0"  # the library ends the name of a header there
_TIME: Final = re.compile(rb"-?[0-9]{1,18}")
_OWN: Final = frozenset({FIELDS, PROOF, TIME, MESSAGE_ID, CONTENT_TYPE})
_OF_GATEWAY: Final = frozenset({SOURCE_NAME, CHOSEN_PARTITION})  # the second one is not written
_PLAIN: Final = ("priority", "expiry", "reply_to")
_OF_ONE_MESSAGE: Final = ("expiry", "correlation_id", "properties")
FIELD_NAMES: Final = (*_PLAIN, "correlation_id", "origin", "properties", "retained")
# Headers that are a field, and how their bytes are text.
_TEXTS: Final = (
    (CONTENT_TYPE, "content_type", "strict"),
    (MESSAGE_ID, "source_id", "surrogatepass"),
)
_LENGTHS: Final = 10  # bytes of two lengths: of a name, and of a value
_OWN_SIZES: Final = {each: len(each) + _LENGTHS for each in (MESSAGE_ID, TIME, PROOF)}
_PER_MS: Final = 1_000  # microseconds
# In place of `record.headers()`, after which Python looks for no exception that is set beside a
# result: it would raise anywhere later.
_HEADERS: Final = methodcaller("headers")
_LATEST: Final = 253_402_300_799_999  # milliseconds: the last one of the year 9999


class ReadHeaders(NamedTuple):
    """The headers of a received message, the proof of its copy, and the name that it claims."""

    headers: Headers
    proof: str
    name: str


class RecordHeaderWriter:
    """Writes headers of Kafka, and keeps those that messages share. Mutable: used by one sender."""

    def __init__(self) -> None:
        # by the shared fields, or by id() of headers, which the value keeps: no others get that id
        self._shared: LimitedCache[object, tuple[Headers, KafkaHeaders, int]]
        self._shared = LimitedCache(MAX_CACHED)

    def write(self, headers: Headers, proof: str = "") -> tuple[KafkaHeaders, int]:
        """Return the headers of Kafka, and their bytes at most.

        Raises:
            TranslationError: a property has no form in Kafka.
        """
        key = _key(headers)
        known = self._shared.get(key)
        if known is None:
            found = _write_shared(headers)
            known = headers, found, sum(map(_size, found))
            if key is not None:
                self._shared.add(key, known, 2 * headers_size(headers))
        _, found, size = known
        own: list[tuple[str, bytes]] = []
        if headers.source_id is not None:
            own.append((MESSAGE_ID, headers.source_id.encode("utf-8", "surrogatepass")))
        if headers.time is not None:
            own.append((TIME, b"%d" % headers.time))
        if proof:
            own.append((PROOF, proof.encode()))
        if not own:
            return found, size
        return [*found, *own], size + sum(_OWN_SIZES[name] + len(each) for name, each in own)


def _key(headers: Headers) -> object:
    """Return what headers must share for one writing; None where they share it with no others."""
    properties = headers.properties
    name = properties.get(SOURCE_NAME)
    if properties and not (name.__class__ is str and properties.keys() <= _OF_GATEWAY):
        return id(headers) if headers.is_shared else None
    if headers.expiry is not None or headers.correlation_id is not None:
        return None
    return (
        name,
        headers.origin,
        headers.content_type,
        headers.reply_to,
        headers.priority,
        headers.retained,
    )


def _size(header: tuple[str, bytes | None]) -> int:
    name, value = header
    return len(name.encode()) + len(value or b"") + _LENGTHS


def _write_shared(headers: Headers) -> KafkaHeaders:
    """Return the headers of Kafka that another message may have. Raises as `write` does."""
    found: KafkaHeaders = []
    rest: dict[str, Value] = {}
    for name, value in headers.properties.items():
        if name == CHOSEN_PARTITION or (name == TOMBSTONE and value is True):
            continue
        if name in _OWN or _NUL in name or (plain := _plain(value)) is None:
            rest[_checked(name)] = value
        else:
            found += [(_checked(name), each) for each in plain]
    if text := write_json(headers, _PLAIN, rest, "kafka"):
        found.append((FIELDS, text.encode()))
    if headers.content_type is not None:
        found.append((CONTENT_TYPE, headers.content_type.encode(errors="replace")))
    return found


def timestamp(headers: Headers) -> int:
    """Return the time of a message in milliseconds; 0, which is now, without one."""
    return 0 if headers.time is None else max(0, headers.time // _PER_MS)


def headers_of(record: Untyped) -> KafkaHeaders | None:
    """Return the headers of a received record; only MALFORMED where a name is not UTF-8.

    Ask once: the library returns such a list with an empty place in it, and with an exception set.
    """
    try:
        found: KafkaHeaders | None = _HEADERS(record)
    except (UnicodeDecodeError, SystemError):
        return [(MALFORMED, b"the name of a header is not UTF-8")]
    return found


class RecordHeaderReader:
    """Reads headers of Kafka, and keeps the fields that many messages share.

    Mutable: owned by one thread.
    """

    def __init__(self) -> None:
        self._shared: LimitedCache[bytes, dict[str, Any]] = LimitedCache(MAX_CACHED)

    def read(
        self,
        found: Sequence[tuple[str, bytes | None]] | None,
        sent: int | None,
        source_id: str | None = None,
        *,
        redelivered: bool = False,
    ) -> ReadHeaders:
        """Return the headers of a received message, unless they say otherwise with this id.

        `sent` is the time in milliseconds at which its producer sent it; None where only the server
        has noted one. One before 1970 or after the year 9999 is none. A malformed `gateway_fields`
        is a property.
        """
        mode = DeliveryMode.AT_LEAST_ONCE
        time = None if sent is None or not 0 <= sent <= _LATEST else sent * _PER_MS
        if not found:
            plain = Headers(mode, redelivered=redelivered, time=time, source_id=source_id)
            return ReadHeaders(plain, "", "")
        values = dict[str, _Values](found)
        if len(values) < len(found):
            values = _joined(found)
        proof = proof_of(_single(values.pop(PROOF, None)) or b"")
        name = (_single(values.get(SOURCE_NAME)) or b"").decode(errors="replace")
        if (digits := _single(values.get(TIME))) is not None and _TIME.fullmatch(digits):
            time = int(digits)
            del values[TIME]
        fields = self._read(_single(values.get(FIELDS)) or b"")
        if fields:
            del values[FIELDS]
        own: dict[str, Any] = {"mode": mode, "redelivered": redelivered, "source_id": source_id}
        for header, field, errors in _TEXTS:
            text = _text(_single(values.get(header)), errors)
            if isinstance(text, str):
                own[field] = text
                del values[header]
        properties: dict[str, Value] = {
            name: [*map(_text, each)] if isinstance(each, list) else _text(each)
            for name, each in values.items()
        }
        properties |= fields.get("properties", {})
        made = Headers(**{**own, "time": time, **fields, "properties": properties})
        return ReadHeaders(made, proof, name)

    def _read(self, text: bytes) -> dict[str, Any]:
        if not text:
            return {}
        if (known := self._shared.get(text)) is not None:
            return known
        fields = read_json(text, FIELD_NAMES)
        fields.get("properties", {}).pop(SOURCE_NAME, None)  # only its header claims a name
        if fields.keys().isdisjoint(_OF_ONE_MESSAGE):
            self._shared.add(text, fields, 4 * len(text))
        return fields


def _joined(found: Sequence[tuple[str, bytes | None]]) -> dict[str, _Values]:
    """Return the values by name: a list for a header that came several times."""
    lists: dict[str, list[bytes | None]] = {}
    for name, value in found:
        lists.setdefault(name, []).append(value)
    return {name: each if len(each) > 1 else each[0] for name, each in lists.items()}


def _single(value: _Values) -> bytes | None:
    """Return the value of a header that came once; None for all else."""
    return value if isinstance(value, bytes) else None


def _text(value: bytes | None, errors: str = "strict") -> str | bytes | None:
    """Return a value as text; bytes that are not UTF-8 stay bytes."""
    try:
        return None if value is None else value.decode(errors=errors)
    except UnicodeDecodeError:
        return value


def _plain(value: Value) -> list[bytes | None] | None:
    """Return the headers that give `value` back when they are read; None where there are none."""
    if isinstance(value, str):
        try:
            return [value.encode()]
        except UnicodeEncodeError:
            return None
    values = value if isinstance(value, list | tuple) and len(value) > 1 else [value]
    found: list[bytes | None] = []
    for each in values:
        encoded = each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each
        if not isinstance(encoded, bytes | None) or _text(encoded) != each:
            return None
        found.append(encoded)
    return found


def _checked(name: str) -> str:
    """Return a name of a header.

    Raises:
        TranslationError: it has no UTF-8.
    """
    try:
        name.encode()
    except UnicodeEncodeError as error:
        reason = f"the property name {name!r} has no UTF-8"
        raise TranslationError("kafka", "", PROPERTY_NAME, reason) from error
    return name
