"""The new files of a micro-batch: the dates that they change, their newest rows, and late ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, warning
from gateway.archive.layout import parse_day, safe_name, writer_of
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError
from gateway.night.reconcile.follow.state import SEALING_HOURS
from gateway.night.reconcile.input.row_reader import row_groups

_DAY: Final = timedelta(days=1)


def touched(landed: Iterable[Path]) -> set[date]:
    """Return the dates whose verdict new files may change: their own, and those of neighbours."""
    found: set[date] = set()
    for path in landed:
        day, hour = parse_day(path.parts[0]), path.parts[1].removeprefix("hour=")
        if day is not None and hour.isdecimal():
            hours = (int(hour) + shift for shift in (-SEALING_HOURS, 0, SEALING_HOURS))
            found |= {day + timedelta(hours=each) for each in hours}
    return found


def last_rows(storage: Storage, landed: Iterable[Path]) -> dict[str, int]:
    """Return the time of the newest row of each writer in new files, in microseconds.

    A merged file has rows of all writers of a gateway. A damaged file has none; the batch that
    reads it reports it.
    """
    last: dict[str, int] = {}
    for path in landed:
        try:
            tables = list(row_groups(storage, path, ("gateway", "time")))
        except ArchiveError:
            continue
        for rows in tables:
            found = rows.group_by("gateway").aggregate([("time", "max")])
            for gateway, time in zip(found["gateway"], found["time_max"], strict=True):
                writer = writer_of(path) or safe_name(gateway.as_py())
                last[writer] = max(time.value or 0, last.get(writer, 0))
    return last


def too_late(landed: Iterable[Path], open_from: date) -> Iterator[Finding]:
    """Yield a warning for each new file of a sealed date."""
    for path in sorted(landed):
        day = parse_day(path.parts[0])
        if day is not None and day < open_from:
            text = f"came after {day} was sealed; gateway reconcile --date {day} counts it"
            yield warning("late-segment", str(path), text)


def is_near(damaged: Finding, open_from: date) -> bool:
    """Return whether the damaged file may still be read, in an open date or beside one."""
    day = parse_day(Path(damaged.place).parts[0])
    return day is not None and day >= open_from - _DAY
