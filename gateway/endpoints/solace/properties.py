"""What headers and values become for the vendor's library, which takes them in one mapping."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from solace.messaging.config.solace_properties import message_properties as keys

from gateway.endpoints.solace import fields
from gateway.endpoints.solace.names import find_fault
from gateway.errors import TranslationError
from gateway.model.message import DeliveryMode, Headers, Value

_INTEGERS: Final = range(-(2**63), 2**64)
_LONGEST_LIFE: Final = 315_360_000_000  # milliseconds; past it no limit is set
_SETTINGS: Final = "solace."  # the library takes names below it for its own settings

Now = Callable[[], int]  # microseconds


def properties_of(headers: Headers, key: str, now: Now) -> dict[str, Any]:
    """The library's settings and the user's properties; `key` is the partition key or empty.

    Raises:
        TranslationError: the message has expired, or a value cannot be said in SMF.
    """
    found = _own(headers)
    spelled = {
        said(name, "name in properties"): _convert(value, "properties")
        for name, value in headers.properties.items()
    }
    hidden = {name: value for name, value in spelled.items() if _is_misread(name)}
    found.update((name, value) for name, value in spelled.items() if name not in hidden)
    if hidden:
        found[fields.PROPERTIES] = [[name, value] for name, value in hidden.items()]
    if key:
        found[fields.PARTITION_KEY] = key
    if headers.priority is not None:
        found[keys.PRIORITY] = headers.priority
    if headers.content_type is not None:
        found[keys.HTTP_CONTENT_TYPE] = said(headers.content_type, "content type")
    if headers.expiry is not None:
        found.update(_life(headers.expiry, headers.mode, now))
    return found


def _life(expiry: int, mode: DeliveryMode, now: Now) -> dict[str, int]:
    left = (expiry - now()) // fields.MILLI
    if left <= 0:
        raise TranslationError("solace", "expiry", "expired", "the message has expired")
    found = {keys.PERSISTENT_EXPIRATION: expiry // fields.MILLI}
    if expiry % fields.MILLI:
        found[fields.EXPIRY] = expiry
    if mode is not DeliveryMode.AT_MOST_ONCE and left <= _LONGEST_LIFE:
        found[keys.PERSISTENT_TIME_TO_LIVE] = left
    return found


def meaning(headers: Headers) -> Hashable:
    """What goes out of these headers; equal for headers that may share a prepared message.

    Of the fields that `Writer` sets for every message it counts only whether they are there.
    """
    correlation, time = headers.correlation_id, headers.time
    exact = None if time is None else "exact"
    spoken = (
        headers.mode,
        headers.retained,
        headers.priority,
        time if _is_inexact(time) else exact,
        headers.content_type,
        correlation if isinstance(correlation, bytes) else correlation is None,
        headers.reply_to,
        headers.source_id is None,
        headers.origin,
    )
    return (spoken, repr(dict(headers.properties))) if headers.properties else spoken


def _own(headers: Headers) -> dict[str, Any]:
    """The properties for what SMF has no field for."""
    found: dict[str, Any] = {}
    if headers.mode is DeliveryMode.EXACTLY_ONCE:
        found[fields.MODE] = int(headers.mode)
    if headers.retained:
        found[fields.RETAINED] = True
    if headers.priority == fields.DEFAULT_PRIORITY:
        found[fields.PRIORITY] = headers.priority
    if _is_inexact(headers.time):
        found[fields.TIME] = headers.time
    if isinstance(headers.correlation_id, bytes):
        found[fields.CORRELATION] = bytearray(headers.correlation_id)
    if headers.origin:
        found[fields.ORIGIN] = [said(each, "origin") for each in headers.origin]
    if headers.reply_to and find_fault(headers.reply_to)[0]:
        found[fields.REPLY_TO] = said(headers.reply_to, "reply-to")
    return found


def _is_inexact(time: int | None) -> bool:
    """Whether the milliseconds of SMF do not say it all."""
    return time is not None and (time <= 0 or time % fields.MILLI != 0)


def _is_misread(name: str) -> bool:
    return not name or name.startswith(_SETTINGS) or name in fields.OWN


def said(text: str, what: str) -> str:
    """`text`, when a C string in UTF-8 can hold it."""
    if "\0" in text:
        raise TranslationError("solace", text, "nul", f"the {what} would be cut at its NUL")
    encoded(text, what)
    return text


def encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("solace", text, "not-utf-8", f"the {what} is no UTF-8") from error


def plain(values: Mapping[str, Value], what: str) -> dict[str, Any]:
    """`values` of the payload, or a map inside it."""
    return {_named(name, what): _convert(value, what) for name, value in values.items()}


def _named(name: str, what: str) -> str:
    if not name:
        raise TranslationError("solace", name, "empty-name", f"a name in {what} is empty")
    return said(name, f"name in {what}")


def _convert(value: Value, what: str) -> Any:  # noqa: ANN401  # what the driver takes
    match value:
        case str():
            return said(value, f"text in {what}")
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
            return plain(value, what)
        case list() | tuple():
            return [_convert(each, what) for each in value]
