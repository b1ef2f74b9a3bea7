"""Removal of old days from an archive, with their digests and name pairs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.layout import DIGESTS, PAIRS, parse_day
from gateway.archive.storage import Storage, StoredFile

# Digests first: rows without their digest are still read; a digest without its rows is an error.
_FOLDERS: Final = (Path(DIGESTS), Path(PAIRS), Path())


@dataclass(frozen=True, slots=True)
class RemovedDays:
    """The removed days that had rows; files and bytes include digests and name pairs."""

    days: tuple[date, ...] = ()
    files: int = 0
    size: int = 0


def remove_days(storage: Storage, oldest: date) -> RemovedDays:
    """Remove every day before `oldest`, the oldest day first.

    Journals, shortened names and reports stay. A second call finds nothing. Another process may
    remove the same days at the same time.

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
    return RemovedDays(tuple(days), len(files), sum(file.size for file in files))
