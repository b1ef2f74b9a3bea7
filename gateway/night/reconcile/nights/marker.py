"""The marker of a date that a night judged and a compaction merged, for schedulers.

    ARCHIVE/_done/date=YYYY-MM-DD/done.json

It is there exactly while both hold: a late row takes it away until the date is judged and merged
again. It is not signed: the record of its night is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.layout import DONE_DAYS, day_folder, days_in, is_merged
from gateway.archive.storage import Storage
from gateway.night.archive.compaction.current import current_files
from gateway.night.archive.night_record import NO_NIGHT, Night, night_path
from gateway.night.reconcile.nights.chain import nights_backwards
from gateway.night.reconcile.report.report import BREACH, CLEAN, GAPS

VERSION: Final = 1
VERDICTS: Final = {CLEAN: "clean", BREACH: "not clean", GAPS: "clean with gaps or unproven cuts"}


def marker_path(day: date) -> Path:
    """Return the path of the marker of `day` in its archive."""
    return day_folder(DONE_DAYS, day) / "done.json"


def forged_markers(storage: Storage) -> Iterator[Finding]:
    """Yield an error for each marker that no record of a night bears out.

    A scheduler may have believed it. One that the next night of its date replaces ends the error.

    Raises:
        OSError: the archive cannot be read.
    """
    for day in days_in(storage.names(DONE_DAYS)):
        path = marker_path(day)
        if (content := storage.read(path)) is not None and not _is_borne_out(storage, day, content):
            text = "no record of a night judged the date with this digest"
            yield error("forged-marker", path.as_posix(), f"{text}; remove the file")


def _is_borne_out(storage: Storage, day: date, content: bytes) -> bool:
    with suppress(ValueError, RecursionError, AttributeError):
        found = json.loads(content)
        night = Night.from_json(storage.read(night_path(found.get("night"))) or b"")
        return found.get("mac") == night.mac and str(day) in {each.date for each in night.dates}
    return False


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
