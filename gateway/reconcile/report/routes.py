"""The part of the report about routes: a table of them all, and small charts of the worst."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from gateway.reconcile.report.charts import SMALL
from gateway.reconcile.report.figures import day_of, figures
from gateway.reconcile.report.markup import Cell, Column, Html, amount, code, element, join, table
from gateway.reconcile.report.summary import Row, Rows, Summary, count, word
from gateway.reconcile.report.wording import KINDS, TOLD_OF, Harm, all_broken, harm_of, worst_first

ROUTES: Final = 2_000  # rows of the table
CHARTED: Final = 40  # routes with charts of their own
_TOLD: Final = frozenset({Harm.ACCOUNTED, Harm.STRICT, Harm.BREACH})


def counted(row: Row, *, strict: bool) -> Iterator[Cell]:
    """A cell for every class that is not plain delivery: quiet when 0, loud when it breaks."""
    for name in TOLD_OF:
        value = count(row, name)
        content = element("b", amount(value)) if value else Html("0")
        if name == "duplicated" and (marked := count(row, "marked")):
            content = join([content, element("small", f" {amount(marked)} marked")])
        yield Cell(content, harm_of(name, row, strict=strict).value if value else "none")


def route_table(summary: Summary) -> Html:
    """Every route to every target, the worst first, with a filter above a long list."""
    if not summary.routes:
        return Html()
    names = ("route", "target")
    heads = [Column(each) for each in names]
    heads += [Column(each, number=True) for each in ("received", "delivered", *TOLD_OF)]
    ordered = worst_first(summary.routes, strict=summary.strict)[:ROUTES]
    rows = [
        [
            *[Cell(code(word(row, name))) for name in names],
            *[Cell(amount(count(row, name))) for name in ("received", "delivered")],
            *counted(row, strict=summary.strict),
        ]
        for row in ordered
    ]
    note = "A message counts once for each target it was owed to. The worst are first."
    if len(summary.routes) > len(ordered):
        note += f" {len(ordered):,} of {len(summary.routes):,} are shown; the table routes has all."
    made = table("Routes", heads, rows, css="routes")
    return join([element("p", note, class_="quiet"), _filter(len(ordered)), made])


def _filter(rows: int) -> Html:
    """Shown by the script alone: without it there is nothing to filter with."""
    if rows <= 10:  # noqa: PLR2004  # they are seen at once
        return Html()
    label = element("label", "Filter ", Html('<input type="search" autocomplete="off">'))
    trouble = element("label", Html('<input type="checkbox">'), " only with trouble")
    shown = element("output", f"{rows} of {rows}")
    return Html(f'<div class="bar" id="filter" hidden>{label}{trouble}{shown}</div>')


def small_multiples(summary: Summary) -> Html:
    """Rate, latency, loss and duplicates of each of the worst ways, on scales of their own."""
    by_way: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in summary.hours:
        by_way[word(row, "route"), word(row, "target")].append(row)
    ordered = worst_first(summary.routes, strict=summary.strict)
    known = [row for row in ordered if (word(row, "route"), word(row, "target")) in by_way]
    chosen = known[:CHARTED]
    if not chosen:
        return Html()
    note = (
        "Every chart has a scale of its own, with its peak above; 24 hours from left to right, UTC."
    )
    if len(summary.routes) > len(chosen):
        note += (
            f" The worst {len(chosen)} of {len(summary.routes):,} routes; the table hours has all."
        )
    made = [
        _way(row, by_way[word(row, "route"), word(row, "target")], strict=summary.strict)
        for row in chosen
    ]
    return join([element("p", note, class_="quiet"), *made])


def _way(row: Row, hours: Rows, *, strict: bool) -> Html:
    route, target = word(row, "route") or "-", word(row, "target") or "-"
    bad = all_broken(row, strict=strict)
    title = [code(route), " → ", code(target), " "]
    if bad:
        title.append(element("span", f"✗ {amount(bad)}", class_="mark bad"))
    charts = figures(day_of(hours), f"{route} to {target}", SMALL)
    return element("article", element("h3", *title), element("div", *charts, class_="small"))


def gateway_table(summary: Summary) -> Html:
    """The same counts by gateway."""
    heads = [Column("gateway"), Column("received", number=True), Column("delivered", number=True)]
    heads += [Column(each, number=True) for each in TOLD_OF]
    rows = [
        [
            Cell(code(word(row, "gateway"))),
            *[Cell(amount(count(row, name))) for name in ("received", "delivered")],
            *counted(row, strict=summary.strict),
        ]
        for row in summary.gateways[:ROUTES]
    ]
    return table("Gateways", heads, rows) if rows else Html()


def classes_told(rows: Rows) -> list[str]:
    """The classes that any of `rows` has copies in, the gravest first."""
    return [
        name
        for name in KINDS
        if KINDS[name].harm in _TOLD and any(count(row, name) for row in rows)
    ]
