"""The instances of gateways over a day: which was active when, under which lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from gateway.reconcile.report.timelines import Timelines, timeline_bar, timelines


@dataclass(frozen=True, slots=True)
class Turn:
    """A time in which the targets of an instance took copies; `lease` is 0 without a lease.

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


def turn_timelines(found: Sequence[Turn], day: date) -> Timelines:
    """Return a timeline for each instance, in the order of their first turns."""
    return timelines(
        (each.writer, "", timeline_bar("calm", each.begin, each.end, day, each.text))
        for each in found
    )
