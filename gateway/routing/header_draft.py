"""Read and write the headers of one message by name, with checked values.

A name in `FIELD_NAMES` is a field of the message; every other name is a property, and
`property.priority` is the property with the name `priority`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, cast

from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import HEADER
from gateway.model.message import DeliveryMode, Headers, Value

FIELD_NAMES: Final = (
    "priority",
    "expiry",
    "ttl",
    "mode",
    "retained",
    "content_type",
    "correlation_id",
    "reply_to",
)
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
        self._fields: dict[str, Any] = {}  # the written ones, as `Headers` has them
        self.properties = dict(headers.properties)
        self._changed = False  # a property; `finish` compares the fields

    def read(self, name: HeaderName) -> Value:
        """Return a value, None when it is absent.

        `expiry` is in milliseconds since 1970, `ttl` in seconds from now.
        """
        if not name.is_field:
            return self.properties.get(name.text)
        field_name = "expiry" if name.text == "ttl" else name.text
        known = field_name in self._fields
        value: Any = self._fields[field_name] if known else getattr(self._before, field_name)
        match name.text:
            case "mode":
                return DeliveryMode(value).name.lower()
            case "expiry" if value is not None:
                return int(value // MICROS_PER_MILLI)
            case "ttl" if value is not None:
                return max(0.0, float((value - self._now) / MICROS_PER_SECOND))
            case _:
                return cast(Value, value)

    def write(self, name: HeaderName, value: Value) -> None:
        """Set a value; None removes it.

        Raises:
            TranslationError: the value does not fit the field.
        """
        if not name.is_field:
            self._write_property(name.text, value)
        elif name.text == "mode":
            self._fields["mode"] = _mode_value(name, value)
        elif name.text == "retained":
            self._fields["retained"] = value is not None and _flag_value(name, value)
        else:
            field_name = "expiry" if name.text == "ttl" else name.text
            self._fields[field_name] = None if value is None else self._field_value(name, value)

    def _field_value(self, name: HeaderName, value: Value) -> int | str | bytes:
        match name.text:
            case "priority":
                return _integer_value(name, value, MAX_PRIORITY)
            case "expiry":
                return _integer_value(name, value, MAX_EXPIRY_MS) * MICROS_PER_MILLI
            case "ttl":
                return self._now + _ttl_value(name, value)
            case "correlation_id" if isinstance(value, bytes):
                return value
            case _:
                return _text_value(name, value)

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
        if self._changed:
            properties = MappingProxyType(self.properties)
            return replace(self._before, **self._fields, properties=properties)
        made = replace(self._before, **self._fields)
        return self._before if made == self._before else made


def simple_text(value: Value) -> str | None:
    """Return a value as a configuration writes it; None for bytes, lists and maps."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else None


def _text_value(name: HeaderName, value: Value) -> str:
    text = simple_text(value)
    if not text:
        raise _refusal(name, "is not a text, or is empty")
    return text


def _flag_value(name: HeaderName, value: Value) -> bool:
    text = simple_text(value)
    if text not in {"true", "false"}:
        raise _refusal(name, "is neither true nor false")
    return text == "true"


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
    return TranslationError("headers", name.text, HEADER, f"the value {reason}")
