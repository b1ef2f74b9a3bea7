"""Canonical messages to the library's; one prepared message is sent again and again.

Building a message costs as much as sending three. So a prepared one is kept for each value of
headers, and only its payload is exchanged; that is safe because the library copies it in `publish`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from solace.messaging.config.solace_properties import message_properties as keys
from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError

from gateway.endpoints.solace import fields
from gateway.endpoints.solace.names import find_fault
from gateway.endpoints.solace.native import Native
from gateway.endpoints.solace.refusals import explain
from gateway.errors import TranslationError
from gateway.model.message import DeliveryMode, Headers, Message, Value

_MOST_KEPT: Final = 256
_INTEGERS: Final = range(-(2**63), 2**64)
_LONGEST_LIFE: Final = 315_360_000_000  # milliseconds; past it no limit is set
_SETTINGS: Final = "solace."  # the library takes names below it for its own settings

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Now = Callable[[], int]


class Writer:
    """Mutable: it keeps prepared messages. Only one thread may use it at a time."""

    def __init__(self, builder: Any, native: Native, now: Now, partition_level: int) -> None:  # noqa: ANN401
        self._builder, self._native, self._now = builder, native, now
        self._partition_level = partition_level
        self._prepared: dict[tuple[int, str, bool], tuple[Headers, Any]] = {}
        self._latest: Headers | None = None  # of the latest payload of bytes, without a key
        self._latest_prepared: Any = None
        self._latest_pointer: Any = None

    def write(self, message: Message) -> Any:  # noqa: ANN401  # the driver's message
        """A message to publish before the next call.

        Raises:
            TranslationError: a field or the payload cannot be said in SMF.
        """
        payload, headers = message.payload, message.headers
        if headers is self._latest and payload.__class__ is bytes:
            self._native.set_bytes(self._latest_pointer, payload)
            return self._latest_prepared
        key = self._key(message)
        match payload:
            case bytes():
                prepared = self._prepare(headers, key, is_text=False)
                pointer = self._native.pointer(prepared)
                self._native.set_bytes(pointer, payload)
                if not self._partition_level and headers.expiry is None:
                    self._latest = headers
                    self._latest_prepared, self._latest_pointer = prepared, pointer
                return prepared
            case str() if "\0" not in payload:
                prepared = self._prepare(headers, key, is_text=True)
                self._native.set_text(prepared, _said(payload, "payload"))
                return prepared
            case str():
                content = bytearray(_encoded(payload, "payload"))
                return self._build(content, headers, key, {fields.PAYLOAD: "text"})
            case _:
                return self._build(_plain(payload, "payload"), headers, key)

    def _prepare(self, headers: Headers, key: str, *, is_text: bool) -> Any:  # noqa: ANN401
        """A message with these headers, made now or before; its payload is to be exchanged."""
        place = (id(headers), key, is_text)
        known = self._prepared.get(place)
        if known is not None and known[0] is headers:
            return known[1]
        prepared = self._build("" if is_text else bytearray(b"-"), headers, key)
        if headers.expiry is None:  # what is left of a life is another every time
            if len(self._prepared) >= _MOST_KEPT:
                self._prepared.clear()
            self._prepared[place] = headers, prepared
        return prepared

    def _build(
        self,
        payload: str | bytearray | dict[str, Any],
        headers: Headers,
        key: str,
        more: Mapping[str, str] = NOTHING,
    ) -> Any:  # noqa: ANN401
        properties = self._properties(headers, key)
        properties.update(more)
        try:
            built = self._builder.build(payload, properties)
        except (PubSubPlusClientError, ValueError, ctypes.ArgumentError) as error:
            raise TranslationError("solace", "message", "library", explain(error)) from error
        if headers.reply_to and fields.REPLY_TO not in properties:
            self._native.set_reply_to(built, headers.reply_to)
        if headers.time is not None:
            self._native.set_time(built, headers.time // fields.MILLI)
        return built

    def _key(self, message: Message) -> str:
        """The partition key that the topic gives."""
        if not self._partition_level:
            return ""
        levels = message.address.split("/")
        return levels[self._partition_level - 1] if len(levels) >= self._partition_level else ""

    def _properties(self, headers: Headers, key: str) -> dict[str, Any]:
        """The library's settings and the user's properties, in the one mapping it wants."""
        found = _own(headers)
        plain = {
            _said(name, "name in properties"): _convert(value, "properties")
            for name, value in headers.properties.items()
        }
        hidden = {name: value for name, value in plain.items() if _is_misread(name)}
        found.update((name, value) for name, value in plain.items() if name not in hidden)
        if hidden:
            found[fields.PROPERTIES] = [[name, value] for name, value in hidden.items()]
        if key:
            found[fields.PARTITION_KEY] = key
        if headers.priority is not None:
            found[keys.PRIORITY] = headers.priority
        if headers.content_type is not None:
            found[keys.HTTP_CONTENT_TYPE] = _said(headers.content_type, "content type")
        if isinstance(headers.correlation_id, str):
            found[keys.CORRELATION_ID] = _said(headers.correlation_id, "correlation id")
        if headers.source_id is not None:
            found[keys.APPLICATION_MESSAGE_ID] = _said(headers.source_id, "message id")
        if headers.expiry is not None:
            self._limit_life(found, headers.expiry, headers.mode)
        return found

    def _limit_life(self, found: dict[str, Any], expiry: int, mode: DeliveryMode) -> None:
        left = (expiry - self._now()) // fields.MILLI
        if left <= 0:
            raise TranslationError("solace", "expiry", "expired", "the message has expired")
        found[keys.PERSISTENT_EXPIRATION] = expiry // fields.MILLI
        if expiry % fields.MILLI:
            found[fields.EXPIRY] = expiry
        if mode is not DeliveryMode.AT_MOST_ONCE and left <= _LONGEST_LIFE:
            found[keys.PERSISTENT_TIME_TO_LIVE] = left


def _own(headers: Headers) -> dict[str, Any]:
    """The properties for what SMF has no field for."""
    found: dict[str, Any] = {}
    if headers.mode is DeliveryMode.EXACTLY_ONCE:
        found[fields.MODE] = int(headers.mode)
    if headers.retained:
        found[fields.RETAINED] = True
    if headers.priority == fields.DEFAULT_PRIORITY:
        found[fields.PRIORITY] = headers.priority
    if headers.time is not None and (headers.time <= 0 or headers.time % fields.MILLI):
        found[fields.TIME] = headers.time
    if isinstance(headers.correlation_id, bytes):
        found[fields.CORRELATION] = bytearray(headers.correlation_id)
    if headers.origin:
        found[fields.ORIGIN] = [_said(each, "origin") for each in headers.origin]
    if headers.reply_to and find_fault(headers.reply_to)[0]:
        found[fields.REPLY_TO] = _said(headers.reply_to, "reply-to")
    return found


def _is_misread(name: str) -> bool:
    return not name or name.startswith(_SETTINGS) or name in fields.OWN


def _said(text: str, what: str) -> str:
    """`text`, when a C string in UTF-8 can hold it."""
    if "\0" in text:
        raise TranslationError("solace", text, "nul", f"the {what} would be cut at its NUL")
    _encoded(text, what)
    return text


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("solace", text, "not-utf-8", f"the {what} is no UTF-8") from error


def _plain(values: Mapping[str, Value], what: str) -> dict[str, Any]:
    """`values` of the payload, or a map inside it."""
    return {_named(name, what): _convert(value, what) for name, value in values.items()}


def _named(name: str, what: str) -> str:
    if not name:
        raise TranslationError("solace", name, "empty-name", f"a name in {what} is empty")
    return _said(name, f"name in {what}")


def _convert(value: Value, what: str) -> Any:  # noqa: ANN401  # what the driver takes
    match value:
        case str():
            return _said(value, f"text in {what}")
        case bytes():
            return bytearray(value)
        case bool() | float() | None:
            return value
        case int():
            if value not in _INTEGERS:
                reason = f"a number in {what} does not fit into 64 bits"
                raise TranslationError("solace", str(value), "integer-range", reason)
            return value
        case Mapping():
            return _plain(value, what)
        case list() | tuple():
            return [_convert(each, what) for each in value]
