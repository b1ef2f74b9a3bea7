"""The result of reconciling one date: a value with its verdict, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, TypeAlias

from gateway.archive.findings import Finding, Weight
from gateway.reconcile.report.formatting import counted_as
from gateway.reconcile.report.gaps import source_gaps

REPORT_PAGE: Final = "report.html"  # beside summary.json
CLEAN: Final = 0
BREACH: Final = 1
NO_ANSWER: Final = 2
GAPS: Final = 3  # clean for what was received, and a source may have missed messages

# Counts of a route on the terminal, and of the totals; the gravest comes last.
COLUMNS: Final = (
    "received", "delivered", "delivered late", "refused", "dead-lettered", "in flight",
    "unexpected", "out of order", "altered", "duplicated", "lost in target", "recovered",
    "missing",
)  # fmt: skip
FATAL: Final = ("altered", "missing", "lost in target", "out of order", "unexpected")
_STRICT: Final = ("delivered late",)  # violations with --strict only

Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Report:
    """One reconciled date; each sequence of rows comes from the table of that name."""

    archive: str
    day: str
    findings: Sequence[Finding] = ()
    # At most 10,000, the worst first; the table has all. Beside the counts, a route may have
    # `taps_needed`: why `altered` needs a tap there, or "", and `payloads_archived`: a boolean.
    routes: Sequence[Row] = ()
    dead_letters: Sequence[Row] = ()
    samples: Sequence[Row] = ()
    gateways: Sequence[Row] = ()
    hours: Sequence[Row] = ()  # of the worst routes; the table has all
    whole_day: Sequence[Row] = ()  # by hour, for all routes
    names: Sequence[Row] = ()
    renamed: Sequence[Row] = ()
    names_unchecked: str = ""  # why the names of some copies were not checked
    # One row per route and gap: route, endpoint, gateway, rule, begin, end, reason, lost (None
    # when unknown), and `kept` when the broker kept the session, so that the gap is not counted.
    gaps: Sequence[Row] = ()
    # Earlier dates that this run reconciled again: date, before and after (copies in flight),
    # status_before, status and verdict.
    carried: Sequence[Row] = ()
    totals: Row | None = None  # of all routes; None when `routes` has all
    # Copies proven by sets (`copies`) and compared one by one (`compared`), the number of set
    # files (`sets`) and of seals (`seals`), and whether a key signed the seals (`keyed`).
    proof: Row = field(default_factory=dict)
    mode: str = "sets"  # or "full"
    strict: bool = False
    accept_gaps: bool = False
    answered: bool = True  # the archive has data of this date
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds of each step

    def total(self, column: str) -> int:
        """Return the total of `column` over all routes."""
        if self.totals is not None:
            return count_of(self.totals, column)
        return sum(count_of(route, column) for route in self.routes)

    @property
    def source_gaps(self) -> int:
        """The gaps in which a source may have missed messages."""
        return source_gaps(self.gaps)

    @property
    def status(self) -> int:
        """The exit status: CLEAN, BREACH, NO_ANSWER or GAPS."""
        if not self.answered:
            return NO_ANSWER
        if self.breaches():
            return BREACH
        return GAPS if self.source_gaps and not self.accept_gaps else CLEAN

    @property
    def exit_status(self) -> int:
        """The worst status of all dates of the run: BREACH, NO_ANSWER, GAPS, CLEAN."""
        found = {self.status, *(row.get("status") for row in self.carried)}
        return next((each for each in (BREACH, NO_ANSWER, GAPS) if each in found), CLEAN)

    def breaches(self) -> list[str]:
        """Return why the date is not clean; an empty list when it is."""
        named = (*FATAL, *_STRICT) if self.strict else FATAL
        counted = {name: self.total(name) for name in named}
        allowed = 0 if self.strict else self.total("marked")
        counted["duplicated"] = self.total("duplicated") - allowed
        reasons = [f"{count} {name}" for name, count in counted.items() if count]
        errors = sum(finding.weight is Weight.ERROR for finding in self.findings)
        return [*reasons, f"{counted_as(errors, 'error')} in the archive"] if errors else reasons

    @property
    def verdict(self) -> str:
        if not self.answered:
            return "no answer"
        if reasons := self.breaches():
            return f"not clean: {', '.join(reasons)}"
        if gaps := self.source_gaps:
            return f"clean for what was received, {counted_as(gaps, 'source gap')}"
        return "clean"


def became_breach(carried: Row) -> bool:
    """Return whether a date is not clean now that it was reconciled again, and was not before."""
    return carried.get("status") == BREACH and carried.get("status_before") != BREACH


def count_of(row: Row, column: str) -> int:
    """Return the count in a column; 0 when it is missing."""
    count = row.get(column)
    return count if isinstance(count, int) else 0


def to_json(report: Report) -> str:
    """Return the report as JSON; times are ISO 8601 in UTC."""
    content = {
        "archive": report.archive,
        "date": report.day,
        "verdict": report.verdict,
        "status": report.status,
        "mode": report.mode,
        "strict": report.strict,
        "accept_gaps": report.accept_gaps,
        "proof": report.proof,
        "totals": {name: report.total(name) for name in (*COLUMNS, "marked", "redelivered")},
        "recovered": report.total("recovered"),
        "source_gaps": report.source_gaps,
        "gaps": report.gaps,
        "carried": report.carried,
        "routes": report.routes,
        "gateways": report.gateways,
        "hours": report.hours,
        "whole_day": report.whole_day,
        "dead_letters": report.dead_letters,
        "names": report.names,
        "renamed": report.renamed,
        "names_unchecked": report.names_unchecked,
        "samples": report.samples,
        "findings": [
            {
                "weight": finding.weight.value,
                "rule": finding.rule,
                "place": finding.place,
                "text": finding.text,
            }
            for finding in report.findings
        ],
        "seconds": {name: round(seconds, 3) for name, seconds in report.timings.items()},
    }
    return json.dumps(content, indent=2, default=_text) + "\n"


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
