"""One message's headers while header rules change them: read and write by name, checked.

`Slot` is a place that rules speak of. The names of `HEADERS` are the message's own fields, every
other name is a property, and `property.priority` is the property called `priority`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from gateway.errors import TranslationError
from gateway.model.message import DeliveryMode, Headers, Value

HEADERS: Final = (
    "priority", "expiry", "ttl", "mode", "content_type", "correlation_id", "reply_to",
)  # fmt: skip
PROPERTY: Final = "property."
MILLI, SECOND = 1_000, 1_000_000  # microseconds
LATEST = 253_402_300_800_000  # milliseconds from 1970 to the end of the year 9999
DIGITS = 18
HIGHEST = 9  # priority
MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value: a field of the message, or a property.

    `stated` says that the file calls it a property, which makes no other place of it.
    """

    name: str
    header: bool
    stated: bool = field(default=False, compare=False)


def find_slot(text: str) -> Slot:
    if text.startswith(PROPERTY):
        return Slot(text.removeprefix(PROPERTY), header=False, stated=True)
    return Slot(text, text in HEADERS)


class Draft:
    """Headers under change; mutable, because rules follow each other on it."""

    def __init__(self, headers: Headers, now_us: int) -> None:
        self._before, self._now = headers, now_us
        self._priority, self._expiry, self._mode = headers.priority, headers.expiry, headers.mode
        self._content_type, self._reply_to = headers.content_type, headers.reply_to
        self._correlation = headers.correlation_id
        self.properties = dict(headers.properties)
        self._changed = False  # whether a property is; of the fields `finish` sees it

    def read(self, slot: Slot) -> Value:
        """None when it is absent. `expiry` is in milliseconds since 1970, `ttl` in seconds left."""
        if not slot.header:
            return self.properties.get(slot.name)
        if slot.name not in {"expiry", "ttl"}:
            return self._read_field(slot.name)
        if self._expiry is None:
            return None
        left = (self._expiry - self._now) / SECOND
        return self._expiry // MILLI if slot.name == "expiry" else max(0.0, left)

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

    def write(self, slot: Slot, value: Value) -> None:
        """Put `value` there; None takes away what is there.

        Raises:
            TranslationError: it does not fit that field.
        """
        if not slot.header:
            self._write_property(slot.name, value)
            return
        match slot.name:
            case "priority":
                self._priority = None if value is None else _whole(slot, value, HIGHEST)
            case "expiry":
                self._expiry = None if value is None else _whole(slot, value, LATEST) * MILLI
            case "ttl":
                self._expiry = None if value is None else self._now + _seconds(slot, value)
            case "mode":
                self._mode = _mode(slot, value)
            case "content_type":
                self._content_type = None if value is None else _said(slot, value)
            case "reply_to":
                self._reply_to = None if value is None else _said(slot, value)
            case _ if value is None or isinstance(value, bytes):
                self._correlation = value
            case _:
                self._correlation = _said(slot, value)

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
        """The headers as they are now: the same object as before when nothing has changed."""
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


def text_of(value: Value) -> str | None:
    """A simple value as a person writes it; None for bytes, lists and maps."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None


def _said(slot: Slot, value: Value) -> str:
    text = text_of(value)
    if not text:
        raise _misfit(slot, "is no text, or empty")
    return text


def _whole(slot: Slot, value: Value, most: int) -> int:
    text = text_of(value) or ""
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS and int(text) <= most):
        raise _misfit(slot, f"is no whole number from 0 to {most}")
    return int(text)


def _seconds(slot: Slot, value: Value) -> int:
    """Microseconds, at least one: what expires at once is not what anyone means."""
    try:
        number = math.nan if isinstance(value, bool) else float(text_of(value) or "")
    except ValueError:
        number = math.nan
    if not MICRO <= number <= LATEST / 1_000:
        raise _misfit(slot, "is no number of seconds above 0")
    return round(number * SECOND)


def _mode(slot: Slot, value: Value) -> DeliveryMode:
    text = text_of(value) or ""
    if not text.islower() or text.upper() not in DeliveryMode.__members__:
        known = ", ".join(mode.name.lower() for mode in DeliveryMode)
        raise _misfit(slot, f"is none of {known}")
    return DeliveryMode[text.upper()]


def _misfit(slot: Slot, reason: str) -> TranslationError:
    return TranslationError("headers", slot.name, "header", f"the value {reason}")
