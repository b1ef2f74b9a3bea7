"""The report on the terminal: routes, dead letters, gaps, findings, and the totals as plain lines.

A terminal gets tables of its width, and the worst routes only. Elsewhere the width is unlimited and
the routes are complete, for scripts and log files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import chain
from typing import Final, TypeAlias

from rich.console import Console
from rich.text import Text

from gateway.model.copy_class import (
    CLASSES,
    COLUMNS,
    HOP_CLASSES,
    REPEATS,
    UNPROVEN,
    CopyClass,
    Severity,
)
from gateway.model.cut_class import CUT_CLASSES, ON_WORD
from gateway.model.dead_letter_rule import advice_of
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.report.actions import actions
from gateway.night.reconcile.report.report import CLEAN, GAPS, Report
from gateway.night.reconcile.report.reported_gaps import ReportedOutage, outages, rule_of
from gateway.night.reconcile.report.rows import Row, Rows, count, hop_ends, word
from gateway.night.reconcile.report.run import Run
from gateway.night.reconcile.report.timelines import Turn, clock
from gateway.terminal.console import print_lines, unlimited_off_terminal
from gateway.terminal.table import Column, Table
from gateway.terminal.text import shortened, visible
from gateway.terminal.units import counted

_ALWAYS: Final = ("received", "expected", "delivered")  # the others are shown unless all are 0
_BETWEEN: Final = ("expected", *reversed(HOP_CLASSES))
_SAMPLED: Final = tuple(
    name for name, facts in CLASSES.items() if facts.severity in (Severity.BREACH, Severity.STRICT)
)
_STYLES: Final = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}  # of a state
_MAX_LINES: Final = 10  # findings or gaps of one rule; JSON has all
_MAX_ROUTES: Final = 50  # on a terminal
KeyedRow: TypeAlias = tuple[Sequence[Text], Row]  # with the texts of its keys


def print_report(run: Run, console: Console) -> None:
    """Print a run: its newest date, the headline, the other dates, and the counts of the newest.

    The counts are plain text with one number a line, `missing N` last.
    """
    unlimited_off_terminal(console)
    report = run.report
    if report.routes:
        title = f"{report.day}: deliveries by route and target"
        routes = [(_keys(row), row) for row in report.routes]
        _print(title, _counted("routes", ("route", "target"), COLUMNS, routes), console)
    if report.hops:
        title = "messages between gateways, by broker"
        hops = [([Text(shortened(each)) for each in hop_ends(row)], row) for row in report.hops]
        _print(title, _counted("hops", ("sender", "broker", "receiver"), _BETWEEN, hops), console)
    if report.cuts:
        _print_cuts(report.cuts, console)
    if report.dead_letters:
        _print_dead_letters(report.dead_letters, console)
    # A name must not begin a line.
    print_lines((Text(visible(line)) for line in _details(run)), console)
    verdict = Text(visible(run.headline), style=_style(run))
    dates = (Text(visible(line)) for line in _dates(run))
    print_lines([verdict, *dates, *map(Text, _counts(report))], console)


def _style(run: Run) -> str:
    if run.status == CLEAN and run.headline.startswith("Clean: "):
        return _STYLES["good"]
    return _STYLES["warn" if run.status in {None, CLEAN, GAPS} else "bad"]


def _details(run: Run) -> Iterator[str]:
    report = run.report
    day = report.day or date.min  # without a date there are no times
    turns = (("times of instances", True, _turn_line(each, day)) for each in report.holders)
    gaps = ((each.rule, each.counted, _gap_line(each, day)) for each in outages(report.gaps))
    findings = ((each.rule, True, str(each)) for each in (*report.findings, *run.findings))
    yield from _first_lines(chain(turns, gaps, findings))
    for row in (row for row in report.routes if row.get("unconfigured")):
        where = f"route {word(row, 'route')}, target {word(row, 'target')}"
        number = count(row, CopyClass.IN_FLIGHT.value)
        yield f"{where}: {number} in flight for a target that is no longer configured"
    if report.names_unchecked:
        yield f"names were not checked: {report.names_unchecked}"
    if report.hops_unchecked:
        yield f"gateways were not joined: {report.hops_unchecked}"
    yield from _samples(report)
    for step in (each for each in actions(report) if each.commands):
        yield f"next: {step.text}"
        yield from (f"    {each}" for each in step.commands)


def _dates(run: Run) -> Iterator[str]:
    """Yield the verdict of the run, and of each date where it is not the only one."""
    if run.verdict:
        yield f"verdict: {run.verdict}"
    for row in run.report.carried:
        if "before" in row and row.get("status_before", 0) is None:  # no night judged it before
            yield f"reconciled: {row['date']}, {row['verdict']}"
        elif "before" in row:
            flights = f"{count(row, 'before')} in flight -> {count(row, 'after')}"
            yield f"reconciled again: {row['date']}, {flights}, {row['verdict']}"
        else:
            yield f"judged by an earlier run: {row['date']}, {row['verdict']}"
    if run.has_report and (run.report.carried or run.errors):
        yield f"reconciled: {run.report.day}, {run.report.verdict}"


def _samples(report: Report) -> Iterator[str]:
    for row in report.samples:
        if row["class"] in _SAMPLED:
            yield f"{row['class']}: {row['id']} {row['route']} -> {row['target']} {row['name']!r}"
    for row in report.hop_samples:
        if row["class"] in {*_SAMPLED, UNPROVEN}:
            sender, _, receiver = hop_ends(row)
            ends = f"{sender} -> {receiver} {row['name']!r}"
            yield f"{row['class']} between gateways: {row['id']} {ends}"
    for row in report.cut_samples:
        if row["class"] == ON_WORD:
            yield f"{ON_WORD}: {row['id']} {row['route']} -> {row['target']} {row['name']!r}"


def _counts(report: Report) -> Iterator[str]:
    if report.answered and report.day is not None:
        *counts, last = COLUMNS
        for name in counts:
            yield f"{name} {report.total(name)}"
            if name == CopyClass.DUPLICATED.value:
                yield from (f"{text} {report.total(each)}" for each, text in REPEATS.items())
        if report.hops:
            yield from (f"{name} between gateways {report.between(name)}" for name in _BETWEEN)
        if report.cuts:
            yield from (f"{name} {report.cut(name)}" for name in reversed(CUT_CLASSES))
        yield f"source gaps {report.source_gaps}"
        if report.absences:
            yield f"absences {report.absences}"
        yield f"{last} {report.total(last)}"


def _counted(
    what: str, keys: Sequence[str], names: Sequence[str], rows: Sequence[KeyedRow]
) -> Table:
    """Return a table with the counts `names` of rows; it leaves out those that are all 0."""
    table = Table(
        *(Column(name, key=True) for name in keys),
        *(Column(name, right=True, always=name in _ALWAYS) for name in names),
        joint=" -> ",
        more=f"more {what}; --json has all",
    )
    for texts, row in rows:
        table.add_row(*texts, *(_number(name, count(row, name)) for name in names))
    return table


def _print(title: str, table: Table, console: Console) -> None:
    max_rows = _MAX_ROUTES if console.is_terminal else None
    lines = table.lines(console, max_rows=max_rows)
    print_lines([Text(title, style="italic"), *lines], console)


def _keys(row: Row) -> tuple[Text, Text]:
    route, target = (Text(shortened(str(row[name] or "-"))) for name in ("route", "target"))
    return route, target


def _number(name: str, value: int) -> Text:
    bad = value and name in CLASSES and CLASSES[name].severity is Severity.BREACH
    return Text(f"{value:,}", style="bold red" if bad else "")


def _print_dead_letters(rows: Rows, console: Console) -> None:
    """Print a line for each rule, and below it its reason and what to do."""
    console.print(Text("dead letters", style="italic"))
    for row in rows:
        route, target = _keys(row)
        line = f"{count(row, 'copies'):,} [{row['rule'] or '-'}] {route} -> {target}"
        console.print(Text(visible(line)), soft_wrap=True)  # a name must not begin a line
        console.print(Text(f"    {shortened(str(row['reason'] or '-'))}"), soft_wrap=True)
        console.print(Text(f"    to do: {advice_of(word(row, 'rule'))}"), soft_wrap=True)


def _print_cuts(rows: Rows, console: Console) -> None:
    """Print a line for each route, target, rule and class of what routes left out."""
    console.print(Text("cuts", style="italic"))
    shown = rows[:_MAX_ROUTES] if console.is_terminal else rows
    for row in shown:
        route, target = _keys(row)
        where = f"{shortened(word(row, 'gateway'))}/{route} -> {target}"
        line = f"{count(row, 'copies'):,} {row['class']} [{row['rule'] or '-'}] {where}"
        console.print(Text(visible(line)), soft_wrap=True)  # a name must not begin a line
    if len(shown) < len(rows):
        console.print(
            f"... and {counted(len(rows) - len(shown), 'more cut')}; --json has all", soft_wrap=True
        )


def _gap_line(outage: ReportedOutage, day: date) -> str:
    word = "source gap" if outage.counted else "absence"
    lost = "" if outage.lost is None else f", {counted(outage.lost, 'message')} lost"
    reason = shortened(outage.reason) or rule_of(outage.rule).meaning
    interval = f"{clock(outage.begin, day)} to {clock(outage.end, day)}"
    return f"{word}: {shortened(outage.label)}, {interval}{lost}: {reason} [{outage.rule}]"


def _turn_line(turn: Turn, day: date) -> str:
    interval = f"{clock(turn.begin, day)} to {clock(turn.end, day)}"
    return ", ".join(filter(None, (f"active: {turn.writer}", interval, turn.text)))


def _first_lines(found: Iterable[tuple[str, bool, str]]) -> Iterator[str]:
    """Yield the first lines of each rule: of those that count, and of the others."""
    groups = by_key(((rule, counts), line) for rule, counts, line in found)
    for (rule, _), lines in groups.items():
        yield from lines[:_MAX_LINES]
        if len(lines) > _MAX_LINES:
            yield f"... and {len(lines) - _MAX_LINES} more [{rule}]; --json has all"
