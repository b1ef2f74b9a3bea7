"""Headers of a message to the properties of AMQP 0-9-1 and back.

A property of a message is a header of the table, with its type. The server itself reads a few
headers (`CC` and `BCC` route a message anywhere); properties of these names stand in a table in
the header `gateway_properties`. Fields that AMQP cannot say exactly are also headers.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from gateway.endpoints.rabbitmq.tables import MAX_SHORT, TableReader, encode_table, short_text
from gateway.endpoints.settings.rabbitmq import QUEUE, RabbitmqSettings
from gateway.errors import TranslationError, WireError
from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.dead_letter_rule import PROPERTY_NAME
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import DeliveryMode, Headers, Properties, Value, identity_of
from gateway.model.proof_text import cut_proof, is_shared, read_proof

ORIGIN, PROOF, TIME, EXPIRY = "gateway_origin", "gateway_proof", "gateway_time", "gateway_expiry"
PROPERTIES: Final = "gateway_properties"
PREFIX: Final = "amqp_"  # of properties that are fields only in AMQP
MALFORMED: Final = f"{PREFIX}malformed"  # property with the reason of unreadable headers
STREAM_OFFSET: Final = "x-stream-offset"
MAX_CACHED: Final = 16 << 20  # bytes of a reader or a writer
_PROOF_NAME: Final = short_text(PROOF, "a header name")
_PROOF_MARKS: Final = tuple(_PROOF_NAME + struct.pack(">cI", b"S", size) for size in PROOF_SIZES)
_OWN: Final = frozenset({ORIGIN, PROOF, TIME, EXPIRY, PROPERTIES})
_SERVER: Final = re.compile(r"CC|BCC|x-.*", re.DOTALL)  # headers that the server reads or sets
_MICROSECONDS: Final = 1_000_000
_PER_MS: Final = 1_000
_MAX_TTL: Final = 4_294_967_295  # ms: rabbit_misc:check_expiry
_MAX_PRIORITY: Final = 9
_Kind: TypeAlias = tuple[Callable[[Any, str], bytes], Callable[[TableReader], Any]]
_TEXT: Final[_Kind] = (short_text, TableReader.short)
_TABLE: Final[_Kind] = (lambda value, _: encode_table(value), TableReader.table)
_OCTET: Final[_Kind] = (lambda value, _: bytes((value,)), lambda reader: reader.take(1)[0])
_SECONDS: Final[_Kind] = (
    lambda value, _: struct.pack(">Q", value),
    lambda reader: int.from_bytes(reader.take(8), "big"),
)
_FIELDS: Final = (  # by their flags, from bit 15 down: AMQP 0-9-1, class basic
    ("content_type", _TEXT),
    ("content_encoding", _TEXT),
    ("headers", _TABLE),
    ("delivery_mode", _OCTET),
    ("priority", _OCTET),
    ("correlation_id", _TEXT),
    ("reply_to", _TEXT),
    ("expiration", _TEXT),
    ("message_id", _TEXT),
    ("timestamp", _SECONDS),
    ("type", _TEXT),
    ("user_id", _TEXT),
    ("app_id", _TEXT),
    ("cluster_id", _TEXT),
)
_EXTRA: Final = ("content_encoding", "type", "app_id")  # properties both ways, with the prefix
_READ_ONLY: Final = ("user_id", "cluster_id")  # the server compares `user_id` with the log-in


class PropertyWriter:
    """Writes properties, and keeps those that differ in their proofs only.

    Mutable: used by one sender at a time.
    """

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings = settings
        # what stands before and behind a proof of this length, by the id() of headers; a value
        # keeps its headers, so that no others get their id()
        self._known: LimitedCache[tuple[int, int], tuple[Headers, bytes, bytes]]
        self._known = LimitedCache(MAX_CACHED)

    def write(self, headers: Headers, now: int, proof: str) -> bytes:
        """Return and raise as `write_properties` does."""
        text, key = proof.encode(), (id(headers), len(proof))
        if (known := self._known.get(key)) is not None:
            return known[1] + text + known[2]
        data = write_properties(headers, self._settings, now, proof)
        if text and headers.expiry is None and headers.is_shared and data.count(text) == 1:
            before, _, behind = data.partition(text)
            self._known.add(key, (headers, before, behind), 4 * len(data))
        return data


def write_properties(
    headers: Headers, settings: RabbitmqSettings, now: int, proof: str = ""
) -> bytes:
    """Return the encoded properties; `now` is in microseconds.

    Raises:
        TranslationError: a header has no form in AMQP.
    """
    fields: dict[str, Any] = {
        "content_type": headers.content_type,
        "delivery_mode": 2 if headers.mode >= DeliveryMode.AT_LEAST_ONCE else 1,
        "priority": headers.priority,
        "correlation_id": headers.correlation_id,
        "message_id": _message_id(headers),
    }
    table = _place_properties(headers.properties, fields)
    if headers.reply_to is not None:
        fields["reply_to"] = _reply_text(headers.reply_to, settings.exchange)
    if headers.time is not None:
        table[TIME] = headers.time
        fields["timestamp"] = max(0, headers.time // _MICROSECONDS)
    if headers.expiry is not None:
        table[EXPIRY] = headers.expiry
        fields["expiration"] = str(min(max(0, -(-(headers.expiry - now) // _PER_MS)), _MAX_TTL))
    if headers.origin:
        table[ORIGIN] = ",".join(headers.origin)
    if proof:
        table[PROOF] = proof
    fields["headers"] = table or None
    return _encode({name: value for name, value in fields.items() if value is not None})


class PropertyReader:
    """Reads properties, and keeps the headers of those that differ in their proofs only.

    Mutable: owned by one thread.
    """

    def __init__(self, settings: RabbitmqSettings) -> None:
        self._settings = settings
        # by properties without a proof, and whether one was cut out
        self._known: LimitedCache[tuple[bytes, bool], tuple[Headers, str]]
        self._known = LimitedCache(MAX_CACHED)

    def read(
        self, data: bytes, place: Mapping[str, Value], *, now: int, redelivered: bool
    ) -> tuple[Headers, str, Mapping[str, Value]]:
        """Return as `read_properties` does."""
        if place or redelivered:
            return read_properties(data, self._settings, place, now=now, redelivered=redelivered)
        rest, cut = cut_proof(data, 0, len(data), _PROOF_MARKS)
        key = (rest, cut != "")
        if (known := self._known.get(key)) is not None:
            return known[0], cut or known[1], {}
        found = read_properties(data, self._settings, place, now=now, redelivered=False)
        headers, proof, of_server = found
        keeps = headers.expiry is None and headers.is_shared and not of_server
        if keeps and is_shared(data, _PROOF_NAME, cut, proof):
            self._known.add(key, (headers, proof), 4 * len(rest))
        return found


def read_properties(
    data: bytes,
    settings: RabbitmqSettings,
    place: Mapping[str, Value],
    *,
    now: int,
    redelivered: bool,
) -> tuple[Headers, str, Mapping[str, Value]]:
    """Return headers and proof of a received message, and the server's own headers (`x-...`).

    `place` are further properties. Malformed headers are a property with the reason, and the
    payload goes on.
    """
    try:
        fields = _decode(data)
    except WireError as error:
        properties: dict[str, Value] = {**place, MALFORMED: str(error)}
        mode = DeliveryMode.AT_LEAST_ONCE
        return Headers(mode=mode, redelivered=redelivered, properties=properties), "", {}
    found: dict[str, Value] = fields.pop("headers", {})
    of_server = {name: found.pop(name) for name in tuple(found) if name.startswith("x-")}
    for name in (*_EXTRA, *_READ_ONLY):
        if name in fields:
            found[PREFIX + name] = fields[name]
    origin, time, expiry = found.pop(ORIGIN, None), found.pop(TIME, None), found.pop(EXPIRY, None)
    hidden, proof = found.pop(PROPERTIES, None), read_proof(found.pop(PROOF, None))
    if isinstance(hidden, Mapping):
        found |= hidden
    found |= place
    message_id = fields.get("message_id")
    trusted = settings.unique_message_ids or isinstance(origin, str)
    if message_id is not None and not (trusted and isinstance(message_id, str)):
        found[f"{PREFIX}message_id"] = message_id
        message_id = None
    if not isinstance(time, int):
        time = fields["timestamp"] * _MICROSECONDS if "timestamp" in fields else None
    if not isinstance(expiry, int):
        expiry = _expiry(fields.get("expiration"), now)
    persistent = fields.get("delivery_mode") == 2  # AMQP 0-9-1, class basic
    priority = fields.get("priority")
    headers = Headers(
        mode=DeliveryMode.AT_LEAST_ONCE if persistent else DeliveryMode.AT_MOST_ONCE,
        redelivered=redelivered,
        priority=None if priority is None else min(priority, _MAX_PRIORITY),
        expiry=expiry,
        time=time,
        content_type=_plain(fields.get("content_type")),
        correlation_id=fields.get("correlation_id"),
        reply_to=_reply_address(_plain(fields.get("reply_to")), settings.exchange),
        source_id=message_id,
        origin=tuple(origin.split(",")) if isinstance(origin, str) and origin else (),
        properties=found,
    )
    return headers, proof, of_server


def _place_properties(properties: Properties, fields: dict[str, Any]) -> dict[str, Value]:
    """Return the table of `properties`, and put those that AMQP has fields for into `fields`."""
    table: dict[str, Value] = {}
    hidden: dict[str, Value] = {}
    for name, value in properties.items():
        if name in _OWN:
            reason = f"the property name {name!r} is the gateway's"
            raise TranslationError("rabbitmq", "", PROPERTY_NAME, reason)
        field = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and field in _EXTRA and isinstance(value, str):
            fields[field] = value
        elif _SERVER.fullmatch(name):
            hidden[name] = value
        else:
            table[name] = value
    if hidden:
        table[PROPERTIES] = hidden
    return table


def _message_id(headers: Headers) -> str | None:
    identity = identity_of(headers)
    fits = identity is not None and len(identity.encode("utf-8", "surrogatepass")) <= MAX_SHORT
    return identity if fits else None


def _reply_text(address: str, exchange: str) -> str:
    """Return `reply_to`: the name of a queue, or EXCHANGE/KEY, as Spring AMQP writes it."""
    if address.startswith(QUEUE):
        return address.removeprefix(QUEUE)
    return f"{exchange}/{address}"


def _reply_address(text: str | None, exchange: str) -> str | None:
    if not text:
        return None
    start = f"{exchange}/"
    return text.removeprefix(start) if text.startswith(start) else QUEUE + text


def _expiry(text: object, now: int) -> int | None:
    """Return when a message expires that has `expiration`; how long it waited is unknown."""
    if not isinstance(text, str) or not (text.isascii() and text.isdigit()):
        return None
    return now + min(int(text[:20]), _MAX_TTL) * _PER_MS


def _plain(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _encode(fields: Mapping[str, Any]) -> bytes:
    flags, parts = 0, []
    for place, (name, (write, _)) in enumerate(_FIELDS):
        if (value := fields.get(name)) is not None:
            flags |= 1 << (15 - place)
            parts.append(write(value, f"`{name}`"))
    return struct.pack(">H", flags) + b"".join(parts)


def _decode(data: bytes) -> dict[str, Any]:
    reader = TableReader(data)
    flags = int.from_bytes(reader.take(2), "big")
    fields: dict[str, Any] = {}
    for place, (name, (_, read)) in enumerate(_FIELDS):
        if flags & 1 << (15 - place):
            fields[name] = read(reader)
    return fields
