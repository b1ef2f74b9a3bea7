"""The charts of a night: rate, latency, loss and duplicates by hour, for all or for one way.

A *way* is a route to one target. Rows of hours go in, figures come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from gateway.reconcile.report.charts import HOURS, LARGE, Frame, Series, Values, bars, lines
from gateway.reconcile.report.markup import (
    Cell,
    Column,
    Html,
    amount,
    duration,
    element,
    join,
    table,
)
from gateway.reconcile.report.summary import Row, Rows, count, number, word

Day: TypeAlias = Mapping[int, Row]  # hour, 0 to 23, -> what it came to
_STYLES: Final = ("calm thin", "calm dashed", "calm thick")
_TABLED: Final = (
    "received", "delivered", "delivered late", "refused", "dead-lettered", "out of order",
    "altered", "duplicated", "lost in target", "missing",
)  # fmt: skip


def day_of(rows: Rows) -> Day:
    """The rows of one way, or of all, by hour; a time that is none is left out."""
    found: dict[int, Row] = {}
    for row in rows:
        try:
            found[datetime.fromisoformat(word(row, "hour")).hour] = row
        except ValueError:
            continue
    return found


def percentiles(rows: Rows) -> list[str]:
    """The percentiles that were computed, as their columns are called: p50, p99."""
    names = {name for row in rows for name in row if name[:1] == "p" and name[1:].isdigit()}
    return sorted(names, key=lambda name: int(name[1:]))


def figures(day: Day, of: str, frame: Frame) -> list[Html]:
    """Four figures: rate, latency, loss, duplicates."""
    return [
        _rate(day, of, frame),
        _latency(day, of, frame),
        _counted(day, of, frame, "loss", {"missing": "bad", "lost in target": "bad pale"}),
        _counted(day, of, frame, "duplicates", {"unmarked": "bad", "marked": "warn"}),
    ]


def _rate(day: Day, of: str, frame: Frame) -> Html:
    series = Series("messages/s", "calm", _column(day, "rate"))
    peak = max((value or 0 for value in series.values), default=0)
    said = f"{amount(peak)}/s in the busiest hour" if peak else "no traffic"
    alternative = f"Messages a second by hour, {of}: {said}"
    return _figure("rate", said, bars(alternative, [series], frame, amount))


def _latency(day: Day, of: str, frame: Frame) -> Html:
    whole = [
        Series(name, css, _column(day, name))
        for name, css in zip(percentiles(list(day.values())), _STYLES, strict=False)
    ]
    series = [each for each in whole if any(value is not None for value in each.values)]
    said = _times(day, series)
    alternative = f"Latency percentiles by hour, {of}: {said}"
    labels = [(each.label, each.css) for each in series] if frame.labelled else []
    chart = lines(alternative, series, frame, duration)
    return _figure("latency", said, chart, labels, "" if series else "bare")


def _times(day: Day, series: Sequence[Series]) -> str:
    """The highest of each percentile, and of how many copies where that is not all of them."""
    timed, ended = _coverage(day)
    if not series:
        return "not in the digests; --full measures it" if ended else "nothing delivered"
    highest = [(each.label, max(value or 0 for value in each.values)) for each in series]
    said = ", ".join(f"{label} ≤ {duration(most)}" for label, most in highest)
    return said if timed >= ended else f"{said} ({amount(timed)} of {amount(ended)} measured)"


def _coverage(day: Day) -> tuple[int, int]:
    """How many copies the percentiles are of, and how many were delivered."""
    ended = (
        "delivered",
        "delivered late",
        "duplicated",
        "altered",
        "out of order",
        "lost in target",
    )
    return (
        sum(count(row, "timed") for row in day.values()),
        sum(count(row, name) for row in day.values() for name in ended),
    )


def _counted(day: Day, of: str, frame: Frame, title: str, parts: Mapping[str, str]) -> Html:
    """Bars of classes; those that are 0 all day are left out."""
    whole = [Series(name, css, _column(day, name)) for name, css in parts.items()]
    series = [each for each in whole if any(each.values)]
    sums = [f"{amount(sum(value or 0 for value in each.values))} {each.label}" for each in series]
    said = ", ".join(sums) or "none"
    alternative = f"{title.capitalize()} by hour, {of}: {said}"
    labels = [(each.label, each.css) for each in series] if frame.labelled else []
    chart = bars(alternative, series, frame, amount)
    return _figure(title, said, chart, labels, "" if series else "bare")


def _column(day: Day, name: str) -> Values:
    if name == "unmarked":
        return [_unmarked(day[hour]) if hour in day else None for hour in range(HOURS)]
    return [number(day[hour], name) if hour in day else None for hour in range(HOURS)]


def _unmarked(row: Row) -> int:
    return count(row, "duplicated") - count(row, "marked")


def _figure(
    title: str, said: str, chart: Html, labels: Sequence[tuple[str, str]] = (), css: str = ""
) -> Html:
    caption = element("figcaption", element("b", title), " ", element("span", said, class_="quiet"))
    keys = [element("span", label, class_=f"key {style}") for label, style in labels]
    legend = element("p", *keys, class_="legend", aria_hidden="true") if keys else Html()
    return element("figure", caption, chart, legend, class_=css)


def hour_table(day: Day) -> Html:
    """The numbers of the charts, for those who do not see them or want to copy them."""
    names = [*percentiles(list(day.values())), "slowest"]
    heads = [Column("hour (UTC)"), Column("messages/s", number=True)]
    heads += [Column(name, number=True) for name in (*_TABLED, *names)]
    rows = []
    for hour, row in sorted(day.items()):
        cells = [Cell(f"{hour:02}:00"), Cell(amount(number(row, "rate") or 0))]
        cells += [_quiet(count(row, name)) for name in _TABLED]
        times = [number(row, name) for name in names]
        cells += [Cell("-", "none") if each is None else Cell(duration(each)) for each in times]
        rows.append(cells)
    made = table("Numbers by hour", heads, rows)
    return element("details", element("summary", "The same as numbers"), made)


def _quiet(value: int) -> Cell:
    return Cell(amount(value), "" if value else "none")


def large(day: Day) -> Html:
    charts = figures(day, "all routes", LARGE)
    return join([element("div", *charts, class_="charts"), hour_table(day)])
