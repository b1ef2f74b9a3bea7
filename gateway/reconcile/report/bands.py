"""Intervals of the day behind the values of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.reconcile.report.charts import Chart, SvgPath

MIN_BAND: Final = 2  # pixels; a narrower one is a line


@dataclass(frozen=True, slots=True)
class Band:
    """An interval of the day that is drawn behind the values. Units: hours."""

    css: str
    begin: float
    width: float
    outages: int = 1  # in the interval


def with_bands(chart: Chart, bands: Sequence[Band]) -> Chart:
    """Draw the bands behind the values."""
    frame = chart.frame
    data: dict[str, str] = {}
    for each in bands:
        left, right = frame.x(each.begin), frame.x(each.begin + each.width)
        back = f"H{right:.1f}V{frame.floor}z" if right - left >= MIN_BAND else ""
        path = f"M{left:.1f} {frame.floor}V4{back}"
        data[each.css] = data.get(each.css, "") + path
    paths = [SvgPath(f"band {css}", path) for css, path in data.items()]
    return replace(chart, paths=[*paths, *chart.paths])
