"""The figures of a day by hour, for all routes or for each.

They are messages, latency, copies that did not arrive, and duplicates.

The input is the rows of the table `hours`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Final, TypeAlias

from gateway.model.copy_class import CLASSES, CopyClass
from gateway.reconcile.report.charts import (
    HOURS,
    SMALL,
    Band,
    Chart,
    ChartFrame,
    Series,
    Values,
    bars,
    lines,
    with_bands,
)
from gateway.reconcile.report.formatting import amount, duration
from gateway.reconcile.report.gaps import bands, outages
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import Row, Rows, count, number, word, worst_first

Day: TypeAlias = Mapping[int, Row]  # hour, 0 to 23, -> its counts
PERCENTILE_STYLES: Final = ("calm thin", "calm dashed", "calm thick")
_ABSENT_STYLES: Final = {
    name: facts.chart_style for name, facts in CLASSES.items() if facts.chart_style
}
_TIMED: Final = tuple(name for name, facts in CLASSES.items() if facts.timed)
MAX_CHARTED: Final = 40  # routes with their own charts
MAX_UNFOLDED: Final = 3  # of them, when there are more


def day_of(rows: Rows) -> Day:
    """Return the rows of one route, or of all, by hour; rows with an invalid time are left out."""
    found: dict[int, Row] = {}
    for row in rows:
        try:
            found[datetime.fromisoformat(word(row, "hour")).hour] = row
        except ValueError:
            continue
    return found


def percentiles(day: Day) -> list[str]:
    """Return the computed percentiles by the names of their columns: p50, p99."""
    names = {name for row in day.values() for name in row}
    found = [name for name in names if name[:1] == "p" and name[1:].isdigit()]
    return sorted(found, key=lambda name: int(name[1:]))


def figures(
    day: Day, scope: str, frame: ChartFrame, gaps: Sequence[Band] = (), *, complete: bool = True
) -> list[Chart]:
    """Return the four figures, each with the `gaps` behind it.

    They are not `complete` when the archive may lack rows.
    """
    none = "none" if complete else "none known"
    made = [
        _messages(day, scope, frame),
        _latency(day, scope, frame),
        _counts(day, frame, ("not arrived", scope, none), _ABSENT_STYLES),
        _counts(day, frame, ("duplicates", scope, none), {"unmarked": "bad", "marked": "warn"}),
    ]
    return [with_bands(each, gaps) for each in made]


def _messages(day: Day, scope: str, frame: ChartFrame) -> Chart:
    series = Series("received", "calm", _column(day, "received"))
    peak = max((value or 0 for value in series.values), default=0)
    caption = f"{amount(peak)} in the busiest hour" if peak else "no traffic"
    alternative = f"Messages by hour, {scope}: {caption}"
    return bars(Chart("messages", caption, alternative, frame, [series]), amount)


def _latency(day: Day, scope: str, frame: ChartFrame) -> Chart:
    columns = zip(percentiles(day), PERCENTILE_STYLES, strict=False)
    all_series = [Series(name, css, _column(day, name)) for name, css in columns]
    series = [each for each in all_series if any(value is not None for value in each.values)]
    caption = _latency_caption(day, series)
    alternative = f"Latency percentiles by hour, {scope}: {caption}"
    return lines(Chart("latency", caption, alternative, frame, series), duration)


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


def _counts(
    day: Day, frame: ChartFrame, words: tuple[str, str, str], styles: Mapping[str, str]
) -> Chart:
    """Return bars of classes; a class that is 0 in every hour is left out.

    `words` are the title, the scope and the caption without any count.
    """
    title, scope, none = words
    all_series = [Series(name, css, _column(day, name)) for name, css in styles.items()]
    series = [each for each in all_series if any(each.values)]
    sums = [f"{amount(sum(value or 0 for value in each.values))} {each.label}" for each in series]
    caption = ", ".join(sums) or none
    alternative = f"{title.capitalize()} by hour, {scope}: {caption}"
    return bars(Chart(title, caption, alternative, frame, series), amount)


def _column(day: Day, name: str) -> Values:
    if name == "unmarked":
        return [_unmarked(day[hour]) if hour in day else None for hour in range(HOURS)]
    return [number(day[hour], name) if hour in day else None for hour in range(HOURS)]


def _unmarked(row: Row) -> int:
    return count(row, CopyClass.DUPLICATED.value) - count(row, "marked")


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
