"""Messages to the bytes that Sender.java unpacks; refuses messages that JMS or EMS cannot carry."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

from gateway.endpoints.jms import property_names as names
from gateway.endpoints.jms.addresses import (
    IMPORT_MARK,
    QUEUE,
    TOPIC,
    find_name_error,
    import_mark,
    split_address,
)
from gateway.endpoints.jms.message_reader import (
    BYTES,
    DEFAULT_PRIORITY,
    MAP,
    MICROSECONDS_PER_MS,
    NONE,
    NULL_TEXT,
    STREAM,
    STREAM_KEY,
    TEXT,
)
from gateway.endpoints.jms.value_codec import (
    INT64,
    SURROGATES,
    JavaLong,
    UnsendableError,
    write_text,
    write_value,
)
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.dead_letter_rule import (
    CORRELATION_SIZE,
    IMPORTED_LOOP,
    INTEGER_SIZE,
    JMS_TYPE,
    MESSAGE_SIZE,
    PRIORITY,
    PROPERTY,
    REPLY_TO,
    DeadLetterRule,
)
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size, text_size
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Message, Payload, Value

PERSISTENT, NON_PERSISTENT, RELIABLE = 2, 1, 22  # RELIABLE is a constant of Tibjms
_HEAD = Struct(">BBBBq")
_SIZE = Struct(">i")
Extra: TypeAlias = tuple[bytes, frozenset[str]]  # packed, and marks of topics never to send to
_NO_EXTRA: Extra = (b"", frozenset())
_EMPTY_FORMS: Final = {"none": NONE, "null": NULL_TEXT}
MAX_TYPE_BYTES = 32_000  # as of a name
MAX_REMEMBERED_SIZE = 8 << 20  # bytes of addresses, and of headers


class MessageWriter:
    """Packs messages.

    Mutable: owned by the sending thread; it remembers addresses and headers.
    """

    def __init__(self, settings: JmsSettings, default: int) -> None:
        self._settings = settings
        self._default = default
        self._addresses: LimitedCache[str, tuple[int, bytes]] = LimitedCache(MAX_REMEMBERED_SIZE)
        # by id() of the kept headers, and whether a proof follows
        self._extras: LimitedCache[tuple[int, bool], tuple[Headers, Extra]]
        self._extras = LimitedCache(MAX_REMEMBERED_SIZE)
        self._weaker_mode = RELIABLE if settings.delivery == "reliable" else NON_PERSISTENT
        self._best_mode = PERSISTENT if settings.delivery == "persistent" else self._weaker_mode
        requests: tuple[tuple[str, Value, bool], ...] = (
            ("JMS_TIBCO_COMPRESS", True, settings.compress),
            ("JMS_TIBCO_PRESERVE_UNDELIVERED", True, settings.preserve_undelivered),
            ("JMS_TIBCO_MSG_TRACE", None, settings.trace),
        )
        self._ems_properties = [(name, value) for name, value, wanted in requests if wanted]

    def write(self, message: Message) -> tuple[bytes, bool]:
        """Return one record, and whether it is persistent.

        Raises:
            UnsendableError: the message breaks a rule of JMS or of EMS.
        """
        headers = message.headers
        kind, name = self._addresses.get(message.address) or self._read_address(message.address)
        form, body = self._pack_body(message.payload, headers)
        if len(body) > self._settings.max_message:
            limit = self._settings.max_message
            raise UnsendableError(MESSAGE_SIZE, f"the body is {len(body)} bytes, limit {limit}")
        mode = self._weaker_mode if headers.mode is DeliveryMode.AT_MOST_ONCE else self._best_mode
        priority = DEFAULT_PRIORITY if headers.priority is None else headers.priority
        if not 0 <= priority <= 9:  # JMS 2.0, 3.4.10
            raise UnsendableError(PRIORITY, f"the priority {priority} is outside 0..9")
        expiry = 0 if headers.expiry is None else max(1, -(-headers.expiry // MICROSECONDS_PER_MS))
        head = _HEAD.pack(form, kind, priority, mode, expiry)
        proof = message.proof
        extra, imported = self._pack_extra(headers, has_proof=proof != "")
        if proof:
            extra += write_value(proof)
        if imported and kind == TOPIC:
            self._refuse_loop(message.address, imported)
        size = 4 + len(head) + len(name) + 4 + len(body) + len(extra)
        parts = (_SIZE.pack(size), head, name, _SIZE.pack(len(body)), body, extra)
        return b"".join(parts), mode == PERSISTENT

    def _read_address(self, address: str) -> tuple[int, bytes]:
        kind, name = split_address(address, self._default)
        if error := self._find_error(kind, name):
            raise UnsendableError(*error)
        found = (kind, write_text(name))
        self._addresses.add(address, found, text_size(address) + len(found[1]))
        return found

    def _find_error(self, kind: int, name: str) -> tuple[DeadLetterRule, str] | None:
        ems = self._settings.is_ems and kind <= QUEUE
        return find_name_error(name, ems=ems, joined=self._settings.joined)

    def _refuse_loop(self, address: str, imported: frozenset[str]) -> None:
        _, topic = split_address(address, self._default)
        if import_mark(self._settings.broker_key, topic) in imported:
            reason = f"the server imported it to {topic!r} and would export it again"
            raise UnsendableError(IMPORTED_LOOP, reason)

    def _pack_body(self, payload: Payload, headers: Headers) -> tuple[int, bytes]:
        form_name = headers.properties.get(names.BODY_FORM) if headers.properties else None
        if form_name is not None and not payload and form_name in _EMPTY_FORMS:
            return _EMPTY_FORMS[str(form_name)], b""
        if isinstance(payload, bytes):
            return BYTES, payload
        if isinstance(payload, str):
            return TEXT, payload.encode("utf-8", SURROGATES)
        if form_name == "stream" and list(payload) == [STREAM_KEY]:
            values = payload[STREAM_KEY]
            if isinstance(values, list | tuple):
                return STREAM, write_value(values)
        return MAP, write_value(payload)

    def _pack_extra(self, headers: Headers, *, has_proof: bool) -> Extra:
        """Return what stands behind the body: all of it, or all before the text of the proof."""
        if headers is NO_HEADERS and not self._ems_properties and not has_proof:
            return _NO_EXTRA
        key = (id(headers), has_proof)
        found = self._extras.get(key)
        if found is not None and found[0] is headers:
            return found[1]
        imported = (mark for mark in headers.origin if mark.startswith(IMPORT_MARK))
        extra = (self._write_extra(headers, has_proof=has_proof), frozenset(imported))
        self._extras.add(key, (headers, extra), headers_size(headers) + len(extra[0]))
        return extra

    def _write_extra(self, headers: Headers, *, has_proof: bool) -> bytes:
        properties = self._jms_properties(headers)
        correlation, form = self._correlation_text(headers.correlation_id)
        if form is not None:
            properties.append((names.CORRELATION_FORM, form))
        kind = reply = None
        if headers.reply_to is not None:
            kind, reply = split_address(headers.reply_to, self._default)
            if error := self._find_error(kind, reply):
                raise UnsendableError(REPLY_TO, error[1])
        jms_type = headers.properties.get(names.JMS_TYPE)
        if not isinstance(jms_type, str | None) or len(jms_type or "") * 3 > MAX_TYPE_BYTES:
            raise UnsendableError(JMS_TYPE, "the property JMSType is no text, or too long")
        count = len(properties) + has_proof
        if not count and correlation is None and reply is None and jms_type is None:
            return b""
        parts = [write_value(correlation), bytes((kind or 0,)), write_value(reply)]
        parts += (write_value(jms_type), _SIZE.pack(count))
        for name, value in properties:
            parts += (write_text(name), write_value(value))
        if has_proof:
            parts.append(write_text(names.PROOF))
        return b"".join(parts)

    def _jms_properties(self, headers: Headers) -> list[tuple[str, Value]]:
        """The sender's properties, headers without a JMS field, and requests to EMS."""
        gateway_fields = (
            (names.ORIGIN, ",".join(headers.origin) or None),
            (names.TIME, headers.time),
            (names.SOURCE_ID, headers.source_id),
            (names.EXPIRY, headers.expiry),
            (names.CONTENT_TYPE, headers.content_type),
        )
        found: list[tuple[str, Value]] = [
            (name, JavaLong(value) if isinstance(value, int) else value)
            for name, value in gateway_fields
            if value is not None
        ]
        types: dict[str, str] = {}
        for name, value in headers.properties.items():
            if name == names.JMS_TYPE or (name == names.BODY_FORM and value != "object"):
                continue  # a field of JMS; the type of the body
            if (jms_name := names.encode_property_name(name)) is not None:
                flat, form = _flatten(value)
                found.append((jms_name, flat))
                if form:
                    types[name] = form
        if types:
            found.append((names.PROPERTY_TYPES, json.dumps(types)))
        return found + self._ems_properties

    def _correlation_text(self, value: bytes | str | None) -> tuple[str | None, str | None]:
        if value is None:
            return None, None
        text, form = (value, None) if isinstance(value, str) else _as_text(value)
        size = len(text.encode("utf-8", SURROGATES))
        limit = self._settings.max_correlation
        if size > limit:
            raise UnsendableError(CORRELATION_SIZE, f"the id is {size} bytes, limit {limit}")
        return text, form


def _as_text(value: bytes) -> tuple[str, str]:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex(), "hex"
    return (text, "text") if text.isprintable() else (value.hex(), "hex")


def _flatten(value: Value) -> tuple[Value, str]:
    """Return the value as a JMS property, and its original type if it became text."""
    match value:
        case bool() | None | float() | str():
            return value, ""
        case int():
            return (value, "") if -INT64 <= value < INT64 else (_decimal_digits(value), "int")
        case bytes():
            return b64encode(value).decode(), "bytes"
        case Mapping() | list() | tuple():
            try:
                return json.dumps(value), "json"
            except (TypeError, ValueError) as error:
                raise UnsendableError(PROPERTY, "bytes inside a list or map") from error
            except RecursionError as error:
                raise UnsendableError(PROPERTY, "is nested too deep") from error


def _decimal_digits(value: int) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python refuses to convert very many digits
        reason = f"an integer of {value.bit_length()} bits is too large"
        raise UnsendableError(INTEGER_SIZE, reason) from error
