"""The report on the terminal: routes, dead letters, gaps, findings, and the totals as plain lines.

A terminal gets tables of its width, and the worst routes only. Elsewhere the width is unlimited and
the routes are complete, for scripts and log files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from gateway.archive.findings import Finding
from gateway.reconcile.report.formatting import shortened
from gateway.reconcile.report.gaps import Outage, clock, outages, rule_of
from gateway.reconcile.report.text import COLUMNS, FATAL, Report, Row, became_breach, count_of

_ALWAYS: Final = ("received", "delivered")  # the other counts are shown unless all are 0
_ACCOUNTED: Final = ("refused", "dead-lettered", "in flight", "recovered")  # without sample lines
_MAX_LINES: Final = 10  # findings or gaps of one rule; JSON has all
_MAX_ROUTES: Final = 50  # on a terminal
_GAP: Final = 2  # columns between two cells
_KEYS: Final = 2  # columns: route and target
_INDENT: Final = "    "
_UNLIMITED: Final = 100_000  # columns


def print_report(report: Report, console: Console) -> None:
    """Print the report; its last lines are plain text with one number each, `missing N` last."""
    if not console.is_terminal:
        console.width = _UNLIMITED
    if report.routes:
        _print_routes(report, console)
    if report.dead_letters:
        _print_dead_letters(report.dead_letters, console)
    for line in _lines(report):
        console.print(Text(line), soft_wrap=True)


def _lines(report: Report) -> Iterator[str]:
    if report.gaps:
        yield from _gap_lines(outages(report.gaps), date.fromisoformat(report.day))
    yield from _finding_lines(report.findings)
    if report.names_unchecked:
        yield f"names were not checked: {report.names_unchecked}"
    for row in report.samples:
        if row["class"] not in _ACCOUNTED:
            yield f"{row['class']}: {row['id']} {row['route']} -> {row['target']} {row['name']!r}"
    for row in report.carried:
        verdict = f", {row.get('verdict')}" if became_breach(row) else ""
        flights = f"{count_of(row, 'before')} in flight -> {count_of(row, 'after')}"
        yield f"reconciled again: {row['date']}, {flights}{verdict}"
    yield f"verdict: {report.verdict}"
    if report.answered:
        *counts, last = COLUMNS
        yield from (f"{name} {report.total(name)}" for name in counts)
        yield f"source gaps {report.source_gaps}"
        yield f"{last} {report.total(last)}"


def _print_routes(report: Report, console: Console) -> None:
    """Print a table when it fits the width; otherwise a block of lines for each route."""
    routes = report.routes[:_MAX_ROUTES] if console.is_terminal else report.routes
    names = [name for name in COLUMNS if name in _ALWAYS or report.total(name)]
    title = f"{report.day}: deliveries by route and target"
    console.print(Text(title, style="italic"), soft_wrap=True)
    table = _table(routes, names)
    width = sum((column.width or 0) + _GAP for column in table.columns) - _GAP
    if width <= console.width:
        console.print(table)
    else:
        for row in routes:
            _print_block(row, names, console)
    if len(routes) < len(report.routes):
        console.print(f"... and {len(report.routes) - len(routes):,} more routes; --json has all")


def _table(routes: Sequence[Row], names: Sequence[str]) -> Table:
    """Return the table of routes; each column has the width at which no cell is cut."""
    cells = [
        [*_keys(row), *(_number(name, count_of(row, name)) for name in names)] for row in routes
    ]
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for place, head in enumerate(["route", "target", *map(_head, names)]):
        words = map(len, head.split())
        width = max(*words, *(row[place].cell_len for row in cells))
        justify: JustifyMethod = "left" if place < _KEYS else "right"
        table.add_column("\n".join(head.split()), width=width, justify=justify)
    for row in cells:
        table.add_row(*row)
    return table


def _print_block(row: Row, names: Sequence[str], console: Console) -> None:
    """Print route and target, then the counts that are not 0."""
    route, target = _keys(row)
    line = Text.assemble(route, " -> ", target)
    if line.cell_len > console.width:
        line = Text.assemble(route, "\n  -> ", target)
    console.print(line, overflow="fold")
    counts = [
        Text.assemble(f"{_head(name)} ", _number(name, count))
        for name in names
        if (count := count_of(row, name)) or name in _ALWAYS
    ]
    for indented in _wrapped(counts, console.width - len(_INDENT)):
        console.print(Text.assemble(_INDENT, indented), soft_wrap=True)


def _wrapped(parts: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines of parts, none of them split, with two spaces between parts."""
    line = Text()
    for part in parts:
        if line and line.cell_len + 2 + part.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, "  ", part) if line else part
    if line:
        yield line


def _keys(row: Row) -> tuple[Text, Text]:
    route, target = (Text(shortened(str(row[name] or "-"))) for name in ("route", "target"))
    return route, target


def _head(name: str) -> str:
    return "dead" if name == "dead-lettered" else name


def _number(name: str, count: int) -> Text:
    bad = name in (*FATAL, "duplicated") and count
    return Text(f"{count:,}", style="bold red" if bad else "")


def _print_dead_letters(rows: Sequence[Row], console: Console) -> None:
    """Print a line for each rule, and below it its reason."""
    console.print(Text("dead letters", style="italic"))
    for row in rows:
        route, target = _keys(row)
        line = f"{count_of(row, 'copies'):,} [{row['rule'] or '-'}] {route} -> {target}"
        console.print(Text(line), soft_wrap=True)
        console.print(Text(f"{_INDENT}{shortened(str(row['reason'] or '-'))}"), soft_wrap=True)


def _gap_lines(found: Sequence[Outage], day: date) -> Iterator[str]:
    by_rule: dict[tuple[str, bool], list[Outage]] = {}
    for outage in found:
        by_rule.setdefault((outage.rule, outage.counted), []).append(outage)
    for (rule, _), group in by_rule.items():
        yield from (_gap_line(outage, day) for outage in group[:_MAX_LINES])
        if len(group) > _MAX_LINES:
            yield f"... and {len(group) - _MAX_LINES} more [{rule}]; --json has all"


def _gap_line(outage: Outage, day: date) -> str:
    word = "source gap" if outage.counted else "source away"
    lost = "" if outage.lost is None else f", {outage.lost:,} messages lost"
    reason = shortened(outage.reason) or rule_of(outage.rule).meaning
    interval = f"{clock(outage.begin, day)} to {clock(outage.end, day)}"
    return f"{word}: {shortened(outage.lane)}, {interval}{lost}: {reason} [{outage.rule}]"


def _finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    for rule, found in by_rule.items():
        yield from map(str, found[:_MAX_LINES])
        if len(found) > _MAX_LINES:
            yield f"... and {len(found) - _MAX_LINES} more [{rule}]; --json has all"
