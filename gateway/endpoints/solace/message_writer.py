"""Messages of the Solace library from canonical ones, with prepared messages that are reused.

Building a message costs as much as sending three. The writer therefore keeps one prepared message
for equal headers and replaces its payload. That is safe, as the library copies on sending.
"""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError

from gateway.clock import now
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace import message_properties as fields
from gateway.endpoints.solace import property_names as names
from gateway.endpoints.solace.error_codes import error_text
from gateway.endpoints.solace.native_library import NativeLibrary, Pointer, message_pointer
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import LIBRARY
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import headers_size
from gateway.model.message import DeliveryMode, Headers, Message, Payload
from gateway.untyped import Untyped

_MAX_PREPARED: Final = 256
_MAX_REMEMBERED_HEADERS: Final = 8 << 20  # bytes
_MAX_KEPT_HEADERS: Final = 1_024  # bytes of headers whose prepared message is kept
_MAX_KEPT_PAYLOAD: Final = 65_536  # bytes that a prepared message may keep

_PROOF: Final = names.PROOF.encode()

_Content: TypeAlias = str | bytearray | dict[str, Any]  # a payload as the library takes it
NO_EXTRA: Final[Mapping[str, str]] = MappingProxyType({})


class SolaceMessageWriter:
    """Writes messages.

    Mutable: owned by the sending thread; it keeps prepared messages.
    """

    def __init__(self, builder: Untyped, native: NativeLibrary, settings: SolaceSettings) -> None:
        self._builder, self._native = builder, native
        self._partition_level, self._guaranteed = settings.partition_level, settings.guaranteed
        self._prepared: dict[tuple[Hashable, str, bool], Any] = {}  # by `prepared_key`
        # by id() of the headers
        self._pointers: LimitedCache[tuple[int, str, bool], tuple[Headers, Pointer]] = LimitedCache(
            _MAX_REMEMBERED_HEADERS
        )
        self._last_headers: Headers | None = None  # of the last message of bytes without a key
        self._last_pointer = Pointer()
        self._single_use: Any = None  # the last message, if it was not prepared
        self._large: Pointer | None = None  # the last prepared message, if its payload is large

    def write(self, message: Message) -> Pointer:
        """Return a message that must be sent before the next call, which replaces its payload.

        Raises:
            TranslationError: SMF cannot carry a field or the payload.
        """
        payload, headers = message.payload, message.headers
        if self._single_use is not None or self._large is not None:
            self._release_last()
        if payload.__class__ is bytes and len(payload) > _MAX_KEPT_PAYLOAD:
            return self._write(message)
        if headers is self._last_headers and payload.__class__ is bytes:
            self._native.set_property(self._last_pointer, _PROOF, message.proof)
            self._native.set_bytes(self._last_pointer, payload)
            return self._last_pointer
        return self._write(message)

    def _write(self, message: Message) -> Pointer:
        payload, headers, key = message.payload, message.headers, self._partition_key(message)
        self._last_headers = None  # after an error its message may be changed partially
        pointer = self._fill(payload, headers, key)
        self._set_varying_fields(pointer, headers)
        self._native.set_property(pointer, _PROOF, message.proof)
        if len(payload) > _MAX_KEPT_PAYLOAD and self._single_use is None:
            self._large = pointer
        if payload.__class__ is bytes and not self._partition_level and self._single_use is None:
            self._last_headers, self._last_pointer = headers, pointer
        return pointer

    def _fill(self, payload: Payload, headers: Headers, key: str) -> Pointer:
        """Return a message with the payload and the headers, except the varying fields."""
        match payload:
            case bytes():
                pointer = self._prepare(headers, key, is_text=False)
                self._native.set_bytes(pointer, payload)
            case str() if "\0" not in payload:
                pointer = self._prepare(headers, key, is_text=True)
                self._native.set_text(pointer, fields.check_text(payload, "payload"))
            case str():
                content = bytearray(fields.encode_text(payload, "payload"))
                pointer = self._build_single_use(content, headers, key, {names.PAYLOAD: "text"})
            case _:
                pointer = self._build_single_use(
                    fields.convert_map(payload, "payload"), headers, key
                )
        return pointer

    def _set_varying_fields(self, pointer: Pointer, headers: Headers) -> None:
        """Set the fields that differ in each message of some systems."""
        if (correlation := fields.correlation_text(headers.correlation_id)) is not None:
            self._native.set_correlation_id(pointer, correlation)
        if headers.source_id is not None:
            self._native.set_message_id(pointer, fields.check_text(headers.source_id, "message id"))
        if headers.time is not None:
            self._native.set_sender_time(pointer, headers.time // names.MICROSECONDS_PER_MS)

    def _release_last(self) -> None:
        """Release memory of the last message, which has been sent."""
        last, self._single_use = self._single_use, None
        if last is not None:
            self._native.release(last)
        large, self._large = self._large, None
        if large is not None:
            self._native.set_bytes(large, b"")

    def _prepare(self, headers: Headers, key: str, *, is_text: bool) -> Pointer:
        """Return a new or kept message with these headers; the caller sets its payload."""
        cache_key = (id(headers), key, is_text)
        known = self._pointers.get(cache_key)
        if known is not None and known[0] is headers:
            return known[1]
        # with an expiry the remaining time to live differs each time
        if headers.expiry is not None or headers_size(headers) > _MAX_KEPT_HEADERS:
            return self._build_single_use(_placeholder(is_text), headers, key)
        pointer = message_pointer(self._prepared_for(headers, key, is_text=is_text))
        self._pointers.add(cache_key, (headers, pointer), headers_size(headers))
        return pointer

    def _prepared_for(self, headers: Headers, key: str, *, is_text: bool) -> Untyped:
        """Return the message for these headers; most headers of a route have equal content."""
        cache_key = (fields.prepared_key(headers), key, is_text)
        prepared = self._prepared.get(cache_key)
        if prepared is None:
            if len(self._prepared) >= _MAX_PREPARED:
                self._release_prepared()
            prepared = self._build(_placeholder(is_text), headers, key)
            self._prepared[cache_key] = prepared
        return prepared

    def _release_prepared(self) -> None:
        for prepared in self._prepared.values():
            self._native.release(prepared)
        self._prepared.clear()
        self._pointers.clear()
        self._last_headers = None

    def _build_single_use(
        self, content: _Content, headers: Headers, key: str, extra: Mapping[str, str] = NO_EXTRA
    ) -> Pointer:
        self._single_use = self._build(content, headers, key, extra)
        return message_pointer(self._single_use)

    def _build(
        self, content: _Content, headers: Headers, key: str, extra: Mapping[str, str] = NO_EXTRA
    ) -> Untyped:
        properties = {**fields.build_properties(headers, key, now), **extra}
        try:
            built = self._builder.build(content, properties)
        except (PubSubPlusClientError, ValueError, ctypes.ArgumentError) as error:
            raise TranslationError("solace", "message", LIBRARY, error_text(error)) from error
        pointer = message_pointer(built)
        if headers.reply_to and names.REPLY_TO not in properties:
            self._native.set_reply_to(pointer, headers.reply_to)
        guaranteed = self._guaranteed and headers.mode is not DeliveryMode.AT_MOST_ONCE
        self._native.set_delivery_mode(pointer, guaranteed=guaranteed)
        return built

    def _partition_key(self, message: Message) -> str:
        """Return the level of the topic that is the partition key, or an empty text."""
        if not self._partition_level:
            return ""
        levels = message.address.split("/")
        return levels[self._partition_level - 1] if len(levels) >= self._partition_level else ""


def _placeholder(is_text: bool) -> str | bytearray:
    return "" if is_text else bytearray(b"-")
