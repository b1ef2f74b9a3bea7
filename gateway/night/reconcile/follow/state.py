"""The state of `--follow` in one JSON file, whose replacement commits a micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular, replace_text
from gateway.archive.findings import Finding
from gateway.archive.signed_json import document_of, parse
from gateway.clock import moment
from gateway.errors import ReconcileError
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.summary import members

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
    return {name: max(last.get(name, 0), min(found.get(name, 0), now)) for name in sorted(names)}


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
