"""Signed JSON: the digests that it states, its `mac`, and the strict way back to values.

A `mac` is the SHA-256 of the canonical JSON of all other members; with a key, the HMAC-SHA256
(RFC 2104). Canonical JSON has sorted keys, no spaces, and only ASCII characters.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True, slots=True)
class Previous:
    """The predecessor of a journal; `digest` is None when its gateway did not close it."""

    journal: str  # the stem of its file name
    digest: str | None
    closed: int


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """The SHA-256 and the size in bytes of a stored file."""

    sha256: str
    size: int


def parse(kind: Any, value: object, name: str = "content") -> Any:  # noqa: ANN401  # any dataclass
    """Return the JSON `value` as an object of the type `kind`: a dataclass or a part of one.

    Raises:
        ValueError: it has another type, or other members; the text is a predicate.
    """
    if get_origin(kind) is UnionType:
        kind = NoneType if value is None else get_args(kind)[0]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(parse(get_args(kind)[0], each, name) for each in value)
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {each: parse(get_args(kind)[1], value[each], each) for each in value}
    if is_dataclass(kind) and isinstance(value, dict):
        return _parse_members(kind, value, name)
    if _is_enum(kind) and isinstance(value, str) and value in list(kind):
        return kind(value)
    if type(value) is not kind:
        raise ValueError(f"has no valid {name!r}")
    return value


def _is_enum(kind: Any) -> bool:  # noqa: ANN401
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _parse_members(kind: Any, value: Mapping[str, object], name: str) -> Any:  # noqa: ANN401
    types = _types_of(kind)
    if types.keys() != value.keys():
        raise ValueError(f"lacks or adds {min(types.keys() ^ value.keys())!r} in {name!r}")
    return kind(**{each: parse(types[each], value[each], each) for each in types})


@cache
def _types_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def mac_of(document: Mapping[str, Any], key: bytes | None) -> str:
    """Return the SHA-256 of the canonical JSON of `document`; with a key, the HMAC-SHA256."""
    if key is None:
        return hashlib.sha256(canonical_json(document)).hexdigest()
    return hmac.new(key, canonical_json(document), hashlib.sha256).hexdigest()


def canonical_json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")
