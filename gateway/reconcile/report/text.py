"""The result of reconciling one date: a value, its JSON, and its text on the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.reconcile.findings import Finding, Weight

REPORT_PAGE: Final = "report.html"  # beside summary.json
CLEAN: Final = 0
BREACH: Final = 1
NO_ANSWER: Final = 2

# Counts of a route on the terminal, and of the totals; the gravest comes last.
COLUMNS: Final = (
    "received", "delivered", "delivered late", "refused", "dead-lettered", "in flight",
    "unexpected", "out of order", "altered", "duplicated", "lost in target", "missing",
)  # fmt: skip
_FATAL: Final = ("altered", "missing", "lost in target", "out of order")
_STRICT: Final = ("delivered late", "unexpected")  # violations with --strict only
_RARE: Final = (  # columns that are shown unless all their counts are 0
    "delivered late", "dead-lettered", "in flight", "unexpected", "out of order", "lost in target",
)  # fmt: skip
_ACCOUNTED: Final = ("refused", "dead-lettered", "in flight")  # classes without sample lines
_MAX_FINDINGS: Final = 10  # of one rule on the terminal; JSON has all

Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Report:
    """One reconciled date; each sequence of rows comes from the table of that name."""

    archive: str
    day: str
    findings: Sequence[Finding] = ()
    routes: Sequence[Row] = ()  # at most 10,000, the worst first; the table has all
    dead_letters: Sequence[Row] = ()
    samples: Sequence[Row] = ()
    gateways: Sequence[Row] = ()
    hours: Sequence[Row] = ()  # of the worst routes; the table has all
    whole_day: Sequence[Row] = ()  # by hour, for all routes
    names: Sequence[Row] = ()
    renamed: Sequence[Row] = ()
    totals: Row | None = None  # of all routes; None when `routes` has all
    proof: Row = field(default_factory=dict)  # minutes, minutes proven by digest, and their copies
    mode: str = "digest-first"
    strict: bool = False
    answered: bool = True  # the archive has data of this date
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds of each step

    def total(self, column: str) -> int:
        """Return the total of `column` over all routes."""
        if self.totals is not None:
            return _count(self.totals, column)
        return sum(_count(route, column) for route in self.routes)

    @property
    def status(self) -> int:
        """The exit status: 0 clean, 1 a guarantee was violated, 2 no answer."""
        if not self.answered:
            return NO_ANSWER
        return BREACH if self.breaches() else CLEAN

    def breaches(self) -> list[str]:
        """Return why the date is not clean; an empty list when it is."""
        named = (*_FATAL, *_STRICT) if self.strict else _FATAL
        counted = {name: self.total(name) for name in named}
        allowed = 0 if self.strict else self.total("marked")
        counted["duplicated"] = self.total("duplicated") - allowed
        reasons = [f"{count} {name}" for name, count in counted.items() if count]
        errors = sum(finding.weight is Weight.ERROR for finding in self.findings)
        return [*reasons, f"{errors} errors in the archive"] if errors else reasons

    @property
    def verdict(self) -> str:
        if not self.answered:
            return "no answer"
        return f"not clean: {', '.join(self.breaches())}" if self.breaches() else "clean"


def _count(row: Row, column: str) -> int:
    count = row[column]
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
        "proof": report.proof,
        "totals": {name: report.total(name) for name in (*COLUMNS, "marked", "redelivered")},
        "routes": report.routes,
        "gateways": report.gateways,
        "hours": report.hours,
        "whole_day": report.whole_day,
        "dead_letters": report.dead_letters,
        "names": report.names,
        "renamed": report.renamed,
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


def print_report(report: Report, console: Console) -> None:
    """Print the routes, the dead letters, the findings, and the totals as plain lines."""
    if report.routes:
        console.print(_route_table(report))
    if report.dead_letters:
        console.print(_dead_letter_table(report))
    for line in _finding_lines(report.findings):
        console.print(Text(line), soft_wrap=True)
    for row in report.samples:
        if row["class"] not in _ACCOUNTED:
            console.print(Text(_sample_line(row)), soft_wrap=True)
    console.print(Text(f"verdict: {report.verdict}"), soft_wrap=True)
    if report.answered:
        for name in COLUMNS:
            console.print(Text(f"{name} {report.total(name)}"))


def _route_table(report: Report) -> Table:
    names = [name for name in COLUMNS if name not in _RARE or report.total(name)]
    table = Table(
        title=f"{report.day}: deliveries by route and target",
        title_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("route", overflow="fold", min_width=6)
    table.add_column("target", overflow="fold", min_width=6)
    for name in names:
        table.add_column("dead" if name == "dead-lettered" else name, justify="right", no_wrap=True)
    for route in report.routes:
        numbers = [_number(name, _count(route, name)) for name in names]
        table.add_row(Text(str(route["route"]) or "-"), Text(str(route["target"]) or "-"), *numbers)
    return table


def _number(name: str, count: int) -> Text:
    bad = name in (*_FATAL, "duplicated", "unexpected") and count
    return Text(f"{count:,}", style="bold red" if bad else "")


def _dead_letter_table(report: Report) -> Table:
    table = Table(title="dead letters", title_justify="left", box=SIMPLE_HEAD)
    for name in ("route", "target", "rule", "copies", "reason"):
        table.add_column(name, justify="right" if name == "copies" else "left", overflow="fold")
    for row in report.dead_letters:
        table.add_row(
            *[
                Text(str(row[name] or "-"))
                for name in ("route", "target", "rule", "copies", "reason")
            ]
        )
    return table


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    lines: list[str] = []
    for rule, found in by_rule.items():
        lines += map(str, found[:_MAX_FINDINGS])
        if len(found) > _MAX_FINDINGS:
            lines.append(f"... and {len(found) - _MAX_FINDINGS} more [{rule}]; --json has all")
    return lines


def _sample_line(row: Row) -> str:
    return f"{row['class']}: {row['id']} {row['route']} -> {row['target']} {row['name']!r}"
