"""Headers of a message to the sections of AMQP 1.0 and back.

A property of a message is an application property, with its type. Such a property has a simple
value, so those with lists and maps stand in one, `gateway_properties`, as the bytes of a map.
Fields that AMQP cannot say exactly are also application properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, Final, TypeAlias

from gateway.endpoints.amqp.addresses import address_of, name_of
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.errors import TranslationError, WireError
from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.dead_letter_rule import PROPERTY_NAME
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import DeliveryMode, Headers, Value, identity_of
from gateway.model.proof_text import cut_proof, is_shared, read_proof
from gateway.untyped import Untyped
from gateway.wire.amqp import sections, values
from gateway.wire.amqp.sections import MessageHead

ORIGIN, PROOF, TIME, EXPIRY = "gateway_origin", "gateway_proof", "gateway_time", "gateway_expiry"
PROPERTIES: Final = "gateway_properties"
PREFIX: Final = "amqp_"  # of properties that are fields only in AMQP
MALFORMED: Final = f"{PREFIX}malformed"  # property with the reason of an unreadable message
ANNOTATION: Final = "x-opt-"  # begins the annotations that cross; others are for the server
MAX_CACHED: Final = 16 << 20  # bytes of a reader or a writer
MAX_ID: Final = 255  # bytes of a message-id that RabbitMQ passes on to 0-9-1
_PROOF_NAME: Final = values.string(PROOF)
_PROOF_MARKS: Final = tuple(_PROOF_NAME + bytes((0xA1, size)) for size in PROOF_SIZES)
_OWN: Final = frozenset({ORIGIN, PROOF, TIME, EXPIRY, PROPERTIES})
_PER_MS: Final = 1_000  # microseconds
_MAX_MS: Final = (1 << 32) - 1  # of a ttl
_MAX_PRIORITY: Final = 9
_Encode: TypeAlias = Callable[[Any], bytes]
_FIELDS: Final = (  # of the section `properties`, in their order
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
_EXTRA: Final[Mapping[str, _Encode]] = {  # properties both ways, with the prefix
    "subject": values.string,
    "content_encoding": values.symbol,
    "group_id": values.string,
    "group_sequence": values.uint,
    "reply_to_group_id": values.string,
}
_ENCODERS: Final[Mapping[str, _Encode]] = {
    **_EXTRA,
    "message_id": values.string,
    "to": values.string,
    "reply_to": values.string,
    "correlation_id": values.encode_value,
    "content_type": values.symbol,
    "absolute_expiry_time": values.timestamp,
    "creation_time": values.timestamp,
}


class HeadWriter:
    """Writes what stands before a body, and keeps what differs in proofs only.

    Mutable: used by one sender at a time.
    """

    def __init__(self, settings: AmqpSettings) -> None:
        self._settings = settings
        # what stands before and behind a proof of this length, by the id() of headers and the
        # address; a value keeps its headers, so that no others get their id()
        self._known: LimitedCache[tuple[int, str, int], tuple[Headers, bytes, bytes]]
        self._known = LimitedCache(MAX_CACHED)

    def write(self, headers: Headers, to: str, now: int, proof: str) -> bytes:
        """Return and raise as `write_head` does."""
        text, key = proof.encode(), (id(headers), to, len(proof))
        if (known := self._known.get(key)) is not None:
            return known[1] + text + known[2]
        data = write_head(headers, self._settings, to, now, proof)
        if text and headers.expiry is None and headers.is_shared and data.count(text) == 1:
            before, _, behind = data.partition(text)
            self._known.add(key, (headers, before, behind), 2 * len(data) + text_size(to))
        return data


def write_head(
    headers: Headers, settings: AmqpSettings, to: str, now: int, proof: str = ""
) -> bytes:
    """Return the sections before a body; `now` is in microseconds.

    Raises:
        TranslationError: a header has no form in AMQP.
    """
    durable = headers.mode >= DeliveryMode.AT_LEAST_ONCE
    head: list[bytes | None] = [values.boolean(durable), None, None]
    fields: dict[str, Any] = {
        "message_id": _message_id(headers),
        "to": to,
        "correlation_id": headers.correlation_id,
        "content_type": _symbol_text(headers.content_type),
    }
    annotations, application = _place_properties(headers.properties, fields)
    if headers.priority is not None:
        head[1] = values.ubyte(headers.priority)
    if headers.reply_to is not None:
        fields["reply_to"] = address_of(headers.reply_to, settings)
    if headers.time is not None:
        application[TIME] = headers.time
        fields["creation_time"] = headers.time // _PER_MS
    if headers.expiry is not None:
        application[EXPIRY] = headers.expiry
        fields["absolute_expiry_time"] = -(-headers.expiry // _PER_MS)
        head[2] = values.uint(min(max(0, -(-(headers.expiry - now) // _PER_MS)), _MAX_MS))
    if headers.origin:
        application[ORIGIN] = ",".join(headers.origin)
    if proof:
        application[PROOF] = proof
    found = [values.composite(sections.HEADER, head)]
    if annotations:
        found.append(_map_section(sections.ANNOTATIONS, values.symbol, annotations))
    encoded = [
        None if (value := fields.get(name)) is None else _ENCODERS[name](value) for name in _FIELDS
    ]
    found.append(values.composite(sections.PROPERTIES, encoded))
    if application:
        found.append(_map_section(sections.APPLICATION, values.string, application))
    return b"".join(found)


class HeadReader:
    """Reads what stands before a body, and keeps what differs in proofs only.

    Mutable: owned by one thread.
    """

    def __init__(self, settings: AmqpSettings) -> None:
        self._settings = settings
        # by the bytes without a proof, and whether one was cut out
        self._known: LimitedCache[tuple[bytes, bool], tuple[str, Headers, str]]
        self._known = LimitedCache(MAX_CACHED)

    def read(self, data: bytes, now: int) -> tuple[str, Headers, str]:
        """Return as `read_head` does."""
        rest, cut = cut_proof(data, 0, len(data), _PROOF_MARKS)
        key = (rest, cut != "")
        if (known := self._known.get(key)) is not None:
            return known[0], known[1], cut or known[2]
        found = read_head(data, self._settings, now)
        _, headers, proof = found
        if (
            headers.expiry is None
            and headers.is_shared
            and is_shared(data, PROOF.encode(), cut, proof)
        ):
            self._known.add(key, found, 4 * len(rest))
        return found


def read_head(data: bytes, settings: AmqpSettings, now: int) -> tuple[str, Headers, str]:
    """Return name, headers and proof of a received message; the name is empty if it has none.

    Malformed sections are a property with the reason, and the payload goes on.
    """
    try:
        head = sections.read_head(data)
    except WireError as error:
        properties: dict[str, Value] = {MALFORMED: str(error)}
        return "", Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties=properties), ""
    fields = dict(zip(_FIELDS, map(_plain_value, head.properties), strict=False))
    found = {_key_text(key): _plain_value(each) for key, each in head.application.items()}
    proof = read_proof(found.pop(PROOF, None))
    name = name_of(head.annotations, fields.get("to"), settings)
    return name, _read_headers(head, fields, found, settings, now), proof


def _read_headers(
    head: MessageHead,
    fields: Mapping[str, Any],
    found: dict[str, Value],
    settings: AmqpSettings,
    now: int,
) -> Headers:
    origin, time, expiry = found.pop(ORIGIN, None), found.pop(TIME, None), found.pop(EXPIRY, None)
    found |= _hidden(found.pop(PROPERTIES, None))
    for key, value in head.annotations.items():
        if str(key).startswith(ANNOTATION):
            found[f"{PREFIX}{key}"] = _plain_value(value)
    for field in (*_EXTRA, "user_id"):
        if (value := fields.get(field)) is not None:
            found[PREFIX + field] = value
    message_id = fields.get("message_id")
    trusted = settings.unique_message_ids or isinstance(origin, str)
    if message_id is not None and not (trusted and isinstance(message_id, str)):
        found[f"{PREFIX}message_id"] = message_id
        message_id = None
    if not isinstance(time, int):
        made = fields.get("creation_time")
        time = made * _PER_MS if isinstance(made, int) else None
    durable, priority, ttl = head.durable, head.priority, head.ttl
    if not isinstance(expiry, int):
        until = fields.get("absolute_expiry_time")
        expiry = until * _PER_MS if isinstance(until, int) else None
        if expiry is None and ttl is not None:
            expiry = now + ttl * _PER_MS
    correlation = fields.get("correlation_id")
    correlation = str(correlation) if isinstance(correlation, int) else correlation
    return Headers(
        mode=DeliveryMode.AT_LEAST_ONCE if durable else DeliveryMode.AT_MOST_ONCE,
        redelivered=head.delivery_count > 0
        or (settings.product.has_exchanges and not head.first_acquirer),
        priority=None if priority is None else min(priority, _MAX_PRIORITY),
        expiry=expiry,
        time=time,
        content_type=_text(fields.get("content_type")),
        correlation_id=correlation if isinstance(correlation, str | bytes) else None,
        reply_to=_reply_name(fields.get("reply_to"), settings),
        source_id=message_id,
        origin=tuple(origin.split(",")) if isinstance(origin, str) and origin else (),
        properties=found,
    )


def _place_properties(
    properties: Mapping[str, Value], fields: dict[str, Any]
) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return annotations and application properties, and put what AMQP has into `fields`."""
    annotations: dict[str, Value] = {}
    application: dict[str, Value] = {}
    hidden: dict[str, Value] = {}
    for name, value in properties.items():
        if name in _OWN:
            reason = f"the property name {name!r} is the gateway's"
            raise TranslationError("amqp", "", PROPERTY_NAME, reason)
        field = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
        if field.startswith(ANNOTATION) and field.isascii() and value is not None:
            annotations[field] = value  # a reader of RabbitMQ 4.0 loses its session at a null one
        elif field in _EXTRA and _fits(field, value):
            fields[field] = value
        elif isinstance(value, Mapping | list | tuple):
            hidden[name] = value
        else:
            application[name] = value
    if hidden:
        application[PROPERTIES] = values.encode_value(hidden)
    return annotations, application


