"""Removal of old days from an archive, with their seals and routes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from gateway.archive.heads import read_heads, remove_earlier
from gateway.archive.layout import (
    COMPACTING,
    DONE_DAYS,
    NIGHTS,
    SEALS,
    JournalName,
    day_folder,
    day_of,
    day_start,
    journal_of,
    parse_day,
    parse_journal_name,
)
from gateway.archive.routes import remove_routes
from gateway.archive.signed_json import SignedStatement
from gateway.archive.storage import Storage, StoredFile
from gateway.archive.threads import in_threads
from gateway.clock import today
from gateway.night.archive.night_record import Night, night_numbers, night_path
from gateway.night.archive.removed import state_removal
from gateway.night.archive.seals.seal import Seal
from gateway.night.archive.seals.store import kept_days, read_seal, seal_days, sealed_journals

# Rows before seals: seals without rows are a finding until the next call, and so are rows without
# seals, but no reader takes the former for a day.
_FOLDERS: Final = (DONE_DAYS, Path(COMPACTING), Path(), Path(SEALS))

_FORGOTTEN: Final = re.compile(r"forgotten-(\d{4}-\d\d-\d\d)\.json", re.ASCII)
_MAX_DAYS: Final = 400  # of a record that nobody checked


@dataclass(frozen=True, slots=True)
class RemovedDays:
    """The removed days that had rows; files and bytes include those beside the rows."""

    days: tuple[date, ...] = ()
    files: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Forgotten(SignedStatement):
    """The dates with rows, YYYY-MM-DD, that were removed before a night judged these journals."""

    dates: tuple[str, ...]
    journals: int


def remove_days(storage: Storage, oldest: date, key: bytes | None = None) -> RemovedDays:
    """Remove every day before `oldest`, the oldest day first; see `oldest_needed`.

    A signed statement says first with which journal the chain of each writer ends that is removed.
    The routes in force since the begin of the first kept day stay, and so do journals, shortened
    names and reports. A head that was set aside goes with the seal of the last journal that it
    names, or of a later one. Where nights run, another statement tells the next one which dates had
    rows that no night judged. A second call finds nothing. Another process may remove the same days
    at the same time.

    Raises:
        OSError: the archive cannot be reached; the next call removes the rest.
    """
    if (night := _newest_night(storage)) is not None:
        oldest = min(oldest, oldest_needed(storage, night, today(), oldest) or oldest)
        for unjudged in _unjudged(storage, night, date.min, oldest):
            _state_forgotten(storage, unjudged, key)
    days: list[date] = []
    files: list[StoredFile] = []
    old = sorted(day for day in kept_days(storage, seal_days(storage)) if day < oldest)
    journals = [name for day in old for _, name in sealed_journals(storage, day)]
    if old:
        state_removal(storage, oldest, [*journals, *_over(storage, oldest, key)], key)
    remove_earlier(storage, journals)
    for folder in _FOLDERS:
        for name in storage.names(folder):
            day = parse_day(name)
            if day is not None and day < oldest:
                files += storage.remove(folder / name)
                days += [] if folder.parts else [day]
    files += remove_routes(storage, day_start(oldest))
    return RemovedDays(tuple(days), len(files), sum(file.size for file in files))


def _over(storage: Storage, oldest: date, key: bytes | None) -> Iterator[JournalName]:
    """Yield the journals of removed dates that the first kept seal or the head of a writer names.

    Their own seals may be lost: that was a finding of these dates.
    """
    firsts: dict[str, tuple[JournalName, Path]] = {}
    for day in seal_days(storage):
        for path, name in sealed_journals(storage, day) if day >= oldest else ():
            firsts[name.writer] = min((name, path), firsts.get(name.writer, (name, path)))
    seals = [read_seal(storage, path).seal for _, path in firsts.values()]
    sound = [each for each in seals if isinstance(each, Seal) and not each.fault(key)]
    heads = [each.head for each in read_heads(storage, key) if each.head and not each.fault]
    links = [(each.previous, each.opened) for each in sound]
    links += [(each.closed, each.at) for each in heads]
    for link, after in links:
        # Nobody knows the end of a journal that was taken: only what followed it came later.
        if link is not None and day_of(after if link.taken else link.closed) < oldest:
            yield from filter(None, [link.name])


def oldest_needed(storage: Storage, night: Night, today: date, until: date) -> date | None:
    """Return the oldest date that waits for copies, or before `until` for a night at all.

    It counts until the night that finds its last copies missing, and the dates after it stay,
    because the chains of the writers lead there. No key is needed: a forged record can delay a
    removal for these days, and remove nothing.

    Raises:
        OSError: the archive cannot be read.
    """
    since = today - timedelta(days=min(night.spooled_days, _MAX_DAYS) + 1)
    unsettled = (parse_day(f"date={each.date}") for each in night.unsettled)
    waiting = [day for day in unsettled if day is not None and day >= since]
    waiting += [each.day for each in _unjudged(storage, night, since, until)]
    return min(waiting, default=None)


def forgotten_dates(storage: Storage) -> dict[Path, tuple[str, ...]]:
    """Return the dates that were removed with rows that no night judged, by statement.

    A statement that cannot be read is one about the date in its name.

    Raises:
        OSError: the archive cannot be read.
    """
    found: dict[Path, tuple[str, ...]] = {}
    for match in filter(None, map(_FORGOTTEN.fullmatch, storage.names(NIGHTS))):
        path = NIGHTS / match[0]
        found[path] = (match[1],)
        with suppress(ValueError):
            dates = Forgotten.from_json(storage.read(path) or b"").dates
            found[path] = tuple(each for each in dates if parse_day(f"date={each}") is not None)
    return found


@dataclass(frozen=True, slots=True)
class _UnjudgedDate:
    """A date with journals that no night judged: those with seals there, and those with rows.

    Somebody may have removed the seal of a journal, and its segments name it still.
    """

    day: date
    seals: Sequence[Path]
    journals: Collection[JournalName]
    with_rows: bool


def _state_forgotten(storage: Storage, unjudged: _UnjudgedDate, key: bytes | None) -> None:
    seals = [each.seal for each in in_threads(partial(read_seal, storage), unjudged.seals)]
    entries = [entry for seal in seals if seal is not None for entry in seal.segments]
    dates = {each for entry in entries for each in entry.concerns}
    if unjudged.with_rows or not dates:
        dates.add(str(unjudged.day))
    path = NIGHTS / f"forgotten-{unjudged.day}.json"
    dates |= {*forgotten_dates(storage).get(path, ())}  # an interrupted removal left fewer seals
    statement = Forgotten(tuple(sorted(dates)), len(unjudged.journals)).signed(key)
    storage.put(path, statement.to_json())


def _unjudged(storage: Storage, night: Night, begin: date, end: date) -> Iterator[_UnjudgedDate]:
    """Yield the dates from `begin` until before `end` with journals that no night judged."""
    days = kept_days(storage, seal_days(storage))
    for day in sorted(each for each in days if begin <= each < end):
        sealed = {n: path for path, n in sealed_journals(storage, day) if not night.has_judged(n)}
        stems = {journal_of(path) for path, _ in storage.files(day_folder(Path(), day))}
        names = {name for stem in stems if (name := parse_journal_name(stem)) is not None}
        with_rows = {name for name in names if not night.has_judged(name)}
        if journals := sealed.keys() | with_rows:
            yield _UnjudgedDate(day, [*sealed.values()], journals, bool(with_rows))


def _newest_night(storage: Storage) -> Night | None:
    """Return the newest record of a night; None without one, or when it is damaged."""
    numbers = night_numbers(storage)
    with suppress(ValueError):
        return Night.from_json(storage.read(night_path(numbers[-1])) or b"") if numbers else None
    return None
