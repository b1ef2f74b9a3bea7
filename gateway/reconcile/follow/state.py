"""What the last micro-batch left: one small JSON file, whose replacement commits the batch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from gateway.archive.journal.file import sync_folder
from gateway.errors import ReconcileError
from gateway.reconcile.findings import Finding, Weight
from gateway.reconcile.report.text import COLUMNS, Report, Row

STATE: Final = "state.json"
SUMMARY: Final = "summary.json"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Followed:
    """One date as its last batch left it; `routes` are counts by route and target."""

    day: date
    routes: Sequence[Row] = ()
    findings: Sequence[Finding] = ()
    answered: bool = True  # it has a readable segment

    def report(self, root: Path, *, strict: bool) -> Report:
        return Report(
            str(root),
            str(self.day),
            self.findings,
            self.routes,
            strict=strict,
            answered=self.answered,
        )


@dataclass(frozen=True, slots=True)
class State:
    """Where the following stands; times are microseconds."""

    batch: int  # the last that is committed
    open_from: date  # the first date that is not sealed
    last: Mapping[str, int] = field(default_factory=dict)  # gateway -> its newest row
    days: Sequence[Followed] = ()  # those the batch judged
    damaged: Sequence[Finding] = ()  # files of them that are left out for a damaged page
    late: Sequence[Finding] = ()  # files that came after their date was sealed


def advanced(last: Mapping[str, int], found: Mapping[str, int], now: int) -> dict[str, int]:
    """The newest row of every gateway; one later than `now` is a wrong clock's, and no progress."""
    names = {*last, *found}
    return {
        name: max(last.get(name, 0), min(found.get(name, 0), now)) for name in sorted(names)
    }  # fmt: skip


def sealed_until(last: Mapping[str, int], open_from: date, margin: int) -> date:
    """The first date that may still change: of the ones before, no row is waited for."""
    if not last:
        return open_from
    newest = datetime.fromtimestamp(max(last.values()) / 1_000_000, UTC)
    return max(open_from, (newest - timedelta(hours=margin)).date())


def first_date(days: Sequence[date], today: date) -> date:
    """Where a first run begins: the day before the newest, so that its late ends are known."""
    return max((day for day in days if day <= today), default=today) - _DAY


def read_state(folder: Path) -> State | None:
    """The state, or None before the first batch.

    Raises:
        ReconcileError: it is there and cannot be understood.
    """
    path = folder / STATE
    try:
        content: Any = json.loads(path.read_bytes())
        return State(
            int(content["batch"]),
            date.fromisoformat(content["open_from"]),
            {str(name): int(at) for name, at in content["last"].items()},
            [_followed(each) for each in content["days"]],
            [_finding(each) for each in content["damaged"]],
            [_finding(each) for each in content["late"]],
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ReconcileError(
            f"{path}: is no state of --follow: {fault}; remove {folder} to start afresh"
        ) from fault


def write_state(folder: Path, state: State) -> None:
    """Commit a batch: all of it, and on the disk."""
    content = {
        "batch": state.batch,
        "open_from": state.open_from.isoformat(),
        "last": state.last,
        "days": [
            {
                "date": each.day.isoformat(),
                "routes": list(each.routes),
                "findings": [_of_finding(finding) for finding in each.findings],
                "answered": each.answered,
            }
            for each in state.days
        ],
        "damaged": [_of_finding(each) for each in state.damaged],
        "late": [_of_finding(each) for each in state.late],
    }
    replace_file(folder / STATE, json.dumps(content) + "\n")


def replace_file(path: Path, text: str) -> None:
    """Write a file in one step: whoever reads it sees the old one or the new one."""
    hidden = path.with_name(f".tmp-{path.name}")
    with hidden.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)
    sync_folder(path.parent)


def summary(root: Path, state: State | None, reports: Sequence[Report], status: int) -> str:
    """The dates for scripts, as JSON; times are ISO 8601 in UTC."""
    last = state.last.items() if state is not None else ()
    late = state.late if state is not None else ()
    content = {
        "archive": str(root),
        "status": status,
        "batch": state.batch if state is not None else None,
        "newest": {
            name: datetime.fromtimestamp(at / 1_000_000, UTC).isoformat() for name, at in last
        },
        "findings": [_of_finding(each) for each in late],
        "dates": [
            {
                "date": each.day,
                "verdict": each.verdict,
                "status": each.status,
                "totals": {name: each.total(name) for name in COLUMNS},
                "routes": list(each.routes),
                "findings": [_of_finding(finding) for finding in each.findings],
            }
            for each in reports
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def _followed(content: Mapping[str, Any]) -> Followed:
    findings = [_finding(each) for each in content["findings"]]
    day = date.fromisoformat(content["date"])
    return Followed(day, list(content["routes"]), findings, bool(content["answered"]))


def _finding(content: Mapping[str, str]) -> Finding:
    weight = Weight(content["weight"])
    return Finding(weight, content["rule"], content["place"], content["text"])


def _of_finding(finding: Finding) -> dict[str, str]:
    return {
        "weight": finding.weight.value,
        "rule": finding.rule,
        "place": finding.place,
        "text": finding.text,
    }
