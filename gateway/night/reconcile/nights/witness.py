"""The night of a result: which record judged it, signed, and written after that record.

    ARCHIVE/_reconciled/date=YYYY-MM-DD/night.json

The results of all dates are so witnesses for the records: one that is newer than all records was
judged by a record that is gone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from gateway.archive.layout import RECONCILED, days_in, reconciled_folder
from gateway.archive.signed_json import SignedStatement
from gateway.archive.storage import Storage
from gateway.archive.threads import in_threads
from gateway.night.archive.night_record import Night


@dataclass(frozen=True, slots=True)
class JudgedBy(SignedStatement):
    """The statement that the record `night`, with this `digest`, judged a date."""

    date: str
    night: int
    digest: str


def state_night(storage: Storage, day: date, night: Night, key: bytes | None) -> None:
    """Write durably beside the results of `day` that `night` judged it.

    Raises:
        OSError: the archive cannot be written.
    """
    statement = JudgedBy(str(day), night.n, night.mac).signed(key)
    storage.put(_path(day), statement.to_json())


def newest_stated(storage: Storage, key: bytes | None) -> int:
    """Return the number of the newest night that results name; 0 without one.

    With a `key`, a statement without its signature names none.

    Raises:
        OSError: the archive cannot be read.
    """
    days = days_in(storage.names(RECONCILED))
    return max(in_threads(partial(_stated, storage, key), days), default=0)


def _stated(storage: Storage, key: bytes | None, day: date) -> int:
    with suppress(ValueError):
        found = JudgedBy.from_json(storage.read(_path(day)) or b"")
        return 0 if found.date != str(day) or found.fault(key) else found.night
    return 0


def _path(day: date) -> Path:
    return reconciled_folder(Path(), day) / "night.json"
