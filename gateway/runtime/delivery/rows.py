"""The columns of archive rows: ids, fingerprints, headers and archived content of messages."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from operator import itemgetter
from typing import Final

import msgpack
from xxhash import xxh3_128_digest

from gateway.archive.journal.records import Cell
from gateway.errors import quoted
from gateway.model.message import DroppedPayload, Headers, Message, Payload, Value, identity_of
from gateway.routing.message_fields import SOURCE_FIELD, is_redacted
from gateway.routing.route import Route
from gateway.tracing.context import trace_of

PROPERTY_PREFIX: Final = "property."  # of the properties among the archived headers
FULL_SIZE: Final = "payload_cut_from"  # header of a cut payload: its full size in bytes
REDACTED: Final = "[redacted]"
NOT_TEXT: Final = "not_text"  # header: a JSON list of the headers whose values were not text

MAX_NESTING: Final = 128  # levels of a map; the text of a deeper one is hashed
_PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
_KEY: Final = itemgetter(0)
_MAX_TIME: Final = 2**63  # microseconds

Columns = dict[str, Sequence[Cell]]


def payload_bytes(payload: Payload) -> bytes:
    """The bytes that are counted and hashed for a payload; a map is encoded as msgpack.

    The keys of each map are sorted: brokers may change their order (JMS 2.0, MapMessage).
    """
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode("utf-8", "surrogatepass")
    try:
        packed: bytes = msgpack.packb(
            _sorted(payload, MAX_NESTING), unicode_errors="surrogatepass", default=value_text
        )
    except (ValueError, RecursionError):  # nested too deep
        return value_text(dict(payload)).encode("utf-8", "surrogatepass")
    return packed


def _sorted(value: object, levels: int) -> object:
    """The value with the keys of each map in their order.

    Raises:
        ValueError: it is nested deeper than these `levels`.
    """
    if not levels:
        raise ValueError("nested too deep")
    if isinstance(value, Mapping):
        return {
            key: each if each.__class__ in _PLAIN else _sorted(each, levels - 1)
            for key, each in sorted(value.items(), key=_KEY)
        }
    return (
        [_sorted(each, levels - 1) for each in value] if isinstance(value, list | tuple) else value
    )


def value_text(value: object) -> str:
    """The text of a value; it never raises, so that every message can be recorded."""
    try:
        return str(value)
    except (ValueError, RecursionError):  # an integer of very many digits, or nested too deep
        return hex(value) if isinstance(value, int) else f"a {type(value).__name__} without text"


def fingerprint(payload: Payload) -> tuple[int, bytes]:
    """Size in bytes and 16-byte XXH3 hash of a payload; it detects faults, not forgery."""
    data = payload_bytes(payload)
    return len(data), xxh3_128_digest(data)


def message_ids(run: int) -> Iterator[bytes]:
    """Return the ids of the messages of a run: 8 bytes of its start `run`, then 8 of a counter.

    Any thread takes the next ones: a step of the iterator is one step of the interpreter.
    Units: microseconds since 1970-01-01 UTC.
    """
    return map(struct.Struct(">QQ").pack, repeat(run), count())


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Source endpoint, system and receipt time of a batch.

    Units: microseconds since 1970-01-01 UTC.
    """

    endpoint: str
    system: str
    time: int


@dataclass(frozen=True, slots=True)
class Cut:
    """A message that a route left out for one target, with the rule that says why.

    `signed`: its path was proven by a key that gateways share.
    """

    position: int
    route: str
    target: str
    rule: str
    reason: str = ""
    signed: bool = False
    name: str = ""  # at the target, where its path says that this broker had it


def payload_sizes(payloads: Sequence[Payload]) -> list[int]:
    """Sizes in bytes, as `fingerprint` counts them."""
    return [len(each) if each.__class__ is bytes else len(payload_bytes(each)) for each in payloads]


