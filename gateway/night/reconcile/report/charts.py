"""The charts of a day: messages, latency, copies that did not arrive, and duplicates, by hour.

The input is the rows of the table `hours`. Each figure is a `Chart` with bars or lines, which a
template draws as inline SVG. Series differ in dash or shade and not only in colour, and every
chart has a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import groupby
from typing import Final, TypeAlias

from gateway.model.copy_class import CLASSES, CopyClass
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.formatting import amount, duration
from gateway.night.reconcile.report.outage_bars import bands
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.reported_gaps import outages
from gateway.night.reconcile.report.rows import Row, Rows, count, number, word, worst_first
from gateway.night.reconcile.report.timelines import DAY_SECONDS, TimelineBar
from gateway.terminal.units import counted

HOURS: Final = 24
Unit: TypeAlias = Callable[[float], str]
Day: TypeAlias = Mapping[int, Row]  # hour, 0 to 23, -> its counts

_STEPS: Final = (1, 2, 4, 6, 8, 10)  # a scale ends on one of these, so that its half is short too
_EPSILON: Final = 1e-9
_MAX_DECADES: Final = 5  # labelled powers of ten
_MIN_BAND: Final = 2  # pixels; a narrower one is a line
PERCENTILES: Final = {"p50": "calm thin", "p90": "calm dashed", "p99": "calm thick"}
# The styles of the counted classes, by the title of their chart; it leaves out those that are 0.
_COUNTED: Final[Mapping[str, Mapping[str, str]]] = {
    "not arrived": {name: each.chart_style for name, each in CLASSES.items() if each.chart_style},
    "duplicates": {"unmarked": "bad", "marked": "warn"},
}
_TIMED: Final = tuple(name for name, facts in CLASSES.items() if facts.timed)
MAX_CHARTED: Final = 40  # routes with their own charts
MAX_UNFOLDED: Final = 3  # of them, when there are more


@dataclass(frozen=True, slots=True)
class Series:
    """One value an hour, None where it is unknown; `css` names its style."""

    label: str
    css: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """The size of a chart and its margins; a chart without labels has no axis texts.

    Units: pixels.
    """

    width: int
    height: int
    left: int
    bottom: int
    labelled: bool

    @property
    def floor(self) -> int:
        return self.height - self.bottom

    def x(self, hour: float) -> float:
        return self.left + hour * (self.width - self.left - 8) / HOURS

    def y(self, share: float) -> float:
        """Return the height of a share of the scale, 0 to 1, measured from the top."""
        return self.floor - share * (self.floor - 8)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its title, its caption and its text alternative; values are shown as `unit`s.

    `ticks` are the labels of the scale by their share of it, 0 to 1, and `paths` the `d` attributes
    of SVG paths by their styles.
    """

    title: str
    caption: str
    alternative: str
    frame: ChartFrame
    series: Sequence[Series]
    unit: Unit
    ticks: Mapping[float, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def hints(self) -> Mapping[int, str]:
        """The texts shown when the pointer is over an hour."""
        hints = {}
        for hour in range(HOURS):
            known = [(each.label, each.values[hour]) for each in self.series]
            words = [f"{label} {self.unit(value)}" for label, value in known if value is not None]
            if words:
                hints[hour] = f"{hour:02}:00 {', '.join(words)}"
        return hints

    @property
    def legend(self) -> Sequence[Series]:
        """The series to name below the chart: those of a labelled one, unless it has only one."""
        return self.series if self.frame.labelled and self.title != "messages" else ()


Draw: TypeAlias = Callable[[Chart], Chart]
LARGE: Final = ChartFrame(300, 150, left=44, bottom=20, labelled=True)
SMALL: Final = ChartFrame(180, 60, left=2, bottom=4, labelled=False)


def bars(chart: Chart) -> Chart:
    """Stack bars, the first series at the bottom; a value of 0 or None has no bar."""
    series, frame = chart.series, chart.frame
    highest = max(sum(each.values[hour] or 0 for each in series) for hour in range(HOURS))
    top = _top(highest)
    ticks = {0.0: "0"}
    if highest:
        if top > 1 or highest < 1:  # half a message is not a tick
            ticks[0.5] = chart.unit(top / 2)
        ticks[1.0] = chart.unit(top)
    base = [0.0] * HOURS
    paths = {
        each.css: "".join(_bar(frame, hour, base, each.values[hour], top) for hour in range(HOURS))
        for each in series
    }
    return replace(chart, ticks=ticks, paths=paths)


def _bar(frame: ChartFrame, hour: int, base: list[float], value: float | None, top: float) -> str:
    """Return a bar above `base` and add its value there; every bar is at least 2 pixels high."""
    if not value:
        return ""
    low = frame.y(base[hour] / top)
    base[hour] += value
    high = min(frame.y(base[hour] / top), low - 2)
    width = frame.x(1) - frame.x(0) - 1
    return f"M{frame.x(hour) + 0.5:.1f} {low:.1f}h{width:.1f}V{high:.1f}h-{width:.1f}z"


def lines(chart: Chart) -> Chart:
    """Draw lines over a logarithmic scale, with a gap where a value is None."""
    series, frame = chart.series, chart.frame
    known = [max(value, 1) for each in series for value in each.values if value is not None]
    if not known:
        return replace(chart, ticks={0.0: ""})
    lowest = math.floor(math.log10(min(known)))
    highest = max(math.ceil(math.log10(max(known))), lowest + 1)

    def share(value: float) -> float:
        return (math.log10(max(value, 1)) - lowest) / (highest - lowest)

    step = math.ceil((highest - lowest) / _MAX_DECADES)
    powers = (10.0**exponent for exponent in range(lowest, highest + 1, step))
    ticks = {share(power): chart.unit(power) for power in powers}
    paths: dict[str, str] = {}
    for each in series:
        points = [
            None if value is None else f"{frame.x(hour + 0.5):.1f} {frame.y(share(value)):.1f}"
            for hour, value in enumerate(each.values)
        ]
        runs = [[*filter(None, run)] for known, run in groupby(points, bool) if known]
        paths[f"line {each.css}"] = "".join(f"M{'L'.join(run)}" for run in runs)
        # A line alone would not show an hour between two gaps.
        paths[f"line dot {each.css}"] = "".join(f"M{run[0]}h0" for run in runs if len(run) == 1)
    return replace(chart, ticks=ticks, paths=paths)


def _top(value: float) -> float:
    """Return the end of a scale that holds `value`; 1 for the value 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _STEPS if step * power >= value * (1 - _EPSILON))


def with_bands(chart: Chart, bands: Sequence[TimelineBar]) -> Chart:
    """Draw the bands behind the values, and name their outages in the text alternative."""
    if not bands:
        return chart
    frame = chart.frame
    paths: dict[str, str] = {}
    for each in bands:
        ends = (each.begin, each.begin + each.width)
        left, right = (frame.x(end * HOURS / DAY_SECONDS) for end in ends)
        back = f"H{right:.1f}V{frame.floor}z" if right - left >= _MIN_BAND else ""
        css = f"band {each.css}"
        paths[css] = paths.get(css, "") + f"M{left:.1f} {frame.floor}V4{back}"
    numbers = {
        noun: sum(each.outages for each in bands if each.css == css)
        for css, noun in (("bad", "source gap"), ("calm", "absence"))
    }
    words = ", ".join(counted(number, noun) for noun, number in numbers.items() if number)
    alternative = f"{chart.alternative}; {words}"
    return replace(chart, alternative=alternative, paths={**paths, **chart.paths})


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
    day: Day, scope: str, frame: ChartFrame, gaps: Sequence[TimelineBar], *, complete: bool
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
    hours = by_key(((word(row, "route"), word(row, "target")), row) for row in report.hours)
    charted: list[tuple[Row, list[Chart]]] = []
    for row in worst_first(report.routes, strict=report.strict):
        route, target = word(row, "route"), word(row, "target")
        if (route, target) in hours and len(charted) < MAX_CHARTED:
            scope, gaps = f"{route or '-'} to {target or '-'}", bands(found, day, route)
            day_hours, complete = day_of(hours[route, target]), report.is_complete
            charted.append((row, figures(day_hours, scope, SMALL, gaps, complete=complete)))
    return charted
