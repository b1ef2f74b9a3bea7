"""The tables of settings: key, default, legal values and meaning of each, from the declarations."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, is_dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from gateway.config.process import LeaseSettings
from gateway.config.schema import (
    SECTIONS,
    CommonEndpointSettings,
    ExpectedCopy,
    GivenMessage,
    HeaderSettings,
    NameLimitSettings,
    PayloadSettings,
    SourceSettings,
    TagSettings,
    TargetSettings,
    ThinSettings,
)
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.mqtt import MqttTlsSettings, WebSocketSettings
from gateway.endpoints.settings.proxy import ProxySettings
from gateway.setting import fields_by_key, is_required, type_hints

DECLARATIONS: Mapping[str, type] = {
    **SECTIONS,
    **{name: kind.settings for name, kind in ENDPOINT_KINDS.items()},
    "endpoints": CommonEndpointSettings,
    "limits": NameLimitSettings,
    "lease": LeaseSettings,
    "tls": TlsSettings,
    "mqtt_tls": MqttTlsSettings,
    "websocket": WebSocketSettings,
    "proxy": ProxySettings,
    "from": SourceSettings,
    "tags": TagSettings,
    "to": TargetSettings,
    "payload": PayloadSettings,
    "headers": HeaderSettings,
    "thin": ThinSettings,
    "given": GivenMessage,
    "expect": ExpectedCopy,
}
TYPE_WORDS = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
UNIT_WORDS = {
    "bytes": "size", "seconds": "duration", "days": "days", "messages a minute": "N/minute",
}  # fmt: skip
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"))


def settings(arguments: Sequence[str], lines: Sequence[str]) -> list[str]:
    """One row for each setting of the section, kind or mapping that is the argument."""
    del lines
    (name,) = arguments
    kind = DECLARATIONS[name]
    hints = type_hints(kind)
    rows = ["| key | default | values | meaning |", "| --- | --- | --- | --- |"]
    for key, field in fields_by_key(kind).items():
        if key == "name" and name in ENDPOINT_KINDS:  # the key of the endpoint itself
            continue
        values = _values(hints[field.name], field.metadata)
        meaning = str(field.metadata["doc"]).replace("|", "\\|")
        rows.append(f"| `{key}` | {_default(field)} | {values} | {meaning} |")
    return rows


def _default(field: Field[Any]) -> str:  # noqa: PLR0911  # one return for each type
    if is_required(field):
        return "required"
    if field.default is MISSING or is_dataclass(field.default) or field.default in (None, "", ()):
        return ""
    value = field.default.value if isinstance(field.default, Enum) else field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value)
    if isinstance(value, float):
        return f"`{value:g}`"
    for size, unit in UNITS:
        if isinstance(value, int) and value and value % size == 0:
            return f"`{value}` ({value // size} {unit})"
    return f"`{value}`"


def _values(hint: Any, meta: Mapping[str, Any]) -> str:  # noqa: ANN401, PLR0911  # any declared type
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [each for each in get_args(hint) if each is not type(None)]
        return _values(inner[0], meta) if len(inner) == 1 else "text, number, truth value"
    if origin is Literal:
        return _words(get_args(hint))
    if origin is tuple:
        return f"{_values(get_args(hint)[0], meta)}, or a list of it"
    if "shorthand" in meta:
        return f"mapping, or its `{meta['shorthand']}`"
    if origin is not None or is_dataclass(hint):
        return "mapping"
    if meta.get("choices"):
        return _words(meta["choices"])
    if meta.get("secret"):
        return "`${env:NAME}` or `${file:/path}`"
    unit = meta.get("unit", "")
    whole = " in whole seconds" if (unit, hint) == ("seconds", int) else ""
    return UNIT_WORDS.get(unit, TYPE_WORDS[hint]) + whole + _bounds(meta)


def _words(words: Sequence[object]) -> str:
    return ", ".join(f"`{each}`" for each in words)


def _bounds(meta: Mapping[str, Any]) -> str:
    low, high = meta.get("minimum"), meta.get("maximum")
    if low is None and high is None:
        return ""
    if high is None:
        return f", at least {low:.12g}"
    return f", at most {high}" if low is None else f", {low:.12g} to {high:.12g}"
