"""The gaps of sources over the day: a lane for each source, with a bar for each outage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from gateway.reconcile.report.bands import Band
from gateway.reconcile.report.gaps import Outage, outages
from gateway.reconcile.report.summary import Summary

MAX_LANES: Final = 40
DAY_SECONDS: Final = 86_400
HOUR_SECONDS: Final = 3_600
_LEAST_WIDTH: Final = 240  # seconds; a shorter outage is drawn as wide as this


@dataclass(frozen=True, slots=True)
class LaneBar:
    """An outage within the day, or its part of the day.

    Units: seconds after midnight.
    """

    css: str
    begin: float
    width: float
    outage: Outage


@dataclass(frozen=True, slots=True)
class Lane:
    """The outages of one source, of one gateway when several have it."""

    label: str
    gateway: str  # "" when all outages are of one gateway
    bars: Sequence[LaneBar]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that are drawn, and the number of all."""

    drawn: Sequence[Lane]
    total: int


def lanes(summary: Summary) -> Lanes:
    """Return a lane for each source with an outage, those with counted gaps first."""
    midnight = datetime.combine(summary.date, time(), UTC)
    found = outages(summary.gaps)
    several = len({each.gateway for each in found}) > 1
    by_source: dict[tuple[str, str], list[Outage]] = defaultdict(list)
    for each in found:
        by_source[each.lane, each.gateway if several else ""].append(each)
    drawn = [
        Lane(label, "" if label == f"gateway {gateway}" else gateway, _bars(group, midnight))
        for (label, gateway), group in list(by_source.items())[:MAX_LANES]
    ]
    return Lanes(drawn, len(by_source))


def bands(found: Sequence[Outage], day: date, route: str | None = None) -> list[Band]:
    """Return the outages of `day` as bands of a chart, those that may have lost messages first.

    With a `route` only those that concern it; the outage of a gateway concerns every route.
    Neighbours less than _LEAST_WIDTH apart, a pixel at most, are one band: so a day has 180 of a
    style at most.
    """
    concerned = [each for each in found if route is None or not each.routes or route in each.routes]
    bars = _bars(concerned, datetime.combine(day, time(), UTC))
    return [*_merged("bad", bars), *_merged("calm", bars)]


def _merged(css: str, bars: Sequence[LaneBar]) -> list[Band]:
    spans: list[tuple[float, float, int]] = []  # begin and end in seconds, and outages
    for begin, end in sorted(
        (each.begin, each.begin + each.width) for each in bars if each.css == css
    ):
        if spans and begin - spans[-1][1] < _LEAST_WIDTH:
            first, last, number = spans[-1]
            spans[-1] = (first, max(last, end), number + 1)
        else:
            spans.append((begin, end, 1))
    return [
        Band(css, begin / HOUR_SECONDS, (end - begin) / HOUR_SECONDS, number)
        for begin, end, number in spans
    ]


def _bars(group: Sequence[Outage], midnight: datetime) -> list[LaneBar]:
    """Return the bars of the outages that touch the day; an unknown end is the end of the day."""
    bars = []
    for each in group:
        begin = _second(each.begin, midnight, 0)
        width = max(_second(each.end, midnight, DAY_SECONDS) - begin, _LEAST_WIDTH)
        begin = min(begin, DAY_SECONDS - width)
        bars.append(LaneBar("bad" if each.counted else "calm", begin, width, each))
    return bars


def _second(at: datetime | None, midnight: datetime, unknown: float) -> float:
    seconds = unknown if at is None else (at - midnight).total_seconds()
    return min(max(seconds, 0), DAY_SECONDS)
