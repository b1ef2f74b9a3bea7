"""Signed JSON: the digests that it states, its `mac`, and the strict way back to values.

A `mac` is the SHA-256 of the canonical JSON of all other members; with a key, the HMAC-SHA256
(RFC 2104). Canonical JSON has sorted keys, no spaces, and only ASCII characters.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Protocol, TypeVar, get_args, get_origin, get_type_hints


class SignedValue(Protocol):
    """A dataclass whose JSON is signed: `keyed` when there was a key, and the `mac` of the rest."""

    @property
    def keyed(self) -> bool: ...

    @property
    def mac(self) -> str: ...


S = TypeVar("S", bound=SignedValue)


@dataclass(frozen=True, slots=True)
class Previous:
    """The predecessor of a journal; `digest` is None when its gateway did not close it."""

    journal: str  # the stem of its file name
    digest: str | None
    closed: int


@dataclass(frozen=True, slots=True)
class Term:
    """The time in which one instance holds the lease of a pair; its `number` rises with each.

    It began at `since`, and a holder that does not renew the lease for `seconds` has lost it. The
    number is 0 for a gateway alone.
    """

    number: int = 0
    since: int = 0  # microseconds since 1970-01-01 UTC, by the clock of its holder
    seconds: int = 0


NO_TERM: Final = Term()


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


def sign(value: S, version: int, key: bytes | None) -> S:
    """Return `value` with its `mac`; keyed when there is a `key`."""
    keyed: S = replace(value, keyed=key is not None)  # type: ignore[type-var]  # a dataclass
    signed: S = replace(keyed, mac=_mac_of(keyed, version, key))  # type: ignore[type-var]
    return signed


def to_json(value: SignedValue, version: int) -> bytes:
    """Return the canonical JSON of `value`."""
    return canonical_json(_document(value, version))


def from_json(kind: type[S], version: int, content: bytes) -> S:
    """Parse the JSON of a `kind`; its `mac` is not checked.

    Raises:
        ValueError: `content` is none, or none of this version; the text is a predicate.
    """
    document = document_of(content, version)
    found: S = parse(kind, document)
    return found


def document_of(content: bytes, version: int) -> dict[str, Any]:
    """Return the members of a JSON object without its version.

    Raises:
        ValueError: `content` is none, or of another version; the text is a predicate.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # a fault of the content
    found = document.pop("version", None)
    if found != version:
        raise ValueError(f"has version {found!r}; this program reads version {version}")
    return document


def fault_of(value: SignedValue, version: int, key: bytes | None) -> str:
    """Return why nothing proves `value`, as a predicate; empty when its `mac` is right."""
    if value.keyed and key is None:
        return ""  # nothing can be said: the finding `unchecked-seals` says so
    if key is not None and not value.keyed:
        return "has no signature, although a key is given"
    if not has_valid_mac(value, version, key):
        return "is not what its writer wrote, or was signed with another key"
    return ""


def has_valid_mac(value: SignedValue, version: int, key: bytes | None) -> bool:
    """Return whether the `mac` is right; a keyed value needs its `key`."""
    if value.keyed and key is None:
        return False
    mac = _mac_of(value, version, key if value.keyed else None)
    return hmac.compare_digest(value.mac.encode(errors="replace"), mac.encode())


def _document(value: SignedValue, version: int) -> dict[str, Any]:
    return {"version": version, **asdict(value)}  # type: ignore[call-overload]  # a dataclass


def _mac_of(value: SignedValue, version: int, key: bytes | None) -> str:
    document = _document(value, version)
    del document["mac"]
    return mac_of(document, key)


def mac_of(document: Mapping[str, Any], key: bytes | None) -> str:
    """Return the SHA-256 of the canonical JSON of `document`; with a key, the HMAC-SHA256."""
    if key is None:
        return hashlib.sha256(canonical_json(document)).hexdigest()
    return hmac.new(key, canonical_json(document), hashlib.sha256).hexdigest()


def canonical_json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")
