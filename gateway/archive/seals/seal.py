"""The content of a seal: a journal, its predecessor, and the files that its rows became.

A seal is JSON. Its `mac` is the SHA-256 of the canonical JSON of all other members; with a key,
the HMAC-SHA256 (RFC 2104). Canonical JSON has sorted keys, no spaces, and only ASCII characters.
Times are microseconds since 1970-01-01 UTC; digests are lower-case hexadecimal.
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
from typing import Any, Final, Self, TypeAlias, get_args, get_origin, get_type_hints

VERSION: Final = 1
_MERGED: Final = "merged"  # the kind of a seal of a compaction


class End(StrEnum):
    """The end of a journal: values of `Seal.end`."""

    CLOSED = "closed"  # the gateway closed it, and opened another
    STOPPED = "stopped"  # the gateway closed it, and stopped in good order
    KILLED = "killed"  # it has no trailer: its process ended without closing it


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


@dataclass(frozen=True, slots=True)
class SealedDamage:
    """Bytes of a journal that gave no rows; the text says what was found."""

    offset: int
    size: int
    text: str


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment with its sets and pairs; `pairs` is None when the segment has too many."""

    path: str  # date=YYYY-MM-DD/hour=HH/NAME.parquet
    rows: int
    size: int
    sha256: str
    first: int  # the earliest and the latest `time` of its rows
    last: int
    misplaced: int  # rows whose `time` is not in the hour of the folder
    sets: StoredDigest
    pairs: StoredDigest | None
    # The dates that it has rows of, YYYY-MM-DD, sorted: by receipt, and all that a gap covers.
    concerns: tuple[str, ...] = ()

    @property
    def file(self) -> StoredDigest:
        return StoredDigest(self.sha256, self.size)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A segment that a merged segment replaces."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of one journal."""

    writer: str
    gateway: str
    journal: str  # the stem of its file name
    start: int  # of the process that wrote it
    sequence: int  # of the journal in the chain of its writer
    opened: int
    closed: int  # time of the last row when the journal has no trailer
    previous: Previous | None
    digest: str  # of the journal
    end: End
    rows: int
    size: int  # bytes of the journal before its trailer
    damages: tuple[SealedDamage, ...] = ()
    lost_values: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    keyed: bool = False
    mac: str = ""

    @property
    def link(self) -> Previous:
        """This journal as the predecessor of the next one."""
        return Previous(self.journal, None if self.end is End.KILLED else self.digest, self.closed)

    def signed(self, key: bytes | None) -> Self:
        """Return the seal with its `mac`; keyed when there is a `key`."""
        keyed = replace(self, keyed=key is not None)
        return replace(keyed, mac=_mac_of(keyed, key))


@dataclass(frozen=True, slots=True)
class MergeSeal:
    """The seal of one compaction of a date: segments, and the segments that they replace."""

    date: str  # YYYY-MM-DD
    generation: int
    replaces: tuple[Replaced, ...]
    segments: tuple[SegmentEntry, ...]
    keyed: bool = False
    mac: str = ""

    @property
    def name(self) -> str:
        return f"merged-{self.generation}"

    def signed(self, key: bytes | None) -> Self:
        """Return the seal with its `mac`; keyed when there is a `key`."""
        keyed = replace(self, keyed=key is not None)
        return replace(keyed, mac=_mac_of(keyed, key))


AnySeal: TypeAlias = Seal | MergeSeal


def to_json(seal: AnySeal) -> bytes:
    """Return the canonical JSON of `seal`."""
    return canonical_json(_document(seal))


def has_valid_mac(seal: AnySeal, key: bytes | None) -> bool:
    """Return whether the `mac` is right; a keyed seal needs its `key`."""
    if seal.keyed and key is None:
        return False
    mac = _mac_of(seal, key if seal.keyed else None)
    return hmac.compare_digest(seal.mac.encode(errors="replace"), mac.encode())


def from_json(data: bytes) -> AnySeal:
    """Parse a seal; its `mac` is not checked.

    Raises:
        ValueError: `data` is no seal, or no seal of this version; the text is a predicate.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("is no JSON") from None
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004  # a fault of the content
    version, kind = document.pop("version", None), document.pop("kind", None)
    if version != VERSION:
        raise ValueError(f"has version {version!r}; this program reads version {VERSION}")
    seal: AnySeal = parse(MergeSeal if kind == _MERGED else Seal, document)
    return seal


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
    if kind is End and isinstance(value, str) and value in list(End):
        return End(value)
    if type(value) is not kind:
        raise ValueError(f"has no valid {name!r}")
    return value


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


def _mac_of(seal: AnySeal, key: bytes | None) -> str:
    document = _document(seal)
    del document["mac"]
    return mac_of(document, key)


def _document(seal: AnySeal) -> dict[str, Any]:
    kind = {"kind": _MERGED} if isinstance(seal, MergeSeal) else {}
    return {"version": VERSION, **kind, **asdict(seal)}
