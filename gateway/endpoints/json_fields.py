"""Fields of `Headers` as one line of JSON, for systems whose own headers are texts or bytes.

A field: its value, or left out where it has its default. Bytes are `{"base64": ...}`. Written by a
sink for the fields that have no place of their own there. Read by a source with a check of the
types, since whoever publishes writes that header.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from typing import Any, Final

from gateway.endpoints.header_fields import read_fields
from gateway.errors import TranslationError
from gateway.model.dead_letter_rule import PROPERTY
from gateway.model.message import Headers, Value
from gateway.untyped import Untyped

_dump: Final = json.JSONEncoder(separators=(",", ":")).encode


def write_json(
    headers: Headers, plain: Collection[str], properties: Mapping[str, Value], system: str
) -> str:
    """Return the line of JSON: `plain` fields, identifiers, origin path and these `properties`.

    It is empty when all fields have their defaults.

    Raises:
        TranslationError: a property has no form in JSON; it names the `system`.
    """
    fields: dict[str, Any] = {key: getattr(headers, key) for key in plain}
    fields["correlation_id"] = _encode(headers.correlation_id, system)
    fields["origin"] = list(headers.origin)
    fields["properties"] = {key: _encode(value, system) for key, value in properties.items()}
    fields["retained"] = headers.retained
    fields = {
        key: value
        for key, value in fields.items()
        if value is not None and value is not False and value not in ([], {})  # 0 is a priority
    }
    return _dump(fields) if fields else ""


def read_json(text: str | bytes, names: Collection[str]) -> dict[str, Any]:
    """Return the fields called `names`, or nothing where the line or a field's type is wrong."""
    try:
        return read_fields(json.loads(text, object_hook=_decode), names) or {}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _encode(value: Value, system: str) -> Untyped:
    match value:
        case bytes():
            return {"base64": b64encode(value).decode()}
        case Mapping():
            return {str(key): _encode(each, system) for key, each in value.items()}
        case list() | tuple():
            return [_encode(each, system) for each in value]
        case None | bool() | int() | float() | str():
            return value
    raise TranslationError(system, "", PROPERTY, f"no form for a {type(value).__name__}")


def _decode(found: dict[str, Untyped]) -> Untyped:
    if found.keys() == {"base64"} and isinstance(found["base64"], str):
        return b64decode(found["base64"])
    return found
