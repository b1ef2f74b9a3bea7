"""Canonical messages to the library's; one prepared message is sent again and again.

Building a message costs as much as sending three. So a prepared one is kept for each value of
headers, and only its payload is exchanged; that is safe because the library keeps what it still
needs of a message when it sends it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final

from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError

from gateway.endpoints.solace import fields
from gateway.endpoints.solace.native import Mode, Native, Pointer, pointer_of
from gateway.endpoints.solace.properties import Now, encoded, meaning, plain, properties_of, said
from gateway.endpoints.solace.refusals import explain
from gateway.errors import TranslationError
from gateway.model.message import DeliveryMode, Headers, Message, Payload

_MOST_KEPT: Final = 256
_MOST_KNOWN: Final = 16_384
_LARGE: Final = 65_536  # bytes of a payload that a prepared message does not keep

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Writer:
    """Mutable: it keeps prepared messages. Only one thread may use it at a time."""

    def __init__(
        self,
        builder: Any,  # noqa: ANN401  # the driver's
        native: Native,
        now: Now,
        *,
        partition_level: int,
        guaranteed: bool,
    ) -> None:
        self._builder, self._native, self._now = builder, native, now
        self._partition_level, self._guaranteed = partition_level, guaranteed
        self._prepared: dict[tuple[Hashable, str, bool], Any] = {}  # by what the headers say
        self._known: dict[tuple[int, str, bool], tuple[Headers, Pointer]] = {}  # and by identity
        self._latest: Headers | None = None  # of the latest payload of bytes, without a key
        self._latest_pointer = Pointer()
        self._spent: Any = None  # the latest message that is not kept
        self._large: Pointer | None = None  # the latest kept one, when its payload takes room

    def write(self, message: Message) -> Pointer:
        """A message to send before the next call, which takes its payload away.

        Raises:
            TranslationError: a field or the payload cannot be said in SMF.
        """
        payload, headers = message.payload, message.headers
        if self._spent is not None or self._large is not None:
            self._tidy()
        if payload.__class__ is bytes and len(payload) > _LARGE:
            return self._written(message)
        if headers is self._latest and payload.__class__ is bytes:
            self._native.set_bytes(self._latest_pointer, payload)
            return self._latest_pointer
        return self._written(message)

    def _written(self, message: Message) -> Pointer:
        payload, headers, key = message.payload, message.headers, self._key(message)
        self._latest = None  # a refusal may come when its message has changed a little
        pointer = self._filled(payload, headers, key)
        self._tell_apart(pointer, headers)
        if len(payload) > _LARGE and self._spent is None:
            self._large = pointer
        if payload.__class__ is bytes and not self._partition_level and self._spent is None:
            self._latest, self._latest_pointer = headers, pointer
        return pointer

    def _filled(self, payload: Payload, headers: Headers, key: str) -> Pointer:
        """A message with these headers, but for what `_tell_apart` adds, and the payload."""
        match payload:
            case bytes():
                pointer = self._prepare(headers, key, is_text=False)
                self._native.set_bytes(pointer, payload)
            case str() if "\0" not in payload:
                pointer = self._prepare(headers, key, is_text=True)
                self._native.set_text(pointer, said(payload, "payload"))
            case str():
                content = bytearray(encoded(payload, "payload"))
                pointer = self._once(content, headers, key, {fields.PAYLOAD: "text"})
            case _:
                pointer = self._once(plain(payload, "payload"), headers, key)
        return pointer

    def _tell_apart(self, pointer: Pointer, headers: Headers) -> None:
        """The fields that every message of some systems has a value of its own for."""
        if isinstance(headers.correlation_id, str):
            self._native.set_correlation(pointer, said(headers.correlation_id, "correlation id"))
        if headers.source_id is not None:
            self._native.set_message_id(pointer, said(headers.source_id, "message id"))
        if headers.time is not None:
            self._native.set_time(pointer, headers.time // fields.MILLI)

    def _tidy(self) -> None:
        """Give back what the latest message needed, which has been sent by now."""
        spent, self._spent = self._spent, None
        if spent is not None:
            self._native.release(spent)
        large, self._large = self._large, None
        if large is not None:
            self._native.set_bytes(large, b"")

    def _prepare(self, headers: Headers, key: str, *, is_text: bool) -> Pointer:
        """A message with these headers, made now or before; its payload is to be exchanged."""
        if headers.expiry is not None:  # what is left of a life is another every time
            return self._once(_placeholder(is_text), headers, key)
        place = (id(headers), key, is_text)
        known = self._known.get(place)
        if known is not None and known[0] is headers:
            return known[1]
        pointer = pointer_of(self._prepared_for(headers, key, is_text=is_text))
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[place] = headers, pointer
        return pointer

    def _prepared_for(self, headers: Headers, key: str, *, is_text: bool) -> Any:  # noqa: ANN401
        """Routes give each name headers of its own, and most of those say the same."""
        place = (meaning(headers), key, is_text)
        prepared = self._prepared.get(place)
        if prepared is None:
            if len(self._prepared) >= _MOST_KEPT:
                self._forget()
            prepared = self._build(_placeholder(is_text), headers, key)
            self._prepared[place] = prepared
        return prepared

    def _forget(self) -> None:
        for prepared in self._prepared.values():
            self._native.release(prepared)
        self._prepared.clear()
        self._known.clear()
        self._latest = None

    def _once(
        self,
        payload: str | bytearray | dict[str, Any],
        headers: Headers,
        key: str,
        more: Mapping[str, str] = NOTHING,
    ) -> Pointer:
        self._spent = self._build(payload, headers, key, more)
        return pointer_of(self._spent)

    def _build(
        self,
        payload: str | bytearray | dict[str, Any],
        headers: Headers,
        key: str,
        more: Mapping[str, str] = NOTHING,
    ) -> Any:  # noqa: ANN401
        properties = properties_of(headers, key, self._now)
        properties.update(more)
        try:
            built = self._builder.build(payload, properties)
        except (PubSubPlusClientError, ValueError, ctypes.ArgumentError) as error:
            raise TranslationError("solace", "message", "library", explain(error)) from error
        pointer = pointer_of(built)
        if headers.reply_to and fields.REPLY_TO not in properties:
            self._native.set_reply_to(pointer, headers.reply_to)
        is_direct = headers.mode is DeliveryMode.AT_MOST_ONCE or not self._guaranteed
        self._native.set_mode(pointer, Mode.DIRECT if is_direct else Mode.PERSISTENT)
        return built

    def _key(self, message: Message) -> str:
        """The partition key that the topic gives."""
        if not self._partition_level:
            return ""
        levels = message.address.split("/")
        return levels[self._partition_level - 1] if len(levels) >= self._partition_level else ""


def _placeholder(is_text: bool) -> str | bytearray:
    return "" if is_text else bytearray(b"-")
