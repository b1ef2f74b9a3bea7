"""The first and the last record of a journal: its place in the chain, and its digest.

The trailer has the SHA-256 of all bytes before it; with a key, their HMAC-SHA256. It is absent
when the process ended without closing the journal.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final, TypeGuard

from gateway.archive.journal.records import (
    MAGIC,
    MARK,
    Damage,
    Rows,
    pack_mapping,
    read_batches,
    read_mapping,
    record_spans,
)
from gateway.archive.layout import MAX_TIME, JournalName, parse_journal_name
from gateway.archive.signed_json import NO_TERM, Previous, SignedStatement, Term, parse
from gateway.errors import ArchiveError
from gateway.untyped import Untyped

_HEAD: Final = "head"
_TRAILER: Final = "trailer"
_TRAILER_START: Final = b"\x81\xa7trailer"  # a msgpack map with only this key


@dataclass(frozen=True, slots=True)
class Head(SignedStatement):
    """The first record of a journal: its writer, its place in the chain, and its predecessor.

    When it is `keyed`, its `mac` proves the key of a journal whose process was killed, and the
    digest in the trailer is an HMAC.
    Units: microseconds since 1970-01-01 UTC.
    """

    gateway: str
    writer: str
    start: int  # of the process that writes it
    sequence: int
    opened: int
    previous: Previous | None
    lease: Term = NO_TERM  # of the holder that wrote it

    def pack(self) -> bytes:
        """Return a journal with this head and no rows."""
        return MAGIC + pack_mapping({_HEAD: asdict(self)})


@dataclass(frozen=True, slots=True)
class Trailer:
    """The last record of a closed journal; it counts and hashes all bytes before it."""

    rows: int
    records: int
    size: int
    digest: str
    closed: int
    stopped: bool  # the gateway stopped in good order

    def pack(self) -> bytes:
        return pack_mapping({_TRAILER: asdict(self)})


def read_head(data: bytes) -> Head | None:
    """Return the head of a journal; None when it is absent or damaged."""
    found = read_mapping(data, len(MAGIC)) if data.startswith(MAGIC) else None
    return None if found is None else _parsed(Head, found[0].get(_HEAD))


def head_of(name: JournalName, data: bytes) -> Head:
    """Return the head of a journal; one that is absent or damaged is what its name tells."""
    told = Head(name.writer, name.writer, name.start, name.number, name.start, None)
    return read_head(data) or told


def read_trailer(data: bytes) -> tuple[Trailer, int] | None:
    """Return the trailer of a journal and its offset; None when the last record is none.

    The bytes before it are not compared with it.
    """
    offset = data.rfind(MARK)
    found = read_mapping(data, offset) if offset >= 0 and data.startswith(MAGIC) else None
    if found is None or found[1] != len(data):
        return None
    trailer = _parsed(Trailer, found[0].get(_TRAILER))
    return None if trailer is None else (trailer, offset)


def has_inner_trailer(data: bytes) -> bool:
    """Return whether records follow the trailer of a journal."""
    spans = [each for each in record_spans(data) if isinstance(each, slice)]
    return any(data.startswith(_TRAILER_START, span.start) for span in spans[:-1])


def link_of(stem: str, data: bytes, acknowledged: int | None) -> Previous | None:
    """Return the journal as a predecessor; None when nothing was ever written to it.

    `acknowledged` are its acknowledged bytes. Without a trailer, it was closed at the time of its
    last row, or when it was opened.
    """
    if (trailed := read_trailer(data)) is not None:
        return Previous(stem, trailed[0].digest, trailed[0].closed)
    last = None
    for span in record_spans(data) if data.startswith(MAGIC) else ():
        last = last if isinstance(span, Damage) else span
    if last is None and not acknowledged:
        return None
    return Previous(stem, None, _last_time(stem, data, last))


def _last_time(stem: str, data: bytes, last: slice | None) -> int:
    batches: list[Rows] | None = None
    with suppress(ArchiveError):  # no gateway wrote it
        batches = None if last is None else read_batches(data, last)
    times = [time for rows in batches or () for time in rows.values("time") if _is_valid(time)]
    name = parse_journal_name(stem)
    return max(times) if times else head_of(name, data).opened if name else 0


def _is_valid(time: object) -> TypeGuard[int]:
    return type(time) is int and 0 <= time < MAX_TIME


def _parsed(kind: Untyped, value: object) -> Untyped:
    with suppress(ValueError):
        return parse(kind, value)
    return None
