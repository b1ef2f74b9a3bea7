"""The marker of a date that a night judged and a compaction merged, for schedulers.

    ARCHIVE/_done/date=YYYY-MM-DD/done.json

It is there exactly while both hold: a late row takes it away until the date is judged and merged
again. It is not signed: the record of its night is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.compaction.current import current_files
from gateway.archive.layout import DONE_DAYS, day_folder, days_in, is_merged
from gateway.archive.night_record import NO_NIGHT, Night
from gateway.archive.storage import Storage
from gateway.reconcile.nights.chain import nights_backwards
from gateway.reconcile.report.report import BREACH, CLEAN, GAPS

VERSION: Final = 1
VERDICTS: Final = {CLEAN: "clean", BREACH: "not clean", GAPS: "clean with gaps or unproven cuts"}


def marker_path(day: date) -> Path:
    """Return the path of the marker of `day` in its archive."""
    return day_folder(DONE_DAYS, day) / "done.json"


def newest_marked(storage: Storage) -> int:
    """Return the number of the newest night that a marker names; 0 without one.

    Raises:
        OSError: the archive cannot be read.
    """
    paths = [marker_path(day) for day in days_in(storage.names(DONE_DAYS))]
    return max((_night_in(storage.read(path) or b"") for path in paths), default=0)


def _night_in(content: bytes) -> int:
    with suppress(ValueError, RecursionError):
        found = json.loads(content)
        number = found.get("night") if isinstance(found, dict) else None
        return number if type(number) is int else 0
    return 0


def mark(storage: Storage, day: date, nights: Iterable[Night] | None = None) -> Path | None:
    """Write the marker of `day`, or remove it when the date is not both judged and merged.

    The newest night that knows the date decides. `nights` are the records from the newest on, by
    default those of the archive; none is verified.

    Raises:
        OSError: the archive cannot be read or written.
    """
    path = marker_path(day)
    recent = nights_backwards(storage) if nights is None else nights
    known = ((night, each) for night in recent for each in night.dates if each.date == str(day))
    night, record = next(known, (NO_NIGHT, None))
    judged = record and record.status in VERDICTS and (record.settled or record.in_flight)
    files = [each.path for each in current_files(storage, day)] if judged else []
    if record is None or not files or not all(map(is_merged, files)):
        storage.delete(path)
        return None
    facts = {
        "version": VERSION,
        "date": str(day),
        "night": night.n,
        "mac": night.mac,
        "status": record.status,
        "verdict": VERDICTS[record.status],
        "in_flight": record.in_flight,
        "files": [each.as_posix() for each in files],
    }
    storage.put(path, json.dumps(facts, indent=2).encode() + b"\n")
    return path
