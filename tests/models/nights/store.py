"""The archive of the model of nights: heads, seals, segments, records of nights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

HEAD_IS_WRONG: Final = {"missing-head", "head-went-back", "old-head"}
DAY: Final = 1440  # minutes; every time of the model is in minutes

Place = tuple[str, int]  # a journal: its writer, and its number in the chain


class Row(NamedTuple):
    """A row of a journal; `copy` is a message at one target."""

    copy: int
    leg: str  # received, delivered, spooled or dead
    received: int
    time: int
    marked: bool = False  # as a possible duplicate

    @property
    def date(self) -> int:
        return self.received // DAY


class Seal(NamedTuple):
    """The statement of the converter about a closed journal."""

    place: Place
    closed: int
    ended: bool
    digest: int
    concerns: frozenset[int]  # dates of receipt of its rows
    dates: frozenset[int]  # the folders of its segments
    after: int  # the end of the journal before


class Head(NamedTuple):
    """The last closed and the open journal of a writer."""

    closed: int  # 0 before the first
    closed_at: int
    open: int | None  # None after a stop


class Forgotten(NamedTuple):
    """The sealed statement of a removed date."""

    seals: frozenset[Place]
    unresolved: frozenset[int] | None  # copies; None for a date that no night judged


class Judged(NamedTuple):
    """The verdict of a night on a date."""

    evidence: frozenset[tuple[Place, int]]
    missing: frozenset[int] = frozenset()
    duplicated: frozenset[int] = frozenset()
    unexpected: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()  # spooled or in flight, and stated as such
    absent: frozenset[Place] = frozenset()  # sealed rows that no file has

    @property
    def clean(self) -> bool:
        return not (self.missing or self.duplicated or self.unexpected or self.absent)


class Finding(NamedTuple):
    """A rule, and the writer, date or archive that it is about; `number` is of a journal."""

    rule: str
    subject: str
    number: int | None = None


class Record(NamedTuple):
    """A link of the chain of nights, with what the night printed."""

    number: int
    horizon: int  # the end of the last closed date
    heads: dict[str, Head]
    dates: dict[int, Judged]  # all that are kept
    judged: frozenset[int]  # by this night
    findings: frozenset[Finding]
    taken_back: frozenset[int]  # dates that an earlier night called clean
    ended: frozenset[str]  # writers that are stated as stopped
    forgotten: frozenset[int]  # dates whose removal was told
    link: object = None  # the record of the product, when it ran the night

    @property
    def clean(self) -> bool:
        return not self.findings and all(self.dates[date].clean for date in self.judged)

    def breaks_chain(self) -> bool:
        """Return whether the night says that links of nights are gone."""
        return any(finding.subject == "archive" for finding in self.findings)

    def names(self, writer: str, number: int) -> bool:
        """Return whether a finding is about the journal, or about all that follow a head."""
        known = self.heads[writer].closed if writer in self.heads else 0
        for finding in self.findings:
            whole = finding.rule in HEAD_IS_WRONG or (finding.number is None and number > known)
            about = finding.subject == writer and finding.rule != "missing-segment"
            if about and (whole or finding.number == number):
                return True
        return False


@dataclass(slots=True)
class Archive:
    """The shared files; `copy` is what a backup has."""

    heads: dict[str, Head] = field(default_factory=dict)
    seals: dict[Place, Seal] = field(default_factory=dict)
    segments: dict[tuple[Place, int], list[Row]] = field(default_factory=dict)
    merged: dict[int, dict[Place, list[Row]]] = field(default_factory=dict)
    routes: set[str] = field(default_factory=set)
    retired: dict[str, Head | None] = field(default_factory=dict)
    forgotten: dict[int, Forgotten] = field(default_factory=dict)
    results: dict[int, tuple[int, bool]] = field(default_factory=dict)  # night, clean
    nights: list[Record] = field(default_factory=list)

    def copy(self) -> Archive:
        """Return a copy whose values are shared: nobody changes a stored value."""
        return Archive(
            heads=dict(self.heads),
            seals=dict(self.seals),
            segments=dict(self.segments),
            merged={date: dict(rows) for date, rows in self.merged.items()},
            routes=set(self.routes),
            retired=dict(self.retired),
            forgotten=dict(self.forgotten),
            results=dict(self.results),
            nights=list(self.nights),
        )

    def rows(self, place: Place, date: int) -> list[Row] | None:
        """Return the rows of a journal in the folder of `date`; None without their file."""
        merged = self.merged.get(date, {}).get(place)
        return self.segments.get((place, date)) if merged is None else merged

    def last_night(self) -> Record | None:
        return self.nights[-1] if self.nights else None
