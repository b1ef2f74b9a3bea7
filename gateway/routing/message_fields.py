"""Fields of a message that a template may use: `{property.site}`, `{payload.order.region}`.

A field becomes one level: a text that is not empty, or an integer or a boolean as it is written.
Any other value, and a text that could change the levels of a name, is the dead letter `field`. In
`payload.set` a field is a value of a document, and may have any text that is not empty. A field is
*missing* where the message has no such property, or its payload is not a JSON object with such
a key.

Whoever may publish chooses the value, so a name from a field needs `allow` at its endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.dialects.base import Dialect
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import FIELD
from gateway.model.message import SOURCE_NAME, DroppedPayload, Message, Payload, Value
from gateway.routing.header_draft import PROPERTY_PREFIX
from gateway.routing.json_payload import NotJsonError, load_json
from gateway.routing.selectors.ast import LONG_MAX, LONG_MIN
from gateway.routing.template_functions import Levels

# The text between braces; a capture may be called `property` or `payload`.
FIELD_PATTERN: Final = r"property\.[^{}|.][^{}|]*|payload(?:\.[^{}|.]+)+"
MAX_FIELD_BYTES: Final = 65_535  # no name of a system is longer
MAX_DOCUMENT: Final = 256 << 10  # bytes of a payload; a longer one delays honest neighbours
SOURCE_FIELD: Final = PROPERTY_PREFIX + SOURCE_NAME
_PAYLOAD: Final = "payload."
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FieldFault:
    """Why a field of a message is not a level: a predicate, without the value."""

    reason: str


FieldValue: TypeAlias = str | FieldFault | None  # None: the field is missing
FieldValues: TypeAlias = Mapping[str, FieldValue]  # by the name in the template


def is_field(name: str) -> bool:
    """Return whether a name between braces is that of a field; no capture has a dot."""
    return "." in name


def is_payload_field(name: str) -> bool:
    """Return whether a field is read from the payload."""
    return name.startswith(_PAYLOAD)


def is_redacted(name: str, redacted: Sequence[str]) -> bool:
    """Return whether `redacted`, each perhaps with a final `*`, selects a header or property."""
    own = name.removeprefix(PROPERTY_PREFIX)
    return any(
        own.startswith(each[:-1]) if each.endswith("*") else own == each for each in redacted
    )


def read_fields(names: Collection[str], message: Message) -> FieldValues:
    """Return the fields `names` of a message; its payload is parsed once, if one needs it."""
    properties = message.headers.properties
    document = _document(message.payload) if any(map(is_payload_field, names)) else None
    found: dict[str, FieldValue] = {}
    for name in names:
        if is_payload_field(name):
            found[name] = _found(document, name)
        else:
            own = name.removeprefix(PROPERTY_PREFIX)
            found[name] = _level(properties[own]) if own in properties else None
    return found


def field_levels(name: str, value: FieldValue, dialect: Dialect | None) -> Levels:
    """Return a field as a capture of one level, and of none when it is missing.

    Without a `dialect` it is a value in a document, where any text may stand.

    Raises:
        TranslationError: with the rule `field`; it is not a level of `dialect`.
    """
    if value is None:
        return ()
    fault = value.reason if isinstance(value, FieldFault) else _text_fault(value)
    if not fault and isinstance(value, str) and dialect is not None:
        fault = level_fault(value, dialect)
    if fault:
        raise TranslationError("field", f"{{{name}}}", FIELD, fault)
    assert isinstance(value, str)  # noqa: S101  # a fault was raised
    return (value,)


def level_fault(text: str, dialect: Dialect) -> str:
    """Return why a text is not one level of `dialect`, as a predicate; empty when it is one."""
    if fault := _text_fault(text):
        return fault
    if _CONTROL.search(text) is not None:
        return "has a control character, or half a character"
    special = {dialect.separator, dialect.any_one, dialect.any_many}
    special |= {","} if dialect.tag_lists else set()
    for char in sorted(special):
        if char in text:
            return f"has {char!r}, which separates levels or is a wildcard in {dialect.name}"
    return ""


def _text_fault(text: str) -> str:
    if not text:
        return "is empty"
    if len(text) > MAX_FIELD_BYTES or len(text.encode(errors="replace")) > MAX_FIELD_BYTES:
        return f"is longer than {MAX_FIELD_BYTES} bytes"
    return ""


def _document(payload: Payload) -> Value | FieldFault:
    """Return the map in a payload; None where it has no fields."""
    if isinstance(payload, DroppedPayload):
        return FieldFault(f"is in a payload of {payload.full} bytes, which was not read")
    if isinstance(payload, Mapping):
        return payload
    if len(payload) > MAX_DOCUMENT:
        return FieldFault(
            f"is in a payload of {len(payload):,} bytes, and {MAX_DOCUMENT:,} are read"
        )
    try:
        return load_json(payload if isinstance(payload, str) else payload.decode())
    except (UnicodeDecodeError, NotJsonError):
        return None
    except ValueError as error:
        return FieldFault(f"is in a payload that {error}")


def _found(document: Value | FieldFault, name: str) -> FieldValue:
    """Return a field of a document by the keys in its name."""
    if isinstance(document, FieldFault):
        return document
    value = document
    for key in name.removeprefix(_PAYLOAD).split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return _level(value)


def _level(value: Value) -> FieldValue:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int() if LONG_MIN <= value <= LONG_MAX:
            return str(value)
        case _:
            return FieldFault("is neither a text nor an integer nor a boolean")
