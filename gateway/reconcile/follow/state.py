"""The state of `--follow`, and what the new files of a micro-batch change in it.

It is one JSON file, whose replacement commits a micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular, replace_text
from gateway.archive.findings import Finding, warning
from gateway.archive.layout import parse_day, safe_name, writer_of
from gateway.archive.signed_json import document_of, parse
from gateway.archive.storage import Storage
from gateway.clock import moment
from gateway.errors import ArchiveError, ReconcileError
from gateway.reconcile.input.row_reader import row_groups
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import Row
from gateway.reconcile.report.summary import members

STATE: Final = "state.json"
STATE_VERSION: Final = 1
SEALING_HOURS: Final = 6  # after a date, in which its rows may still arrive
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class FollowedDay:
    """The result of the last batch for one date; `routes` are counts by route and target."""

    day: date
    routes: Sequence[Row] = ()
    findings: Sequence[Finding] = ()
    answered: bool = True  # whether the date has a readable segment

    def report(self, root: Path, *, strict: bool) -> Report:
        return Report(
            str(root), self.day, self.findings, self.routes, strict=strict, answered=self.answered
        )


@dataclass(frozen=True, slots=True)
class FollowState:
    """The state after a committed batch.

    Units: microseconds.
    """

    batch: int  # the last committed one
    open_from: date  # the first date that is not sealed
    last: Mapping[str, int] = field(default_factory=dict)  # writer -> its newest row
    days: Sequence[FollowedDay] = ()  # the open dates of the batch
    damaged: Sequence[Finding] = ()  # files left out because of a damaged page
    late: Sequence[Finding] = ()  # files that arrived after their date was sealed


def advanced(last: Mapping[str, int], found: Mapping[str, int], now: int) -> dict[str, int]:
    """Return the newest row of every writer; a time after `now` counts as `now`."""
    names = {*last, *found}
    return {
        name: max(last.get(name, 0), min(found.get(name, 0), now)) for name in sorted(names)
    }  # fmt: skip


def sealed_until(last: Mapping[str, int], open_from: date) -> date:
    """Return the first open date: the newest row is `SEALING_HOURS` after earlier dates."""
    if not last:
        return open_from
    newest = moment(max(last.values()))
    return max(open_from, (newest - timedelta(hours=SEALING_HOURS)).date())


def first_date(days: Sequence[date], today: date) -> date:
    """Return the first date of a first run: the day before the newest, for its late outcomes."""
    return max((day for day in days if day <= today), default=today) - _DAY


def read_state(folder: Path) -> FollowState | None:
    """Read the state; return None before the first batch.

    Raises:
        ReconcileError: the file cannot be read or parsed.
    """
    path = folder / STATE
    try:
        state: FollowState = parse(FollowState, document_of(read_regular(path), STATE_VERSION))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        raise ReconcileError(
            f"{path}: is no state of --follow: {fault}; remove {folder} to start again"
        ) from fault
    return state


def write_state(folder: Path, state: FollowState) -> None:
    """Commit a batch durably."""
    content = {"version": STATE_VERSION, **members(state)}
    replace_text(folder / STATE, json.dumps(content, default=members) + "\n")


def touched(landed: Iterable[Path]) -> set[date]:
    """Return the dates whose verdict new files may change: their own, and neighbours in reach."""
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
