"""The seals that prove a date: its own, and those that continue them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

from gateway.archive.heads import WriterHead
from gateway.archive.layout import (
    SECOND,
    JournalName,
    day_of,
    parse_journal_name,
    seal_folder,
)
from gateway.archive.signed_json import Previous
from gateway.archive.storage import Storage
from gateway.archive.threads import in_threads
from gateway.night.archive.removed import Removed, removed
from gateway.night.archive.seals.evidence import Evidence, ReadEvidence, read_evidence
from gateway.night.archive.seals.seal import AnySeal, Seal
from gateway.night.archive.seals.store import (
    link_path,
    seal_days,
    seal_files,
)

SLACK: Final = 120 * SECOND  # before and after a journal: what was in flight then is in others
NO_HEADS: Final[Mapping[str, WriterHead]] = {}
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


class EvidenceReader:
    """Reads seals, and keeps those of a few dates; it lists each date once.

    Mutable: owned by one verification.
    """

    def __init__(
        self, storage: Storage, key: bytes | None, read: ReadEvidence | None = None
    ) -> None:
        """Prepare to read seals, and to check them with `key`; `read` does both, if given.

        Raises:
            OSError: the storage cannot be read.
        """
        self._storage, self.key = storage, key
        self._read = read or partial(read_evidence, storage, key)
        self.days = seal_days(storage)
        self.of_day = lru_cache(_CACHED_DAYS)(self._of_day)

    def of_names(self, stems: Collection[str], days: Collection[date]) -> list[Evidence]:
        """Return the seals with one of the names `stems` among those of `days`.

        Raises:
            OSError: the storage cannot be read.
        """
        wanted = {f"{stem}.json" for stem in stems}
        return [
            self._read(path)
            for day in days
            for path in self._paths.get(day, ())
            if path.name in wanted
        ]

    def around(
        self, day: date, period: Period, heads: Mapping[str, WriterHead] = NO_HEADS
    ) -> list[Evidence]:
        """Return the seals of `day` and of the date before, and those that continue these.

        That are the last one before and the next ones of each writer that wrote later, or by its
        head may have: a stop is not the end of a chain that goes on.

        Raises:
            OSError: the archive cannot be read.
        """
        before = [each for each in self.days if each < day]
        found = [*(self.of_day(before[-1]) if before else ()), *self.of_day(day)]
        near = {each.seal.writer for each in found if isinstance(each.seal, Seal)}
        for writer, named in self._names.items():
            later = sorted((at, name) for name, at in named.items() if at > day)
            if writer not in near and (later or _may_write(heads.get(writer), period)):
                earlier = [(at, name) for name, at in named.items() if at < day]
                found += [self._named(*each) for each in sorted(earlier)[-1:]]
            for each in later:
                found.append(self._named(*each))
                if _is_past(found[-1].seal, period):
                    break
        return found

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

    def first_name(self, writer: str) -> JournalName | None:
        """Return the name of the first journal of `writer` with a seal on any date.

        Raises:
            OSError: the storage cannot be read.
        """
        return min(self._names.get(writer, ()), default=None)

    def newest_name(self, writer: str) -> JournalName | None:
        """Return the name of the last journal of `writer` with a seal on any date.

        Raises:
            OSError: the storage cannot be read.
        """
        return max(self._names.get(writer, ()), default=None)

    def has_process(self, name: JournalName) -> bool:
        """Return whether a journal of the process that wrote the journal `name` has a seal.

        Raises:
            OSError: the storage cannot be read.
        """
        return any(each[:2] == name[:2] for each in self._names.get(name.writer, ()))

    def starts_of(self, writer: str) -> set[int]:
        """Return the starts of the processes of a writer that have a seal, in microseconds.

        Raises:
            OSError: the storage cannot be read.
        """
        return {name.start for name in self._names.get(writer, ())}

    def lost_begins(self) -> set[date]:
        """Return the dates of the journals before the first seals, but those that were removed.

        Raises:
            OSError: the storage cannot be read.
        """
        firsts = (min(own.items()) for own in self._names.values())
        seals = (self._named(day, name).seal for name, day in firsts)
        links = (seal.previous for seal in seals if isinstance(seal, Seal) and seal.previous)
        return {day_of(link.closed) for link in links if not self.removed.has_closed(link)}

    @cached_property
    def removed(self) -> Removed:
        """The journals that removals took from the archive.

        Raises:
            OSError: the storage cannot be read.
        """
        return removed(self._storage, self.key)

    @cached_property
    def _paths(self) -> dict[date, list[Path]]:
        """The files among the seals of each date, sorted by name."""
        found = in_threads(partial(seal_files, self._storage), self.days)
        return dict(zip(self.days, found, strict=True))

    @cached_property
    def _names(self) -> dict[str, dict[JournalName, date]]:
        """The journals with a seal, by writer, and the date of each."""
        found: dict[str, dict[JournalName, date]] = {}
        for day, paths in self._paths.items():
            for name in filter(None, (parse_journal_name(path.stem) for path in paths)):
                found.setdefault(name.writer, {})[name] = day
        return found

    def _of_day(self, day: date) -> list[Evidence]:
        return in_threads(self._read, self._paths.get(day, ()))

    def _named(self, day: date, name: JournalName) -> Evidence:
        return self._read(seal_folder(day) / f"{name}.json")


def _may_write(head: WriterHead | None, period: Period) -> bool:
    """Return whether a writer with this `head` did not stop before the period."""
    if head is None or head.closed is None:
        return False
    return head.open is not None or head.closed.closed >= period.begin


def _is_past(seal: AnySeal | None, period: Period) -> bool:
    """Return whether the journal of a seal was opened and closed after the period."""
    end = period.end + SLACK
    return isinstance(seal, Seal) and seal.opened >= period.end and seal.closed >= end
