"""The figures of a day by hour, for all routes or for each.

They are messages, latency, copies that did not arrive, and duplicates.

The input is the rows of the table `hours`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from typing import Final, TypeAlias

from gateway.model.copy_class import CLASSES, CopyClass
from gateway.reconcile.report.chart_geometry import (
    HOURS,
    SMALL,
    Chart,
    ChartFrame,
    Series,
    Unit,
    bars,
    lines,
    with_bands,
)
from gateway.reconcile.report.formatting import amount, duration
from gateway.reconcile.report.gaps import bands, outages
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import Row, Rows, count, number, word, worst_first
from gateway.reconcile.report.timelines import TimelineBar

Day: TypeAlias = Mapping[int, Row]  # hour, 0 to 23, -> its counts
PERCENTILES: Final = {"p50": "calm thin", "p90": "calm dashed", "p99": "calm thick"}
Draw: TypeAlias = Callable[[Chart], Chart]
# The styles of the counted classes, by the title of their chart; it leaves out those that are 0.
_COUNTED: Final[Mapping[str, Mapping[str, str]]] = {
    "not arrived": {name: each.chart_style for name, each in CLASSES.items() if each.chart_style},
    "duplicates": {"unmarked": "bad", "marked": "warn"},
}
_TIMED: Final = tuple(name for name, facts in CLASSES.items() if facts.timed)
MAX_CHARTED: Final = 40  # routes with their own charts
MAX_UNFOLDED: Final = 3  # of them, when there are more


def day_of(rows: Rows) -> Day:
    """Return the rows of one route, or of all, by hour, with the duplicates that are not marked.

    Rows with an invalid time are left out.
    """
    found: dict[int, Row] = {}
    for row in rows:
        unmarked = count(row, CopyClass.DUPLICATED.value) - count(row, "marked")
        with suppress(ValueError):
            hour = datetime.fromisoformat(word(row, "hour")).hour
            found[hour] = {**row, "unmarked": unmarked}
    return found


def figures(
    day: Day,
    scope: str,
    frame: ChartFrame,
    gaps: Sequence[TimelineBar] = (),
    *,
    complete: bool = True,
) -> list[Chart]:
    """Return the four figures, each with the `gaps` behind it.

    They are not `complete` when the archive may lack rows.
    """

    def drawn(draw: Draw, unit: Unit, title: str, caption: str, series: Sequence[Series]) -> Chart:
        words = f"{title.capitalize()}{' percentiles' if draw is lines else ''} by hour, {scope}"
        chart = Chart(title, caption, f"{words}: {caption}", frame, series, unit)
        return with_bands(draw(chart), gaps)

    (received,) = _series(day, {"received": "calm"})
    peak = max((value or 0 for value in received.values), default=0)
    traffic = f"{amount(peak)} in the busiest hour" if peak else "no traffic"
    percentiles = _series(day, PERCENTILES)
    latencies = [each for each in percentiles if any(value is not None for value in each.values)]
    found = [
        drawn(bars, amount, "messages", traffic, [received]),
        drawn(lines, duration, "latency", _latency_caption(day, latencies), latencies),
    ]
    for title, styles in _COUNTED.items():
        series = [each for each in _series(day, styles) if any(each.values)]
        sums = [(each.label, sum(value or 0 for value in each.values)) for each in series]
        caption = ", ".join(f"{amount(total)} {label}" for label, total in sums)
        none = "none" if complete else "none known"
        found.append(drawn(bars, amount, title, caption or none, series))
    return found


def _latency_caption(day: Day, series: Sequence[Series]) -> str:
    """Return the highest of each percentile, and how many deliveries have a latency."""
    timed = sum(count(row, "timed") for row in day.values())
    delivered = sum(count(row, name) for row in day.values() for name in _TIMED)
    if not series:
        return "not measured" if delivered else "nothing delivered"
    highest = [(each.label, max(value or 0 for value in each.values)) for each in series]
    caption = ", ".join(f"{label} ≤ {duration(value)}" for label, value in highest)
    if timed >= delivered:
        return caption
    return f"{caption} ({amount(timed)} of {amount(delivered)} measured)"


def _series(day: Day, styles: Mapping[str, str]) -> list[Series]:
    rows = [day.get(hour, {}) for hour in range(HOURS)]
    return [Series(name, css, [number(row, name) for row in rows]) for name, css in styles.items()]


def charted_routes(report: Report, day: date) -> list[tuple[Row, list[Chart]]]:
    """Return the worst routes that have hours, each with its figures."""
    found = outages(report.gaps)
    hours: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in report.hours:
        hours[word(row, "route"), word(row, "target")].append(row)
    charted: list[tuple[Row, list[Chart]]] = []
    for row in worst_first(report.routes, strict=report.strict):
        route, target = word(row, "route"), word(row, "target")
        if (route, target) in hours and len(charted) < MAX_CHARTED:
            scope, gaps = f"{route or '-'} to {target or '-'}", bands(found, day, route)
            day_hours, complete = day_of(hours[route, target]), report.is_complete
            charted.append((row, figures(day_hours, scope, SMALL, gaps, complete=complete)))
    return charted
