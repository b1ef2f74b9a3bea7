"""The seals of an archive by date, each judged by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.heads import WriterHead
from gateway.archive.layout import (
    DAY,
    SECOND,
    JournalName,
    day_of,
    parse_journal_name,
    seal_folder,
)
from gateway.archive.seals.seal import AnySeal, Seal
from gateway.archive.seals.store import (
    ReadSeal,
    StoredSeal,
    link_path,
    read_seal,
    read_seals,
    seal_days,
    sealed_journals,
)
from gateway.archive.signed_json import Previous
from gateway.archive.storage import Storage
from gateway.archive.threads import in_threads
from gateway.archive.verification.lineage import is_stopped

SLACK: Final = 120 * SECOND  # before and after a journal: what was in flight then is in others
_CACHED_DAYS: Final = 6


@dataclass(frozen=True, slots=True)
class Period:
    """The time to prove, from `begin` to `end`; `now` is the begin of the current date.

    Units: microseconds since 1970-01-01 UTC.
    """

    begin: int
    end: int
    now: int

    def has(self, first: int, last: int) -> bool:
        """Return whether a journal written from `first` to `last` concerns the period."""
        begin, end = reach(first, last)
        return begin <= self.end and end >= self.begin


def reach(first: int, last: int) -> tuple[int, int]:
    """Return the time that a journal written from `first` to `last` concerns.

    Findings about the journal belong to the dates of this time, and the night that reads its seal
    judges them again: a finding of a date ends when the journal is there.

    A clock that was set back may have given the later time first.
    """
    return min(first, last) - SLACK, max(first, last) + SLACK


@dataclass(frozen=True, slots=True)
class Evidence:
    """A file among the seals; with a `finding` its statements are not proven."""

    path: Path
    seal: AnySeal | None
    finding: Finding | None


class EvidenceReader:
    """Reads seals, and keeps those of a few dates.

    Mutable: owned by one verification.
    """

    def __init__(self, storage: Storage, key: bytes | None, read: ReadSeal | None = None) -> None:
        """Prepare to read seals, with `read` if given, and to check them with `key`.

        Raises:
            OSError: the storage cannot be read.
        """
        self._storage, self.key = storage, key
        self._read = read or partial(read_seal, storage)
        self.days = seal_days(storage)
        self.of_day = lru_cache(_CACHED_DAYS)(self._of_day)
        self._journals = lru_cache(_CACHED_DAYS)(partial(_journals, storage))

    def of_names(self, stems: Collection[str], days: Collection[date]) -> list[Evidence]:
        """Return the seals with one of the names `stems` among those of `days`.

        Raises:
            OSError: the storage cannot be read.
        """
        wanted = {f"{stem}.json" for stem in stems}
        return [
            self._judged(self._read(seal_folder(day) / name))
            for day in days
            for name in sorted(wanted.intersection(self._storage.names(seal_folder(day))))
        ]

    def _end_of(self, writer: str, days: Iterable[date], place: int) -> list[Evidence]:
        """Return the first (`place` 0) or last (-1) seal of `writer` on the first day with one.

        Raises:
            OSError: the storage cannot be read.
        """
        for day in days:
            if own := sorted(each for each in self._journals(day) if each.writer == writer):
                return self.of_names([str(own[place])], [day])
        return []

    def around(self, day: date, period: Period) -> list[Evidence]:
        """Return the seals of `day`, of the date before, and of later ones until all chains end.

        Raises:
            OSError: the storage cannot be read.
        """
        found: list[Evidence] = []
        for each in [*[each for each in self.days if each < day][-1:], day]:
            found += self.of_day(each)
        for each in (each for each in self.days if each > day):
            found += self.of_day(each)
            if not _is_open(found, period):
                break
        return found

    def of_silent(
        self, day: date, period: Period, heads: Mapping[str, WriterHead], found: Sequence[Evidence]
    ) -> list[Evidence]:
        """Return the seals around `day` of the writers of `heads` without one in `found`.

        Writers that stopped before `period` have none.

        Raises:
            OSError: the storage cannot be read.
        """
        near = {each.seal.writer for each in found if isinstance(each.seal, Seal)}
        silent: list[Evidence] = []
        for writer, head in heads.items():
            last = head.closed
            if writer in near or last is None or (head.open is None and last.closed < period.begin):
                continue
            days = self.days
            silent += self._end_of(writer, [each for each in reversed(days) if each < day], -1)
            silent += self._end_of(writer, [each for each in days if each > day], 0)
        return silent

    def exists(self, link: Previous) -> bool:
        """Return whether a file has the name of the seal of the journal that `link` names.

        Raises:
            OSError: the storage cannot be read.
        """
        return self._storage.read(link_path(link)) is not None or (
            link.taken and self.has_name(link.journal)
        )

    def has_name(self, stem: str) -> bool:
        """Return whether the journal `stem` has a seal on any date.

        Raises:
            OSError: the storage cannot be read.
        """
        name = parse_journal_name(stem)
        return name is not None and name in self._names.get(name.writer, {})

    @cached_property
    def _names(self) -> dict[str, dict[JournalName, date]]:
        """The journals with a seal, by writer, and the date of each."""
        found: dict[str, dict[JournalName, date]] = {}
        for day, names in zip(self.days, in_threads(self._journals, self.days), strict=True):
            for name in names:
                found.setdefault(name.writer, {})[name] = day
        return found

    def has_process(self, name: JournalName) -> bool:
        """Return whether a journal of the process that wrote the journal `name` has a seal.

        Raises:
            OSError: the storage cannot be read.
        """
        since = day_of(name.start - DAY)
        named = (each for day in self.days if day >= since for each in self._journals(day))
        return any(each[:2] == name[:2] for each in named)

    def _of_day(self, day: date) -> list[Evidence]:
        found = read_seals(self._storage, day, self._read) if day in self.days else []
        return [self._judged(each) for each in found]

    def _judged(self, stored: StoredSeal) -> Evidence:
        return Evidence(stored.path, stored.seal, _finding(stored, self.key))


def _journals(storage: Storage, day: date) -> list[JournalName]:
    return [name for _, name in sealed_journals(storage, day)]


def _is_open(evidence: Sequence[Evidence], period: Period) -> bool:
    """Return whether a journal with rows of the period may follow those of a writer."""
    last: dict[str, Seal] = {}
    for each in evidence:
        if isinstance(each.seal, Seal):
            known = last.get(each.seal.writer, each.seal)
            last[each.seal.writer] = max(known, each.seal, key=lambda seal: seal.closed)
    return any(seal.closed < period.end + SLACK and not is_stopped(seal) for seal in last.values())


def _finding(stored: StoredSeal, key: bytes | None) -> Finding | None:
    seal, place = stored.seal, str(stored.path)
    if seal is None:
        text = f"the seal {stored.fault}; restore it from a copy of the archive"
        return error("forged-seal", place, text)
    if seal.keyed and key is None:
        return None  # one finding of the verification is about all of them
    if not seal.has_valid_mac(key):
        text = "the content is not what was sealed"
        return error("forged-seal", place, f"{text}, or the key is another one" if key else text)
    if key is not None and not seal.keyed:
        return error("unsigned-seal", place, "the seal has no key, and one was given")
    return None
