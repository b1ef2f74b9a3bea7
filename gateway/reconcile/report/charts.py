"""Geometry of the charts of 24 hours: stacked bars, lines over a logarithmic scale, and intervals.

`bars` and `lines` add it to a `Chart`, which a template draws as inline SVG. Series differ in dash
or shade and not in colour alone, and every chart has a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from gateway.reconcile.report.formatting import counted_as

HOURS: Final = 24
Values: TypeAlias = Sequence[float | None]
Unit: TypeAlias = Callable[[float], str]

_STEPS: Final = (1, 2, 4, 6, 8, 10)  # a scale ends on one of these, so that its half is short too
_EPSILON: Final = 1e-9
_MAX_DECADES: Final = 5  # labelled powers of ten
_MIN_BAND: Final = 2  # pixels; a narrower one is a line


@dataclass(frozen=True, slots=True)
class Series:
    """One value an hour, None where it is unknown; `css` names its style."""

    label: str
    css: str
    values: Values


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
    """A chart with its title, its caption and its text alternative.

    `ticks` are the labels of the scale by their share of it, 0 to 1; `paths` the `d` attributes of
    SVG paths by their styles; `hints` the texts shown when the pointer is over an hour.
    """

    title: str
    caption: str
    alternative: str
    frame: ChartFrame
    series: Sequence[Series]
    ticks: Mapping[float, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[int, str] = field(default_factory=dict)

    @property
    def legend(self) -> Sequence[Series]:
        """The series to name below the chart: those of a labelled one, unless it has only one."""
        return self.series if self.frame.labelled and self.title != "messages" else ()


@dataclass(frozen=True, slots=True)
class Band:
    """An interval of the day that is drawn behind the values. Units: hours."""

    css: str
    begin: float
    width: float
    outages: int = 1  # in the interval


LARGE: Final = ChartFrame(300, 150, left=44, bottom=20, labelled=True)
SMALL: Final = ChartFrame(180, 60, left=2, bottom=4, labelled=False)


def bars(chart: Chart, unit: Unit) -> Chart:
    """Stack bars, the first series at the bottom; a value of 0 or None has no bar."""
    series, frame = chart.series, chart.frame
    sums = [sum(each.values[hour] or 0 for each in series) for hour in range(HOURS)]
    highest = max(sums)
    top = _top(highest)
    ticks = {0.0: "0"}
    if highest:
        if top > 1 or highest < 1:  # half a message is no tick
            ticks[0.5] = unit(top / 2)
        ticks[1.0] = unit(top)
    base = [0.0] * HOURS
    paths = {
        each.css: "".join(_bar(frame, hour, base, each.values[hour], top) for hour in range(HOURS))
        for each in series
    }
    return _drawn(chart, ticks, paths, unit)


def _drawn(chart: Chart, ticks: Mapping[float, str], paths: Mapping[str, str], unit: Unit) -> Chart:
    paths = {css: data for css, data in paths.items() if data}
    return replace(chart, ticks=ticks, paths=paths, hints=_hints(chart.series, unit))


def _bar(frame: ChartFrame, hour: int, base: list[float], value: float | None, top: float) -> str:
    """Return a bar above `base` and add its value there; every bar is at least 2 pixels high."""
    if not value:
        return ""
    low = frame.y(base[hour] / top)
    base[hour] += value
    high = min(frame.y(base[hour] / top), low - 2)
    width = frame.x(1) - frame.x(0) - 1
    return f"M{frame.x(hour) + 0.5:.1f} {low:.1f}h{width:.1f}V{high:.1f}h-{width:.1f}z"


def lines(chart: Chart, unit: Unit) -> Chart:
    """Draw lines over a logarithmic scale, with a gap where a value is None."""
    series, frame = chart.series, chart.frame
    known = [max(value, 1) for each in series for value in each.values if value is not None]
    if not known:
        return replace(chart, ticks={0.0: ""})
    lowest = math.floor(math.log10(min(known)))
    highest = max(math.ceil(math.log10(max(known))), lowest + 1)
    step = math.ceil((highest - lowest) / _MAX_DECADES)
    ticks = {
        (power - lowest) / (highest - lowest): unit(10.0**power)
        for power in range(lowest, highest + 1, step)
    }
    paths: dict[str, str] = {}
    for each in series:
        shares = [
            None if value is None else (math.log10(max(value, 1)) - lowest) / (highest - lowest)
            for value in each.values
        ]
        paths[f"line {each.css}"] = _line(frame, shares)
        paths[f"line dot {each.css}"] = _dots(frame, shares)
    return _drawn(chart, ticks, paths, unit)


def _line(frame: ChartFrame, shares: Values) -> str:
    """Return a path through the middles of the hours, with a gap at None."""
    data, drawing = "", False
    for hour, share in enumerate(shares):
        if share is None:
            drawing = False
            continue
        data += f"{'L' if drawing else 'M'}{_point(frame, hour, share)}"
        drawing = True
    return data


def _dots(frame: ChartFrame, shares: Values) -> str:
    """Return a dot for each hour between two gaps: a line alone would not show it."""
    known = [None, *shares, None]
    return "".join(
        f"M{_point(frame, hour, share)}h0"
        for hour, share in enumerate(shares)
        if share is not None and known[hour] is None and known[hour + 2] is None
    )


def _point(frame: ChartFrame, hour: int, share: float) -> str:
    return f"{frame.x(hour + 0.5):.1f} {frame.y(share):.1f}"


def _hints(series: Sequence[Series], unit: Unit) -> dict[int, str]:
    hints = {}
    for hour in range(HOURS):
        known = [(each.label, each.values[hour]) for each in series]
        words = [f"{label} {unit(value)}" for label, value in known if value is not None]
        if words:
            hints[hour] = f"{hour:02}:00 {', '.join(words)}"
    return hints


def _top(value: float) -> float:
    """Return the end of a scale that holds `value`; 1 for the value 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _STEPS if step * power >= value * (1 - _EPSILON))


def with_bands(chart: Chart, bands: Sequence[Band]) -> Chart:
    """Draw the bands behind the values, and name their outages in the text alternative."""
    if not bands:
        return chart
    frame = chart.frame
    paths: dict[str, str] = {}
    for each in bands:
        left, right = frame.x(each.begin), frame.x(each.begin + each.width)
        back = f"H{right:.1f}V{frame.floor}z" if right - left >= _MIN_BAND else ""
        css = f"band {each.css}"
        paths[css] = paths.get(css, "") + f"M{left:.1f} {frame.floor}V4{back}"
    outages = counted_as(sum(each.outages for each in bands), "source gap")
    alternative = f"{chart.alternative}; {outages}"
    return replace(chart, alternative=alternative, paths={**paths, **chart.paths})
