"""Read and write the headers of one message by name, with checked values.

A name in `FIELD_NAMES` is a field of the message; every other name is a property, and
`property.priority` is the property with the name `priority`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from gateway.errors import TranslationError
from gateway.model.message import DeliveryMode, Headers, Value

FIELD_NAMES: Final = (
    "priority", "expiry", "ttl", "mode", "content_type", "correlation_id", "reply_to",
)  # fmt: skip
PROPERTY_PREFIX: Final = "property."
MICROS_PER_MILLI, MICROS_PER_SECOND = 1_000, 1_000_000
MAX_EXPIRY_MS = 253_402_300_800_000  # milliseconds from 1970 to the end of the year 9999
MAX_DIGITS = 18
MAX_PRIORITY = 9
MIN_TTL = 1e-6  # seconds


@dataclass(frozen=True, slots=True)
class HeaderName:
    """The name of a field of the message or of a property.

    `prefixed` says that the configuration writes `property.NAME`; names that differ only in this
    are equal.
    """

    text: str
    is_field: bool
    prefixed: bool = field(default=False, compare=False)


REPLY_TO: Final = HeaderName("reply_to", is_field=True)


def parse_header_name(text: str) -> HeaderName:
    """Parse a header name as a configuration writes it."""
    if text.startswith(PROPERTY_PREFIX):
        return HeaderName(text.removeprefix(PROPERTY_PREFIX), is_field=False, prefixed=True)
    return HeaderName(text, text in FIELD_NAMES)


class HeaderDraft:
    """The headers of one message, changed by one rule after the other.

    Mutable: owned by the call that applies the rules.
    Units: microseconds.
    """

    def __init__(self, headers: Headers, now_us: int) -> None:
        self._before, self._now = headers, now_us
        self._priority, self._expiry, self._mode = headers.priority, headers.expiry, headers.mode
        self._content_type, self._reply_to = headers.content_type, headers.reply_to
        self._correlation = headers.correlation_id
        self.properties = dict(headers.properties)
        self._changed = False  # a property; `finish` compares the fields

    def read(self, name: HeaderName) -> Value:
        """Return a value, None when it is absent.

        `expiry` is in milliseconds since 1970, `ttl` in seconds from now.
        """
        if not name.is_field:
            return self.properties.get(name.text)
        if name.text not in {"expiry", "ttl"}:
            return self._read_field(name.text)
        if self._expiry is None:
            return None
        left = (self._expiry - self._now) / MICROS_PER_SECOND
        return self._expiry // MICROS_PER_MILLI if name.text == "expiry" else max(0.0, left)

    def _read_field(self, name: str) -> Value:
        match name:
            case "priority":
                return self._priority
            case "mode":
                return self._mode.name.lower()
            case "content_type":
                return self._content_type
            case "reply_to":
                return self._reply_to
            case _:
                return self._correlation

    def write(self, name: HeaderName, value: Value) -> None:
        """Set a value; None removes it.

        Raises:
            TranslationError: the value does not fit the field.
        """
        if not name.is_field:
            self._write_property(name.text, value)
            return
        match name.text:
            case "priority":
                self._priority = (
                    None if value is None else _integer_value(name, value, MAX_PRIORITY)
                )
            case "expiry":
                self._expiry = (
                    None
                    if value is None
                    else _integer_value(name, value, MAX_EXPIRY_MS) * MICROS_PER_MILLI
                )
            case "ttl":
                self._expiry = None if value is None else self._now + _ttl_value(name, value)
            case "mode":
                self._mode = _mode_value(name, value)
            case "content_type":
                self._content_type = None if value is None else _text_value(name, value)
            case "reply_to":
                self._reply_to = None if value is None else _text_value(name, value)
            case _ if value is None or isinstance(value, bytes):
                self._correlation = value
            case _:
                self._correlation = _text_value(name, value)

    def _write_property(self, name: str, value: Value) -> None:
        before = self.properties.get(name)
        if type(before) is type(value) and before == value:
            return
        self._changed = True
        if value is None:
            self.properties.pop(name, None)
        else:
            self.properties[name] = value

    def finish(self) -> Headers:
        """Return the changed headers, or the original object when nothing changed."""
        before = self._before
        made = replace(
            before,
            mode=self._mode,
            priority=self._priority,
            expiry=self._expiry,
            content_type=self._content_type,
            correlation_id=self._correlation,
            reply_to=self._reply_to,
        )
        if self._changed:
            return replace(made, properties=MappingProxyType(self.properties))
        return before if made == before else made


def simple_text(value: Value) -> str | None:
    """Return a value as a configuration writes it; None for bytes, lists and maps."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None


def _text_value(name: HeaderName, value: Value) -> str:
    text = simple_text(value)
    if not text:
        raise _refusal(name, "is not a text, or is empty")
    return text


def _integer_value(name: HeaderName, value: Value, maximum: int) -> int:
    text = simple_text(value) or ""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and int(text) <= maximum):
        raise _refusal(name, f"is not an integer from 0 to {maximum}")
    return int(text)


def _ttl_value(name: HeaderName, value: Value) -> int:
    """Convert seconds to microseconds, at least one."""
    try:
        number = math.nan if isinstance(value, bool) else float(simple_text(value) or "")
    except ValueError:
        number = math.nan
    if not MIN_TTL <= number <= MAX_EXPIRY_MS / 1_000:
        raise _refusal(name, "is not a positive number of seconds")
    return round(number * MICROS_PER_SECOND)


def _mode_value(name: HeaderName, value: Value) -> DeliveryMode:
    text = simple_text(value) or ""
    if not text.islower() or text.upper() not in DeliveryMode.__members__:
        known = ", ".join(mode.name.lower() for mode in DeliveryMode)
        raise _refusal(name, f"is none of {known}")
    return DeliveryMode[text.upper()]


def _refusal(name: HeaderName, reason: str) -> TranslationError:
    return TranslationError("headers", name.text, "header", f"the value {reason}")
