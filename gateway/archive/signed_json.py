"""Signed JSON: the digests that it states, its `mac`, and the strict way back to values.

A `mac` is the SHA-256 of the canonical JSON of all other members; with a key, the HMAC-SHA256
(RFC 2104). Canonical JSON has sorted keys, no spaces, and only ASCII characters.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Final, Protocol, Self, TypeAlias, get_args, get_origin, get_type_hints

from gateway.archive.layout import JournalName, parse_journal_name
from gateway.archive.seal_key import proving_keys
from gateway.untyped import Untyped


class Hash(Protocol):
    """A running SHA-256 or HMAC-SHA256."""

    def update(self, data: bytes, /) -> None:
        """Add `data` to the hashed bytes."""

    def hexdigest(self) -> str:
        """Return the hash of the bytes so far."""


def new_hash(key: bytes | None, data: bytes) -> Hash:
    """Return the running SHA-256 of `data`; with a key, the HMAC-SHA256."""
    return hashlib.sha256(data) if key is None else hmac.new(key, data, hashlib.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedStatement:
    """A value whose JSON is signed: `keyed` when there was a key, and the `mac` of the rest.

    `VERSION` is that of the form.
    """

    VERSION = 1

    keyed: bool = False
    mac: str = ""

    def signed(self, key: bytes | None) -> Self:
        """Return the value with its `mac`; keyed when there is a `key`."""
        keyed = replace(self, keyed=key is not None)
        return replace(keyed, mac=keyed.made_mac(key))

    def to_json(self) -> bytes:
        """Return the canonical JSON."""
        return _canonical_json(self._document())

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Parse the JSON of a value; its `mac` is not checked.

        Raises:
            ValueError: `content` is none, or none of this version; the text is a predicate.
        """
        found: Self = parse(cls, document_of(content, cls.VERSION))
        return found

    def fault(self, key: bytes | None) -> str:
        """Return why nothing proves the value, as a predicate; empty when its `mac` is right."""
        if self.keyed and key is None:
            return ""  # nothing can be said: the finding `unchecked-seals` says so
        if key is not None and not self.keyed:
            return "has no signature, although a key is given"
        if not self.has_valid_mac(key):
            return "is not what its writer wrote, or was signed with another key"
        return ""

    def has_valid_mac(self, key: bytes | None) -> bool:
        """Return whether the `mac` is right; a keyed value needs its `key`."""
        if self.keyed and key is None:
            return False
        own = self.mac.encode(errors="replace")
        keys = proving_keys(key) if self.keyed else (None,)
        return any(hmac.compare_digest(own, self.made_mac(each).encode()) for each in keys)

    def made_mac(self, key: bytes | None) -> str:
        """Return the SHA-256 of the rest; with a key, the HMAC-SHA256."""
        document = self._document()
        del document["mac"]
        return new_hash(key, _canonical_json(document)).hexdigest()

    def _document(self) -> dict[str, object]:
        return {"version": self.VERSION, **_members(self)}


TAKEN: Final = "taken"  # in place of a digest: what another machine has open by the archive


@dataclass(frozen=True, slots=True)
class Previous:
    """The predecessor of a journal; `digest` is None when its gateway did not close it.

    It is `TAKEN` where another machine had the journal open: then nobody knows its end, and
    `closed` is a time before it.
    """

    journal: str  # the stem of its file name
    digest: str | None
    closed: int

    @property
    def name(self) -> JournalName | None:
        """The parts of its stem; None where it is none of a journal."""
        return parse_journal_name(self.journal)

    @property
    def taken(self) -> bool:
        """Whether it is the open journal of a head that was taken from the archive."""
        return self.digest == TAKEN


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


_INVALID: Final = "has no valid {!r}"
Parse: TypeAlias = Callable[[object, str], Untyped]  # of a JSON value and its name


def parse(kind: object, value: object, name: str = "content") -> Untyped:
    """Return the JSON `value` as an object of the type `kind`: a dataclass or a part of one.

    Raises:
        ValueError: it has another type, or other members; the text is a predicate.
    """
    return _parser_of(kind)(value, name)


@cache
def _parser_of(kind: Untyped) -> Parse:
    """Return the function that parses a `kind`: a type is taken apart once, its values often."""
    origin: object = get_origin(kind)
    if kind in {Any, object}:
        return lambda value, _: value
    if origin is UnionType:
        some = _parser_of(get_args(kind)[0])
        return lambda value, name: None if value is None else some(value, name)
    if origin in {tuple, Sequence}:
        return _parser_of_list(_parser_of(get_args(kind)[0]))
    if origin is Mapping:
        return _parser_of_mapping(_parser_of(get_args(kind)[1]))
    return _parser_of_members(kind) if is_dataclass(kind) else _parser_of_scalar(kind)


def _parser_of_list(part: Parse) -> Parse:
    def parsed(value: object, name: str) -> Untyped:
        return tuple([part(each, name) for each in _valid(value, list, name)])

    return parsed


def _parser_of_mapping(part: Parse) -> Parse:
    def parsed(value: object, name: str) -> Untyped:
        return {each: part(own, each) for each, own in _valid(value, dict, name).items()}

    return parsed


def _parser_of_members(kind: Untyped) -> Parse:
    parsers = {name: _parser_of(each) for name, each in get_type_hints(kind).items()}

    def parsed(value: object, name: str) -> Untyped:
        found = _valid(value, dict, name)
        if parsers.keys() != found.keys():
            raise ValueError(f"lacks or adds {min(parsers.keys() ^ found.keys())!r} in {name!r}")
        return kind(**{each: part(found[each], each) for each, part in parsers.items()})

    return parsed


def _parser_of_scalar(kind: Untyped) -> Parse:
    made: Untyped = kind if issubclass(kind, StrEnum) else getattr(kind, "fromisoformat", None)

    def parsed(value: object, name: str) -> object:
        with suppress(ValueError):
            return made(_valid(value, str, name))
        raise ValueError(_INVALID.format(name))

    return parsed if made else lambda value, name: _valid(value, kind, name)


def _valid(value: object, kind: type, name: str) -> Untyped:
    if type(value) is not kind:
        raise ValueError(_INVALID.format(name))
    return value


def document_of(content: str | bytes, version: int) -> dict[str, Any]:
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


def _canonical_json(document: Mapping[str, object]) -> bytes:
    return _ENCODER.encode(document).encode("ascii")


def _members(value: Untyped) -> dict[str, object]:
    """Return the members of a dataclass, not copied as `asdict` does: they are only encoded."""
    return {name: getattr(value, name) for name in _names_of(value.__class__)}


@cache
def _names_of(kind: Untyped) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_members)
