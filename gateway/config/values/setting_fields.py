"""Facts about the fields of settings dataclasses, by their keys in a file."""

from __future__ import annotations

import typing
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, ClassVar, get_origin


@cache
def fields_by_key(kind: type) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass by their keys in a file."""
    return {field.metadata.get("key", field.name): field for field in fields(kind) if field.init}


@cache
def type_hints(kind: type) -> dict[str, Any]:
    return {n: h for n, h in typing.get_type_hints(kind).items() if get_origin(h) is not ClassVar}


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def default_path(field: Field[Any]) -> str | None:
    """Return the default of a setting that is a path; None without one."""
    default: object = field.default
    return default if "path" in field.metadata and isinstance(default, str) else None
