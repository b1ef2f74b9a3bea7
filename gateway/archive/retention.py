"""Removal of old days from an archive, with their id sets, name pairs, seals and routes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.layout import COMPACTING, DIGESTS, PAIRS, SEALS, SETS, day_start, parse_day
from gateway.archive.routes import remove_routes
from gateway.archive.storage import Storage, StoredFile

# Rows before seals: seals without rows are a finding until the next call, and so are rows without
# seals, but no reader takes the former for a day. Older gateways wrote digests.
_FOLDERS: Final = tuple(map(Path, (DIGESTS, SETS, PAIRS, COMPACTING, "", SEALS)))


@dataclass(frozen=True, slots=True)
class RemovedDays:
    """The removed days that had rows; files and bytes include those beside the rows."""

    days: tuple[date, ...] = ()
    files: int = 0
    size: int = 0


def remove_days(storage: Storage, oldest: date) -> RemovedDays:
    """Remove every day before `oldest`, the oldest day first.

    The seals of the first kept day then begin the chain of each writer. The routes in force since
    its begin stay, and so do journals, shortened names and reports. A second call finds nothing.
    Another process may remove the same days at the same time.

    Raises:
        OSError: the archive cannot be reached; the next call removes the rest.
    """
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
