"""Removal of old days from an archive, with their seals and routes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from gateway.archive.heads import remove_earlier
from gateway.archive.layout import COMPACTING, DONE_DAYS, NIGHTS, SEALS, day_start, parse_day
from gateway.archive.routes import remove_routes
from gateway.archive.signed_json import SignedStatement
from gateway.archive.storage import Storage, StoredFile
from gateway.archive.threads import in_threads
from gateway.clock import today
from gateway.night.archive.night_record import Night, night_numbers, night_path
from gateway.night.archive.seals.store import read_seal, seal_days, sealed_journals

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

    The seals of the first kept day then begin the chain of each writer. The routes in force since
    its begin stay, and so do journals, shortened names and reports. A head that was set aside goes
    with the seal of the last journal that it names, or of a later one. Where nights run, a signed
    statement tells the next one which dates had rows that no night judged. A second call finds
    nothing. Another process may remove the same days at the same time.

    Raises:
        OSError: the archive cannot be reached; the next call removes the rest.
    """
    if (night := _newest_night(storage)) is not None:
        oldest = min(oldest, oldest_needed(storage, night, today(), oldest) or oldest)
        for removed, paths in _unjudged(storage, night, date.min, oldest):
            _state_forgotten(storage, removed, paths, key)
    days: list[date] = []
    files: list[StoredFile] = []
    sealed = (day for day in seal_days(storage) if day < oldest)
    remove_earlier(storage, [name for day in sealed for _, name in sealed_journals(storage, day)])
    for folder in _FOLDERS:
        for name in storage.names(folder):
            day = parse_day(name)
            if day is not None and day < oldest:
                files += storage.remove(folder / name)
                days += [] if folder.parts else [day]
    files += remove_routes(storage, day_start(oldest))
    return RemovedDays(tuple(days), len(files), sum(file.size for file in files))


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
    waiting += [day for day, _ in _unjudged(storage, night, since, until)]
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


def _state_forgotten(storage: Storage, day: date, paths: Sequence[Path], key: bytes | None) -> None:
    seals = [each.seal for each in in_threads(partial(read_seal, storage), paths)]
    entries = [entry for seal in seals if seal is not None for entry in seal.segments]
    dates = {each for entry in entries for each in entry.concerns} or {str(day)}
    path = NIGHTS / f"forgotten-{day}.json"
    dates |= {*forgotten_dates(storage).get(path, ())}  # an interrupted removal left fewer seals
    statement = Forgotten(tuple(sorted(dates)), len(paths)).signed(key)
    storage.put(path, statement.to_json())


def _unjudged(
    storage: Storage, night: Night, begin: date, end: date
) -> Iterator[tuple[date, list[Path]]]:
    """Yield the dates from `begin` until before `end` with seals that `night` and no other saw."""
    for day in seal_days(storage):
        journals = sealed_journals(storage, day) if begin <= day < end else ()
        if paths := [path for path, name in journals if not night.has_judged(name)]:
            yield day, paths


def _newest_night(storage: Storage) -> Night | None:
    """Return the newest record of a night; None without one, or when it is damaged."""
    numbers = night_numbers(storage)
    with suppress(ValueError):
        return Night.from_json(storage.read(night_path(numbers[-1])) or b"") if numbers else None
    return None
