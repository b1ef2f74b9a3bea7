"""Outages of sources as bars over the day: on timelines of their own, and behind charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from gateway.night.reconcile.report.reported_gaps import ReportedOutage
from gateway.night.reconcile.report.timelines import (
    LEAST_WIDTH,
    Timeline,
    TimelineBar,
    timeline_bar,
    timelines,
)


def gap_timelines(found: Sequence[ReportedOutage], day: date) -> list[Timeline]:
    """Return a timeline for each source with an outage, those with counted gaps first."""
    several = len({each.gateway for each in found}) > 1
    return timelines(
        (each.label, each.gateway if several and each.endpoint else "", _bar(each, day))
        for each in found
    )


def bands(
    found: Sequence[ReportedOutage], day: date, route: str | None = None
) -> list[TimelineBar]:
    """Return the outages of `day` as bands of a chart, those that may have lost messages first.

    With a `route` only those that concern it; the outage of a gateway concerns every route.
    Neighbours less than LEAST_WIDTH apart, a pixel at most, are one band: so a day has 180 of a
    style at most.
    """
    concerned = [each for each in found if route is None or not each.routes or route in each.routes]
    bars = [_bar(each, day) for each in concerned]
    return [*_merged("bad", bars), *_merged("calm", bars)]


def _merged(css: str, bars: Sequence[TimelineBar]) -> list[TimelineBar]:
    found: list[TimelineBar] = []
    for bar in sorted((each for each in bars if each.css == css), key=lambda each: each.begin):
        before = found[-1] if found else None
        if before is None or bar.begin - before.begin - before.width >= LEAST_WIDTH:
            found.append(bar)
        else:
            width = max(before.width, bar.begin + bar.width - before.begin)
            found[-1] = replace(before, width=width, outages=before.outages + 1)
    return found


def _bar(outage: ReportedOutage, day: date) -> TimelineBar:
    css = "bad" if outage.counted else "calm"
    return timeline_bar(css, outage.begin, outage.end, day, outage.rule)
