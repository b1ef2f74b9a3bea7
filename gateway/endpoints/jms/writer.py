"""Messages to the bytes Sender.java unpacks; refuses what JMS or EMS has no place for."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

from gateway.endpoints.jms import names
from gateway.endpoints.jms.reader import (
    BYTES,
    MAP,
    MILLI,
    NONE,
    NORMAL,
    NULL_TEXT,
    STREAM,
    STREAM_KEY,
    TEXT,
)
from gateway.endpoints.jms.values import (
    INT64,
    PASS,
    JavaLong,
    UnsendableError,
    write_text,
    write_value,
)
from gateway.endpoints.settings.jms import JmsSettings
from gateway.model.message import PLAIN, DeliveryMode, Headers, Message, Payload, Value

PERSISTENT, NON_PERSISTENT, RELIABLE = 2, 1, 22  # RELIABLE is com.tibco.tibjms.Tibjms's
_HEAD = Struct(">BBBBq")
_SIZE = Struct(">i")
Extra: TypeAlias = tuple[bytes, frozenset[str]]  # and the topics it must not go back to
_NO_EXTRA: Extra = (b"", frozenset())
_FORMS: Final = {"none": NONE, "null": NULL_TEXT}
LONGEST_TYPE = 32_000  # bytes, as of a name


class MessageWriter:
    """Packs messages; mutable, since it remembers addresses and headers it has seen."""

    def __init__(self, settings: JmsSettings, default: int) -> None:
        self._settings = settings
        self._default = default
        self._addresses: dict[str, tuple[int, bytes]] = {}
        self._extras: dict[int, tuple[Headers, Extra]] = {}  # by identity, which the value keeps
        self._low = RELIABLE if settings.delivery == "reliable" else NON_PERSISTENT
        self._high = PERSISTENT if settings.delivery == "persistent" else self._low
        self._set: list[tuple[str, Value]] = [
            (name, True)
            for name, wanted in (
                ("JMS_TIBCO_COMPRESS", settings.compress),
                ("JMS_TIBCO_PRESERVE_UNDELIVERED", settings.preserve_undelivered),
            )
            if wanted
        ]
        if settings.trace:
            self._set.append(("JMS_TIBCO_MSG_TRACE", None))

    def write(self, message: Message) -> tuple[bytes, bool]:
        """One record, and whether it is persistent.

        Raises:
            UnsendableError: the message breaks a rule of JMS or of EMS.
        """
        headers = message.headers
        kind, name = self._addresses.get(message.address) or self._learn(message.address)
        form, body = self._body(message.payload, headers)
        if len(body) > self._settings.max_message:
            limit = self._settings.max_message
            raise UnsendableError("message-size", f"the body is {len(body)} bytes, limit {limit}")
        mode = self._low if headers.mode is DeliveryMode.AT_MOST_ONCE else self._high
        priority = NORMAL if headers.priority is None else headers.priority
        if not 0 <= priority <= 9:  # noqa: PLR2004  # JMS 2.0, 3.4.10
            raise UnsendableError("priority", f"the priority {priority} is outside 0..9")
        expiry = 0 if headers.expiry is None else max(1, -(-headers.expiry // MILLI))
        head = _HEAD.pack(form, kind, priority, mode, expiry)
        extra, imported = self._extra(headers)
        if imported and kind == names.TOPIC:
            self._refuse_return(message.address, imported)
        size = 4 + len(head) + len(name) + 4 + len(body) + len(extra)
        parts = (_SIZE.pack(size), head, name, _SIZE.pack(len(body)), body, extra)
        return b"".join(parts), mode == PERSISTENT

    def _learn(self, address: str) -> tuple[int, bytes]:
        kind, name = names.split_address(address, self._default)
        if fault := self._find_fault(kind, name):
            raise UnsendableError(*fault)
        if len(self._addresses) >= 16_384:  # noqa: PLR2004  # addresses remembered
            self._addresses.clear()
        found = self._addresses[address] = (kind, write_text(name))
        return found

    def _find_fault(self, kind: int, name: str) -> tuple[str, str] | None:
        ems = self._settings.is_ems and kind <= names.QUEUE
        return names.find_name_fault(name, ems=ems, joined=self._settings.joined)

    def _refuse_return(self, address: str, imported: frozenset[str]) -> None:
        _, topic = names.split_address(address, self._default)
        if names.import_mark(self._settings.broker_key, topic) in imported:
            raise UnsendableError(
                "imported-loop",
                f"the server has imported it to {topic!r}, and would export it from there again",
            )

    def _body(self, payload: Payload, headers: Headers) -> tuple[int, bytes]:
        mark = headers.properties.get(names.BODY) if headers.properties else None
        if mark is not None and not payload and mark in _FORMS:
            return _FORMS[str(mark)], b""
        if isinstance(payload, bytes):
            return BYTES, payload
        if isinstance(payload, str):
            return TEXT, payload.encode("utf-8", PASS)
        if mark == "stream" and list(payload) == [STREAM_KEY]:
            values = payload[STREAM_KEY]
            if isinstance(values, list | tuple):
                return STREAM, write_value(values)
        return MAP, write_value(payload)

    def _extra(self, headers: Headers) -> Extra:
        if headers is PLAIN and not self._set:
            return _NO_EXTRA
        found = self._extras.get(id(headers))
        if found is not None and found[0] is headers:
            return found[1]
        imported = (mark for mark in headers.origin if mark.startswith(names.IMPORT_MARK))
        extra = (self._write_extra(headers), frozenset(imported))
        if len(self._extras) >= 1_024:  # noqa: PLR2004  # headers remembered
            self._extras.clear()
        self._extras[id(headers)] = (headers, extra)
        return extra

    def _write_extra(self, headers: Headers) -> bytes:
        properties = self._properties(headers)
        correlation, form = self._correlation(headers.correlation_id)
        if form is not None:
            properties.append((names.CORRELATION, form))
        kind = jms_type = reply = None
        if headers.reply_to is not None:
            kind, reply = names.split_address(headers.reply_to, self._default)
            if fault := self._find_fault(kind, reply):
                raise UnsendableError("reply-to", fault[1])
        if headers.properties:
            jms_type = headers.properties.get(names.TYPE)
            if not isinstance(jms_type, str | None) or len(jms_type or "") * 3 > LONGEST_TYPE:
                raise UnsendableError("jms-type", "the property JMSType is no text, or too long")
        if not properties and correlation is None and reply is None and jms_type is None:
            return b""
        parts = [write_value(correlation), bytes((kind or 0,)), write_value(reply)]
        parts += (write_value(jms_type), _SIZE.pack(len(properties)))
        for name, value in properties:
            parts += (write_text(name), write_value(value))
        return b"".join(parts)

    def _properties(self, headers: Headers) -> list[tuple[str, Value]]:
        """The sender's own, what JMS has no field for, and what EMS is told."""
        own = (
            (names.ORIGIN, ",".join(headers.origin) or None),
            (names.TIME, headers.time),
            (names.SOURCE_ID, headers.source_id),
            (names.EXPIRY, headers.expiry),
            (names.CONTENT_TYPE, headers.content_type),
        )
        found: list[tuple[str, Value]] = [
            (name, JavaLong(value) if isinstance(value, int) else value)
            for name, value in own
            if value is not None
        ]
        types: dict[str, str] = {}
        for name, value in headers.properties.items():
            spelled = self._spell(name, headers)
            if spelled is not None:
                flat, form = _flatten(value)
                found.append((spelled, flat))
                if form:
                    types[name] = form
        if types:
            found.append((names.TYPES, json.dumps(types)))
        return found + self._set

    def _spell(self, name: str, headers: Headers) -> str | None:
        if name == names.TYPE or (name == names.BODY and headers.properties[name] != "object"):
            return None  # a field of JMS, and what the body's own form says again
        return names.write_name(name)

    def _correlation(self, value: bytes | str | None) -> tuple[str | None, str | None]:
        if value is None:
            return None, None
        text, form = (value, None) if isinstance(value, str) else _as_text(value)
        size = len(text.encode("utf-8", PASS))
        limit = self._settings.max_correlation
        if size > limit:
            raise UnsendableError("correlation-size", f"the id is {size} bytes, limit {limit}")
        return text, form


def _as_text(value: bytes) -> tuple[str, str]:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex(), "hex"
    return (text, "text") if text.isprintable() else (value.hex(), "hex")


def _flatten(value: Value) -> tuple[Value, str]:
    """A property's value as JMS has it, and how to read it back when it became text."""
    match value:
        case bool() | None | float() | str():
            return value, ""
        case int():
            return (value, "") if -INT64 <= value < INT64 else (str(value), "int")
        case bytes():
            return b64encode(value).decode(), "bytes"
        case Mapping() | list() | tuple():
            try:
                return json.dumps(value), "json"
            except (TypeError, ValueError) as error:
                raise UnsendableError("property", "bytes inside a list or map") from error
