"""Times of a day as the report shows them, and intervals of it as bars of timelines.

The intervals are outages of sources, and the turns in which instances of gateways were active.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from gateway.archive.layout import DAY, day_start
from gateway.clock import moment
from gateway.night.reconcile.by_key import by_key

MAX_TIMELINES: Final = 40  # that are drawn
DAY_SECONDS: Final = 86_400
LEAST_WIDTH: Final = 240  # seconds; a shorter interval is drawn as wide as this


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """An interval within the day, or its part of the day; `hint` says its times and what it is.

    Units: seconds after midnight.
    """

    css: str
    begin: float
    width: float
    hint: str
    outages: int = 1  # in the interval


@dataclass(frozen=True, slots=True)
class Timeline:
    """The intervals of one source or instance, of one gateway when several have it."""

    label: str
    gateway: str  # "" when all intervals are of one gateway
    bars: Sequence[TimelineBar]


def timelines(bars: Iterable[tuple[str, str, TimelineBar]]) -> list[Timeline]:
    """Return a timeline for each label and gateway of `bars`."""
    found = by_key(((label, gateway), bar) for label, gateway, bar in bars)
    return [Timeline(*names, own) for names, own in found.items()]


def timeline_bar(css: str, begin: datetime, end: datetime, day: date, what: str) -> TimelineBar:
    """Return the bar of an interval that touches `day`."""
    midnight = moment(day_start(day))
    seconds = ((each - midnight).total_seconds() for each in (begin, end))
    first, last = (min(max(each, 0), DAY_SECONDS) for each in seconds)
    width = max(last - first, LEAST_WIDTH)
    hint = f"{clock(begin, day)} to {clock(end, day)} {what}".rstrip()
    return TimelineBar(css, min(first, DAY_SECONDS - width), width, hint)


def clock(at: datetime, day: date) -> str:
    """Return a time of `day` in seconds, with its date when it is on another."""
    if at.date() == day:
        return f"{at:%H:%M:%S}"
    if at == moment(day_start(day) + DAY):
        return "24:00:00"
    return f"{at:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A time in which an instance was active; `lease` is 0 without a lease.

    `overlap` is for how long another instance handed over beside it, in seconds by their clocks.
    """

    gateway: str
    writer: str
    lease: int
    begin: datetime
    end: datetime
    overlap: float

    @property
    def text(self) -> str:
        """The lease and the overlap in words; empty without both."""
        lease = f"lease {self.lease}" if self.lease else ""
        beside = f"{self.overlap:.1f} s beside another by their clocks" if self.overlap else ""
        return ", ".join(filter(None, (lease, beside)))


def turn_timelines(found: Sequence[Turn], day: date) -> list[Timeline]:
    """Return a timeline for each instance, in the order of their first turns."""
    return timelines(
        (each.writer, "", timeline_bar("calm", each.begin, each.end, day, each.text))
        for each in found
    )