def fingerprints(payloads: Sequence[Payload]) -> tuple[list[int], list[bytes]]:
    """Sizes and hashes of the payloads, as `fingerprint` computes them."""
    data = [each if each.__class__ is bytes else payload_bytes(each) for each in payloads]
    return list(map(len, data)), list(map(xxh3_128_digest, data))


def traces_of(messages: Sequence[Message]) -> list[Cell]:
    """The trace ids that the messages carry."""
    carried = [message.headers.properties for message in messages]
    return [trace_of(each) if each else None for each in carried]


def header_columns(headers: Sequence[Headers]) -> Columns:
    """The header columns that are set for at least one message."""
    shared = len(set(map(id, headers))) == 1  # usual for the messages of one source
    distinct, times = (headers[:1], len(headers)) if shared else (headers, 1)
    columns: Columns = {
        "origin_id": [identity_of(each) for each in distinct],
        "source_time": [_stored_time(each.time) for each in distinct],
        "redelivered": [each.redelivered for each in distinct],
    }
    return {name: [*values] * times for name, values in columns.items() if any(values)}


def _stored_time(time: int | None) -> int | None:
    """`time` in microseconds if a column of 64 bits can store it, else None."""
    return time if time is None or -_MAX_TIME <= time < _MAX_TIME else None


def archived_content(messages: Sequence[Message], route: Route | None) -> Columns:
    """Payload and header columns, redacted and cut as the route's archive settings demand.

    The headers of a cut payload contain FULL_SIZE.
    """
    payloads = [payload_bytes(message.payload) for message in messages]
    headers = [header_map(message) for message in messages]
    if route is not None and route.archive_redact:
        headers = [_redacted(each, route.archive_redact) for each in headers]
    maximum = None if route is None else route.archive_payload_bytes
    if maximum is not None:
        headers = [
            {**each, FULL_SIZE: str(len(payload))} if len(payload) > maximum else each
            for each, payload in zip(headers, payloads, strict=True)
        ]
        payloads = [payload[:maximum] for payload in payloads]
    return {"payload": list(payloads), "headers": list(headers)}


def with_proven_name(reason: str, fields: str) -> str:
    """Return the reason of a dead letter with the proven name among the `fields` in its name.

    People know the message by that name: topic and key, its name here, do not tell it.
    """
    name = json.loads(fields).get(SOURCE_FIELD) if SOURCE_FIELD in fields else None
    return f"{reason}; its proven name is {quoted(name)}" if name else reason


def _redacted(headers: Mapping[str, str], names: Sequence[str]) -> Mapping[str, str]:
    """`headers` with REDACTED for each field or property that `names` selects."""
    return {
        name: REDACTED if is_redacted(name, names) else value for name, value in headers.items()
    }


def header_map(message: Message) -> Mapping[str, str]:
    """The set headers as text, properties with PROPERTY_PREFIX; for display and replay."""
    headers = message.headers
    named: dict[str, Value] = {
        "priority": headers.priority,
        "expiry": headers.expiry,
        "reply_to": headers.reply_to,
        "content_type": headers.content_type,
        "retained": headers.retained or None,
        "payload_kind": type(message.payload).__name__,
    }
    if isinstance(message.payload, DroppedPayload):
        named |= {"payload_kind": bytes.__name__, FULL_SIZE: message.payload.full}
    texts = {name: value_text(value) for name, value in named.items() if value is not None}
    if (raw := headers.correlation_id) is not None:
        texts["correlation_id"] = raw if isinstance(raw, str) else raw.hex()
    texts |= {
        f"{PROPERTY_PREFIX}{name}": value_text(value) for name, value in headers.properties.items()
    }
    if other := _not_text(headers):
        texts[NOT_TEXT] = json.dumps(other)
    return texts


def _not_text(headers: Headers) -> list[str]:
    """The names of the properties, and of the correlation id, whose values are not text."""
    found = [
        f"{PROPERTY_PREFIX}{name}"
        for name, value in headers.properties.items()
        if not isinstance(value, str)
    ]
    return ["correlation_id", *found] if isinstance(headers.correlation_id, bytes) else found
