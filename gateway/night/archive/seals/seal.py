"""The content of a seal: a journal, its predecessor, and the files that its rows became.

A seal is signed JSON (`gateway.archive.signed_json`).
Times are microseconds since 1970-01-01 UTC; digests are lower-case hexadecimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from gateway.archive.layout import MERGED
from gateway.archive.signed_json import (
    NO_TERM,
    Previous,
    SignedStatement,
    StoredDigest,
    Term,
    document_of,
    parse,
)

_MERGED: Final = "merged"  # the kind of a seal of a compaction


class End(StrEnum):
    """The end of a journal: values of `Seal.end`."""

    CLOSED = "closed"  # the gateway closed it, and opened another
    STOPPED = "stopped"  # the gateway closed it, and stopped in good order
    KILLED = "killed"  # it has no trailer: its process ended without closing it


@dataclass(frozen=True, slots=True)
class SealedDamage:
    """Bytes of a journal that gave no rows; the text says what was found."""

    offset: int
    size: int
    text: str

    def __str__(self) -> str:
        return f"{self.text} at offset {self.offset}, {self.size} bytes"


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment of a journal, or a merged one."""

    path: str  # date=YYYY-MM-DD/hour=HH/NAME.parquet
    rows: int
    size: int
    sha256: str
    first: int  # the earliest and the latest `time` of its rows
    last: int
    misplaced: int  # rows whose `time` is not in the hour of the folder
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
class HandedOver:
    """The first and the last time at which targets took copies; replays are left out.

    `sure` is the last time of which it is certain that a copy was handed over later: that of the
    receipt of its message. An answer may come long after the handing over.
    """

    first: int
    last: int
    sure: int


@dataclass(frozen=True, slots=True)
class Seal(SignedStatement):
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
    lease: Term = NO_TERM
    handed: HandedOver | None = None

    @property
    def link(self) -> Previous:
        """This journal as the predecessor of the next one."""
        return Previous(self.journal, None if self.end is End.KILLED else self.digest, self.closed)


@dataclass(frozen=True, slots=True)
class MergeSeal(SignedStatement):
    """The seal of one compaction of a date: segments, and the segments that they replace."""

    date: str  # YYYY-MM-DD
    generation: int
    replaces: tuple[Replaced, ...]
    segments: tuple[SegmentEntry, ...]
    kind: str = _MERGED

    gateway = ""  # it has rows of several

    @property
    def journal(self) -> str:
        """The name in place of a journal."""
        return f"{MERGED}{self.generation}"


AnySeal: TypeAlias = Seal | MergeSeal


def from_json(data: bytes) -> AnySeal:
    """Parse a seal; its `mac` is not checked.

    Raises:
        ValueError: `data` is not a seal, or no seal of this version; the text is a predicate.
    """
    document = document_of(data, SignedStatement.VERSION)
    seal: AnySeal = parse(MergeSeal if document.get("kind") == _MERGED else Seal, document)
    return seal
