"""Charts of a day's 24 hours as inline SVG: stacked bars, and lines over a logarithmic scale.

Numbers go in, markup comes out. Colours are classes of the style sheet, and no chart tells its
story by colour alone: series differ in dash or shade, and every chart has a text alternative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.reconcile.report.markup import Html, element, empty

HOURS: Final = 24
Values: TypeAlias = Sequence[float | None]
Unit: TypeAlias = Callable[[float], str]

_STEPS: Final = (1, 2, 4, 6, 8, 10)  # a scale ends on one of these, so that its half is short too
_EPSILON: Final = 1e-9
_DECADES: Final = 5  # powers of ten with a line of their own


@dataclass(frozen=True, slots=True)
class Series:
    """One value an hour, None where nothing is known; `css` is how it is drawn."""

    label: str
    css: str
    values: Values


@dataclass(frozen=True, slots=True)
class Frame:
    """The size of a chart and its margins, in pixels; a small one has no words in it."""

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
        """The height of a share of the scale, 0 to 1, measured from the top."""
        return self.floor - share * (self.floor - 8)


LARGE: Final = Frame(300, 150, left=44, bottom=20, labelled=True)
SMALL: Final = Frame(180, 60, left=2, bottom=4, labelled=False)


def bars(alternative: str, series: Sequence[Series], frame: Frame, unit: Unit) -> Html:
    """Stacked bars, the first series at the bottom; no bar where the value is 0 or unknown."""
    sums = [sum(each.values[hour] or 0 for each in series) for hour in range(HOURS)]
    most = max(sums)
    top = _top(most)
    ticks = [(0.0, "0")]
    if most:
        halved = top > 1 or most < 1  # half a message is no tick
        ticks += [(0.5, unit(top / 2)), (1.0, unit(top))] if halved else [(1.0, unit(top))]
    base = [0.0] * HOURS
    drawn: list[Html] = []
    for each in series:
        path = "".join(_bar(frame, hour, base, each.values[hour], top) for hour in range(HOURS))
        if path:
            drawn.append(empty("path", class_=each.css, d=path))
    return _svg(alternative, frame, ticks, [*drawn, *_hints(frame, series, unit)])


def _bar(frame: Frame, hour: int, base: list[float], value: float | None, top: float) -> str:
    """One bar on what stands there already, which it is added to; never too thin to be seen."""
    if not value:
        return ""
    low = frame.y(base[hour] / top)
    base[hour] += value
    high = min(frame.y(base[hour] / top), low - 2)
    width = frame.x(1) - frame.x(0) - 1
    return f"M{frame.x(hour) + 0.5:.1f} {low:.1f}h{width:.1f}V{high:.1f}h-{width:.1f}z"


def lines(alternative: str, series: Sequence[Series], frame: Frame, unit: Unit) -> Html:
    """Lines over a logarithmic scale, with a gap where nothing is known."""
    known = [max(value, 1) for each in series for value in each.values if value is not None]
    if not known:
        return _svg(alternative, frame, [(0.0, "")], [])
    least = math.floor(math.log10(min(known)))
    most = max(math.ceil(math.log10(max(known))), least + 1)
    step = math.ceil((most - least) / _DECADES)
    ticks = [
        ((power - least) / (most - least), unit(10.0**power))
        for power in range(least, most + 1, step)
    ]
    drawn = []
    for each in series:
        shares = [
            None if value is None else (math.log10(max(value, 1)) - least) / (most - least)
            for value in each.values
        ]
        drawn.append(empty("path", class_=f"line {each.css}", d=_line(frame, shares)))
    return _svg(alternative, frame, ticks, [*drawn, *_hints(frame, series, unit)])


def _line(frame: Frame, shares: Values) -> str:
    """A path through the middles of the hours; an hour between two gaps is a dot."""
    path, drawing = "", False
    for hour, share in enumerate(shares):
        if share is None:
            drawing = False
            continue
        at = f"{frame.x(hour + 0.5):.1f} {frame.y(share):.1f}"
        path += f"L{at}" if drawing else f"M{at}h.1"
        drawing = True
    return path


def _hints(frame: Frame, series: Sequence[Series], unit: Unit) -> list[Html]:
    """What a pointer over an hour shows, in charts that are large enough to point at."""
    if not frame.labelled:
        return []
    hints = []
    for hour in range(HOURS):
        known = [(each.label, each.values[hour]) for each in series]
        words = [f"{label} {unit(value)}" for label, value in known if value is not None]
        if words:
            title = element("title", f"{hour:02}:00 {', '.join(words)}")
            place = {"x": f"{frame.x(hour):.1f}", "y": "8"}
            size = {"width": f"{frame.x(1) - frame.x(0):.1f}", "height": str(frame.floor - 8)}
            hints.append(element("rect", title, class_="hint", **place, **size))
    return hints


def _svg(
    alternative: str, frame: Frame, ticks: Sequence[tuple[float, str]], drawn: Sequence[Html]
) -> Html:
    scale = _scale(frame, ticks) if frame.labelled else [_rule(frame, 0)]
    return element(
        "svg",
        *scale,
        *drawn,
        viewBox=f"0 0 {frame.width} {frame.height}",
        role="img",
        aria_label=alternative,
    )


def _scale(frame: Frame, ticks: Sequence[tuple[float, str]]) -> list[Html]:
    """Rules with their values at the left, and the hours below."""
    parts = []
    for share, label in ticks:
        at = {"x": str(frame.left - 5), "y": f"{frame.y(share) + 3.5:.1f}"}
        parts += [_rule(frame, share), element("text", label, text_anchor="end", **at)]
    for hour in range(0, HOURS + 1, 6):
        at = {"x": f"{frame.x(hour):.1f}", "y": str(frame.height - 5)}
        parts.append(element("text", f"{hour:02}", text_anchor="middle", **at))
    return parts


def _rule(frame: Frame, share: float) -> Html:
    return empty("path", class_="rule", d=f"M{frame.left} {frame.y(share):.1f}H{frame.width - 8}")


def _top(value: float) -> float:
    """The end of a scale that holds `value`; 1 when there is none."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in _STEPS if step * power >= value * (1 - _EPSILON))