def _fits(field: str, value: Value) -> bool:
    if field == "group_sequence":
        return isinstance(value, int) and 0 <= value <= _MAX_MS
    return isinstance(value, str) and (field != "content_encoding" or value.isascii())


def _map_section(code: int, key: _Encode, found: Mapping[str, Value]) -> bytes:
    items = {key(name): values.encode_value(value) for name, value in found.items()}
    return values.described(code, values.map_of(items))


def _message_id(headers: Headers) -> str | None:
    identity = identity_of(headers)
    fits = identity is not None and len(identity.encode("utf-8", "surrogatepass")) <= MAX_ID
    return identity if fits else None


def _symbol_text(text: str | None) -> str | None:
    """Return a content type as a symbol has it: up to a character that is not ASCII."""
    return text and "".join(takewhile(str.isascii, text))


def _hidden(found: Value) -> Mapping[str, Value]:
    """Return the properties that stand in one."""
    if not isinstance(found, bytes):
        return {} if found is None else {PROPERTIES: found}
    try:
        value = values.read_value(found)[0]
    except WireError:
        return {PROPERTIES: found}
    return value if isinstance(value, dict) else {PROPERTIES: found}


def _plain_value(value: Untyped) -> Value:
    """Return a value without descriptors, whose keys are texts."""
    if isinstance(value, values.Described):
        return _plain_value(value.value)
    if isinstance(value, dict):
        return {_key_text(key): _plain_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain_value(each) for each in value]
    found: Value = value
    return found


def _key_text(key: object) -> str:
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _reply_name(address: object, settings: AmqpSettings) -> str | None:
    return name_of({}, address, settings) or None if isinstance(address, str) else None
