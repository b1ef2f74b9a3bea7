"""Removal of old days from an archive, with their id sets, name pairs, seals and routes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.archive.layout import COMPACTING, PAIRS, SEALS, SETS, day_start, parse_day
from gateway.archive.routes import remove_routes
from gateway.archive.storage import Storage, StoredFile
from gateway.clock import today

# Rows before seals: seals without rows are a finding until the next call, and so are rows without
# seals, but no reader takes the former for a day.
_FOLDERS: Final = tuple(map(Path, (SETS, PAIRS, COMPACTING, "", SEALS)))

SPOOLED_DAYS: Final = 7  # age of a spooled copy without an outcome, after which it is missing

_NIGHTS: Final = Path("_nights")
_NIGHT: Final = re.compile(r"([1-9]\d*)\.json", re.ASCII)
_MAX_DAYS: Final = 400  # of a record that nobody checked


@dataclass(frozen=True, slots=True)
class RemovedDays:
    """The removed days that had rows; files and bytes include those beside the rows."""

    days: tuple[date, ...] = ()
    files: int = 0
    size: int = 0


def remove_days(storage: Storage, oldest: date) -> RemovedDays:
    """Remove every day before `oldest`, the oldest day first; see `oldest_unresolved`.

    The seals of the first kept day then begin the chain of each writer. The routes in force since
    its begin stay, and so do journals, shortened names and reports. A second call finds nothing.
    Another process may remove the same days at the same time.

    Raises:
        OSError: the archive cannot be reached; the next call removes the rest.
    """
    oldest = min(oldest, oldest_unresolved(storage, today()) or oldest)
    days: list[date] = []
    files: list[StoredFile] = []
    for folder in _FOLDERS:
        for name in storage.names(folder):
            day = parse_day(name)
            if day is not None and day < oldest:
                files += storage.remove(folder / name)
                days += [] if folder.parts else [day]
    files += remove_routes(storage, day_start(oldest))
    return RemovedDays(tuple(days), len(files), sum(file.size for file in files))


def oldest_unresolved(storage: Storage, today: date) -> date | None:
    """Return the oldest date of the newest night that waits for copies; None without one.

    It counts until the night that finds its last copies missing, and the dates after it stay,
    because the chains of the writers lead there. No key is needed: a forged record can delay a
    removal for these days, and remove nothing.

    Raises:
        OSError: the archive cannot be read.
    """
    numbers = [int(each[1]) for name in storage.names(_NIGHTS) if (each := _NIGHT.fullmatch(name))]
    if not numbers:
        return None
    try:
        night = json.loads(storage.read(_NIGHTS / f"{max(numbers)}.json") or b"")
        days = min(night["spooled_days"], _MAX_DAYS) + 1  # its last copies are from its midnight
        since = today - timedelta(days=days)
        found = [date.fromisoformat(each["date"]) for each in night["dates"] if not each["settled"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return min((day for day in found if day >= since), default=None)
