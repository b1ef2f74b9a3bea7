"""JSON Schema of a configuration file, from the declarations that the loader reads."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import Field, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

import yaml

from gateway.config.numbers import unit_pattern
from gateway.config.route_defaults import DEFAULTS
from gateway.config.schema import LISTS, NAME_PATTERN, SECTIONS, CommonEndpointSettings
from gateway.config.value_reader import MAX_FLOAT
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.setting import fields_by_key, is_required, type_hints
from gateway.untyped import Untyped

WHOLE_NAME = f"^{NAME_PATTERN}$"
REFERENCE_PATTERN = r"\$\{(env|file):[^}]*\}"

Schema = dict[str, Any]


def json_schema() -> Schema:
    """Return the schema of one configuration file, draft 2020-12."""
    sections = {name: _of(kind) for name, kind in SECTIONS.items()}
    sections["gateway"]["properties"]["name"] |= _name()
    for name in LISTS:
        sections[name] = {"anyOf": [{"type": "array", "items": sections[name]}, sections[name]]}
    properties = {
        "endpoints": _named({"oneOf": [_endpoint(kind) for kind in ENDPOINT_KINDS]}),
        **sections,
        "routes": _named(sections["routes"]),
        "tests": _mapping(sections["tests"]),
        "include": _value(tuple[str, ...], {}),
        "defaults": _closed({key: {"type": "object"} for key in DEFAULTS}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gateway configuration",
        **_closed(properties),
    }


def _closed(properties: Schema) -> Schema:
    """Schema of a mapping with these keys and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _mapping(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _name() -> Schema:
    """Schema of a name as a value, which YAML may read as a number."""
    text = {"type": "string", "pattern": f"{WHOLE_NAME}|{REFERENCE_PATTERN}"}
    return {
        "type": ["string", "number", "boolean"],
        "anyOf": [text, {"type": ["number", "boolean"], "minimum": 0}],
    }


def _named(schema: Schema) -> Schema:
    return {
        "type": "object",
        "propertyNames": {"pattern": WHOLE_NAME},
        "additionalProperties": schema,
    }


def _endpoint(kind: str) -> Schema:
    schema = _of(ENDPOINT_KINDS[kind].settings)
    del schema["properties"]["name"]
    common = _of(CommonEndpointSettings)["properties"]
    schema["properties"] = {"kind": {"const": kind}, **schema["properties"], **common}
    schema["required"] = ["kind", *schema.get("required", ())]
    return schema


def _of(kind: type) -> Schema:
    """Schema of a dataclass."""
    hints = type_hints(kind)
    fields = fields_by_key(kind)
    schema = _closed({word: _field(field, hints[field.name]) for word, field in fields.items()})
    if kind.__doc__:
        schema["description"] = kind.__doc__.splitlines()[0]
    if needed := [word for word, field in fields.items() if is_required(field)]:
        schema["required"] = needed
    for word, field in fields.items():
        if others := field.metadata.get("instead"):
            schema["anyOf"] = [{"required": [each]} for each in (word, *others)]
    return schema


def _field(field: Field[Untyped], hint: object) -> Schema:
    schema = _value(hint, field.metadata)
    if doc := field.metadata.get("doc"):
        schema["description"] = doc
    if isinstance(field.default, str | int | float | bool) and not field.metadata.get("secret"):
        schema["default"] = field.default
    return schema


def _value(hint: object, meta: Mapping[str, Untyped]) -> Schema:  # noqa: PLR0911  # as in `ConfigReader`
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not type(None)]
        if len(inner) > 1:
            return {"type": ["string", "number", "boolean", "null"]}
        return {"anyOf": [_value(inner[0], meta), {"type": "null"}]}
    if origin is Literal:
        return _scalar(str, {"choices": get_args(hint)})
    if origin is tuple:
        one = _value(get_args(hint)[0], meta)
        least = {"minItems": 1} if meta.get("filled") else {}
        return {"anyOf": [{"type": "array", "items": one, **least}, one]}
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_value(get_args(hint)[1], {}))
    if is_dataclass(hint) and isinstance(hint, type):
        whole = _of(hint)
        if (key := meta.get("shorthand")) is None:
            return whole
        return {"anyOf": [whole, whole["properties"][key]]}
    return _scalar(hint, meta)


def _scalar(kind: object, meta: Mapping[str, Any]) -> Schema:
    if meta.get("choices"):
        words = meta["choices"]
        read = [yaml.safe_load(word) for word in words if isinstance(word, str)]
        numbers = [each for each in read if isinstance(each, int | float)]
        return {"anyOf": [{"enum": [*words, *numbers]}, _reference()]}
    if kind is str:
        if meta.get("secret"):
            return _reference()
        text: Schema = {"type": ["string", "number", "boolean"]}
        return text | {"minLength": 1} if meta.get("path") else text
    if kind is bool:
        return {"anyOf": [{"type": "boolean"}, _reference()]}
    number: Schema = {"type": "integer" if kind is int else "number"}
    number |= {name: meta[name] for name in ("minimum", "maximum") if name in meta}
    if kind is float:
        number.setdefault("maximum", MAX_FLOAT)
    forms = [number, _reference()]
    if unit := meta.get("unit"):
        forms.append({"type": "string", "pattern": unit_pattern(unit)})
    return {"anyOf": forms}


def _reference() -> Schema:
    return {"type": "string", "pattern": REFERENCE_PATTERN}
