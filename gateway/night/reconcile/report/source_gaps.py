"""The gaps of sources on a date, as rows of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date

from gateway.archive.gaps import DID_NOT_RUN, GapRule, SourceGap
from gateway.archive.layout import safe_name
from gateway.clock import moment
from gateway.night.archive.verification.chains import NotRunning
from gateway.night.reconcile.input.inputs import day_range
from gateway.night.reconcile.report.reported_gaps import ReportedGap
from gateway.night.reconcile.report.timelines import clock


def reported_gaps(
    found: Sequence[SourceGap],
    lasting: Iterable[SourceGap],
    pauses: Sequence[NotRunning],
    day: date,
    now: int,
) -> list[ReportedGap]:
    """Return the gaps of `day` until `now`, by begin; `now` is in microseconds.

    `found` are those that the gateways recorded, and `lasting` those that have not ended now, by
    the states of the sources. The `pauses` are listed and not counted, because a gateway records at
    its stop and start which of its sources missed messages. A source that missed none while its
    gateway did not run has no line of its own.
    """
    begin, end = day_range(day)
    until = min(end, now)
    still = {(gap.gateway, gap.endpoint, gap.begin): gap for gap in lasting}
    known = {_key(gap) for gap in found}
    gaps = [_ended(gap, None if _key(gap) in still else pauses, until, day) for gap in found]
    gaps += [_ended(gap, None, until, day) for key, gap in still.items() if key not in known]
    every = [(gap, not gap.counts) for gap in gaps if not _is_pause(gap, pauses)]
    every += [(_pause(each, now), True) for each in pauses]
    rows = [
        ReportedGap(
            gap.route,
            gap.endpoint,
            gap.gateway,
            gap.rule,
            moment(gap.begin),
            moment(gap.end),
            gap.reason,
            gap.lost,
            kept,
        )
        for gap, kept in every
        if gap.begin < end and gap.end >= begin
    ]
    return sorted(rows, key=lambda gap: (gap.begin, gap.endpoint))


def _is_pause(gap: SourceGap, pauses: Iterable[NotRunning]) -> bool:
    """Return whether one of the `pauses` tells all about a gap."""
    own = (each for each in pauses if each.gateway == gap.gateway)
    near = any(gap.begin <= each.end and each.begin <= gap.end for each in own)
    return near and gap.reason == DID_NOT_RUN and not gap.counts


def _pause(pause: NotRunning, now: int) -> SourceGap:
    end = max(pause.begin, min(pause.end, now))
    rule = GapRule.NOT_RUNNING.value
    return SourceGap(pause.gateway, "", "", "", rule, "", pause.begin, end, None)


def _ended(gap: SourceGap, pauses: Iterable[NotRunning] | None, until: int, day: date) -> SourceGap:
    """Return a gap with its end: `until` for one that lasts, which has None for the `pauses`.

    Otherwise one that a stop began and no start ended, whose row has its begin as its end, ends
    with the pause. The source may be absent from the configuration of the next start.
    """
    end, silence, reason = until, "has not run since", gap.reason
    stopped = gap.rule == GapRule.NOT_RUNNING.value
    if pauses is not None:
        own = [each for each in pauses if each.gateway == gap.gateway and each.end > gap.begin]
        if not stopped or gap.end != gap.begin or not own:
            return gap
        end = min(until, min(own, key=lambda each: each.begin).end)
        silence = "did not run again that day"
    if stopped and end == until:
        reason = f"the gateway stopped at {clock(moment(gap.begin), day)} and {silence}"
    return replace(gap, end=max(gap.begin, end), reason=reason)


def _key(gap: SourceGap) -> tuple[str, str, int]:
    """Return the key of a recorded gap among those that have not ended."""
    return safe_name(gap.gateway), gap.endpoint, gap.begin
