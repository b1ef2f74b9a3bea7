"""Headers and values as properties of the Solace library, which takes them in one mapping."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from solace.messaging.config.solace_properties import message_properties as keys

from gateway.endpoints.solace import property_names as names
from gateway.endpoints.solace.topic_rules import find_topic_error
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import (
    EMPTY_NAME,
    EXPIRED,
    INTEGER_RANGE,
    NESTING,
    NOT_UTF_8,
    NUL,
    PRIORITY,
)
from gateway.model.message import DeliveryMode, Headers, Value
from gateway.untyped import Untyped

_INTEGERS: Final = range(-(2**63), 2**64)
_PRIORITIES: Final = range(256)
_MAX_TIME_TO_LIVE: Final = 315_360_000_000  # milliseconds; a longer one is left out
_SETTINGS_PREFIX: Final = "solace."  # of names that the library reads as settings

TimeSource = Callable[[], int]  # microseconds


def build_properties(headers: Headers, key: str, now: TimeSource) -> dict[str, Any]:
    """Return settings and user properties; `key` is the partition key or empty.

    Raises:
        TranslationError: the message has expired, or SMF cannot carry a value.
    """
    found = _gateway_properties(headers)
    converted = {
        check_text(name, "name in properties"): _convert(value, "properties")
        for name, value in headers.properties.items()
    }
    hidden = {name: value for name, value in converted.items() if _is_misread(name)}
    found.update((name, value) for name, value in converted.items() if name not in hidden)
    if hidden:
        found[names.PROPERTIES] = [[name, value] for name, value in hidden.items()]
    if key:
        found[names.PARTITION_KEY] = key
    if headers.priority is not None:
        if headers.priority not in _PRIORITIES:
            reason = f"the priority {headers.priority} is outside 0..255"
            raise TranslationError("solace", "priority", PRIORITY, reason)
        found[keys.PRIORITY] = headers.priority
    if headers.content_type is not None:
        found[keys.HTTP_CONTENT_TYPE] = check_text(headers.content_type, "content type")
    if headers.expiry is not None:
        found.update(_expiry_properties(headers.expiry, headers.mode, now))
    return found


def _expiry_properties(expiry: int, mode: DeliveryMode, now: TimeSource) -> dict[str, int]:
    left = (expiry - now()) // names.MICROSECONDS_PER_MS
    if left <= 0:
        raise TranslationError("solace", "expiry", EXPIRED, "the message has expired")
    found = {keys.PERSISTENT_EXPIRATION: expiry // names.MICROSECONDS_PER_MS}
    if expiry % names.MICROSECONDS_PER_MS:
        found[names.EXPIRY] = expiry
    if mode is not DeliveryMode.AT_MOST_ONCE and left <= _MAX_TIME_TO_LIVE:
        found[keys.PERSISTENT_TIME_TO_LIVE] = left
    return found


def prepared_key(headers: Headers) -> Hashable:
    """Return a key that is equal for headers that can share a prepared message.

    For fields that the writer sets in each message, only their presence counts.

    Raises:
        TranslationError: a value of the properties is too large or nested too deep.
    """
    correlation, time = headers.correlation_id, headers.time
    time_key = None if time is None else "exact"
    key = (
        headers.mode,
        headers.retained,
        headers.priority,
        time if _needs_microseconds(time) else time_key,
        headers.content_type,
        correlation if isinstance(correlation, bytes) else correlation is None,
        headers.reply_to,
        headers.source_id is None,
        headers.origin,
    )
    if not headers.properties:
        return key
    try:
        return key, repr(dict(headers.properties))
    except ValueError as error:  # Python refuses to show an integer of many digits
        raise _too_large("properties") from error
    except RecursionError as error:
        raise TranslationError("solace", "properties", NESTING, "is nested too deep") from error


def _gateway_properties(headers: Headers) -> dict[str, Any]:
    """Return the properties for headers without a field in SMF."""
    found: dict[str, Any] = {}
    if headers.mode is DeliveryMode.EXACTLY_ONCE:
        found[names.MODE] = int(headers.mode)
    if headers.retained:
        found[names.RETAINED] = True
    if headers.priority == names.DEFAULT_PRIORITY:
        found[names.PRIORITY] = headers.priority
    if _needs_microseconds(headers.time):
        found[names.TIME] = headers.time
    if isinstance(headers.correlation_id, bytes):
        found[names.CORRELATION] = bytearray(headers.correlation_id)
    if headers.origin:
        found[names.ORIGIN] = [check_text(each, "origin") for each in headers.origin]
    if headers.reply_to and find_topic_error(headers.reply_to):
        found[names.REPLY_TO] = check_text(headers.reply_to, "reply-to")
    return found


def correlation_text(correlation: bytes | str | None) -> str | None:
    """Return the text of the field, also for bytes that are one: a requester compares it.

    Raises:
        TranslationError: the text has a NUL or no UTF-8.
    """
    if isinstance(correlation, bytes):
        try:
            text = correlation.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text
    return None if correlation is None else check_text(correlation, "correlation id")


def _needs_microseconds(time: int | None) -> bool:
    """Return whether SMF's milliseconds cannot express `time`."""
    return time is not None and (time <= 0 or time % names.MICROSECONDS_PER_MS != 0)


def _is_misread(name: str) -> bool:
    return not name or name.startswith(_SETTINGS_PREFIX) or name in names.GATEWAY_NAMES


def check_text(text: str, what: str) -> str:
    """Return `text` if a C string in UTF-8 can hold it."""
    if "\0" in text:
        raise TranslationError("solace", text, NUL, f"the {what} would be cut at its NUL")
    encode_text(text, what)
    return text


def encode_text(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise TranslationError("solace", text, NOT_UTF_8, f"the {what} is no UTF-8") from error


def convert_map(values: Mapping[str, Value], what: str) -> dict[str, Any]:
    """Return the map as the library takes it."""
    return {_check_name(name, what): _convert(value, what) for name, value in values.items()}


def _check_name(name: str, what: str) -> str:
    if not name:
        raise TranslationError("solace", name, EMPTY_NAME, f"a name in {what} is empty")
    return check_text(name, f"name in {what}")


def _convert(value: Value, what: str) -> Untyped:
    match value:
        case str():
            return check_text(value, f"text in {what}")
        case bytes():
            return bytearray(value)
        case bool() | float() | None:
            return value
        case int():
            if value not in _INTEGERS:
                raise _too_large(what)
            return value
        case Mapping():
            return convert_map(value, what)
        case list() | tuple():
            return [_convert(each, what) for each in value]


def _too_large(what: str) -> TranslationError:
    return TranslationError(
        "solace", "integer", INTEGER_RANGE, f"a number in {what} does not fit into 64 bits"
    )
