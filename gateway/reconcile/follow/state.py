"""The state of `--follow` in one JSON file, whose replacement commits a micro-batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gateway.archive.durable import read_regular, replace_text
from gateway.archive.findings import Finding, finding_row
from gateway.errors import ReconcileError
from gateway.model.copy_class import COLUMNS
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import Row
from gateway.reconcile.report.summary import VERSION, finding_of

STATE: Final = "state.json"
SUMMARY: Final = "summary.json"
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
            str(root),
            self.day,
            self.findings,
            self.routes,
            strict=strict,
            answered=self.answered,
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
    newest = datetime.fromtimestamp(max(last.values()) / 1_000_000, UTC)
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
        return _parsed(json.loads(read_regular(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ReconcileError(
            f"{path}: is no state of --follow: {fault}; remove {folder} to start again"
        ) from fault


def _parsed(content: Any) -> FollowState:  # noqa: ANN401  # of JSON
    if content["version"] != STATE_VERSION:
        raise ValueError(f"it has version {content['version']!r}, not {STATE_VERSION}")
    return FollowState(
        int(content["batch"]),
        date.fromisoformat(content["open_from"]),
        {str(name): int(at) for name, at in content["last"].items()},
        [_followed_day(each) for each in content["days"]],
        [finding_of(each) for each in content["damaged"]],
        [finding_of(each) for each in content["late"]],
    )


def write_state(folder: Path, state: FollowState) -> None:
    """Commit a batch durably."""
    content = {
        "version": STATE_VERSION,
        "batch": state.batch,
        "open_from": state.open_from.isoformat(),
        "last": state.last,
        "days": [
            {
                "date": each.day.isoformat(),
                "routes": list(each.routes),
                "findings": [finding_row(finding) for finding in each.findings],
                "answered": each.answered,
            }
            for each in state.days
        ],
        "damaged": [finding_row(each) for each in state.damaged],
        "late": [finding_row(each) for each in state.late],
    }
    replace_text(folder / STATE, json.dumps(content) + "\n")


def summary(root: Path, state: FollowState | None, reports: Sequence[Report], status: int) -> str:
    """Return the dates as JSON for scripts; times are ISO 8601 in UTC."""
    last = state.last.items() if state is not None else ()
    late = state.late if state is not None else ()
    content = {
        "version": VERSION,
        "archive": str(root),
        "status": status,
        "batch": state.batch if state is not None else None,
        "newest": {
            name: datetime.fromtimestamp(at / 1_000_000, UTC).isoformat() for name, at in last
        },
        "findings": [finding_row(each) for each in late],
        "dates": [
            {
                "date": str(each.day),
                "headline": each.headline,
                "verdict": each.verdict,
                "status": each.status,
                "totals": {name: each.total(name) for name in COLUMNS},
                "routes": list(each.routes),
                "findings": [finding_row(finding) for finding in each.findings],
            }
            for each in reports
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def _followed_day(content: Mapping[str, Any]) -> FollowedDay:
    findings = [finding_of(each) for each in content["findings"]]
    day = date.fromisoformat(content["date"])
    return FollowedDay(day, list(content["routes"]), findings, bool(content["answered"]))
