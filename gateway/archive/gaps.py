"""Gaps of sources and taps: the rules of gap rows, and the merge of the rows of one gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from gateway.clock import microseconds

NO_ID: Final = bytes(16)  # the id of gap rows


class GapRule(Enum):
    """Why a source may have missed messages: values of the column `rule` of gap rows."""

    SESSION_LOST = "session-lost"  # the broker no longer had the session or the queue
    DISCONNECTED = "disconnected"  # not connected, and the broker keeps nothing meanwhile
    NOT_RUNNING = "not-running"  # the same, because the gateway did not run
    TAKEN_OVER = "taken-over"  # another client used the session
    REFUSED = "subscription-refused"
    DROPPED = "dropped"  # the broker or the driver reports dropped messages
    WITHDRAWN = "withdrawn"  # an operator ended what the broker kept for the gateway
    AWAY = "away"  # not connected, and the broker kept the messages: no loss by itself


DID_NOT_RUN: Final = "the gateway did not run"  # a reason
_DAY: Final = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class SourceGap:
    """A time in which a source, or the tap at a target, may have missed messages of a route.

    `lost` is the number of lost messages where it is known.
    Units: microseconds since 1970-01-01 UTC.
    """

    gateway: str
    route: str
    endpoint: str
    name: str
    rule: str
    reason: str
    begin: int
    end: int
    lost: int | None
    target: str = ""  # of the tap; empty for a source

    @property
    def counts(self) -> bool:
        """Whether messages may be missing; during an absence with a kept session none are."""
        return self.rule != GapRule.AWAY.value


def merge_gaps(rows: Iterable[Mapping[str, Any]]) -> list[SourceGap]:
    """Return the gaps of the gap rows `rows`, by begin.

    A gap has a row at its begin, one after each midnight while it lasts, and one at its end. The
    rows have the same `begin`, and the latest `time` replaces the earlier ones. A loss
    that the source reports has one row; those that overlap are one gap a day. A row without a
    `begin` is a moment.
    """
    latest: dict[tuple[object, ...], SourceGap] = {}
    for row in rows:
        end = microseconds(row["time"])
        begin = microseconds(row["begin"] or row["time"])
        gap = SourceGap(
            row["gateway"],
            row["route"],
            row["endpoint"],
            row["name"],
            row["rule"],
            row["reason"] or "",
            begin,
            end,
            row["lost"],
            row["target"] or "",
        )
        own = (end, gap.reason) if row["rule"] == GapRule.DROPPED.value else ()
        key = (*_place(gap), begin, *own)
        if key not in latest or latest[key].end <= end:
            latest[key] = gap
    gaps = sorted(latest.values(), key=lambda gap: (gap.begin, gap.end))
    return sorted(_joined(gaps), key=lambda gap: (gap.begin, gap.endpoint, gap.route))


def _joined(gaps: Iterable[SourceGap]) -> list[SourceGap]:
    """Join the losses of a source on a date that have the same reason and overlap."""
    joined: list[SourceGap] = []
    last: dict[tuple[object, ...], int] = {}  # position in `joined`
    for gap in gaps:
        key = (*_place(gap), gap.rule, gap.reason, gap.end // _DAY)
        at = last.get(key)
        if gap.rule != GapRule.DROPPED.value or at is None or joined[at].end < gap.begin:
            last[key] = len(joined)
            joined.append(gap)
            continue
        before = joined[at]
        known = before.lost is not None and gap.lost is not None
        lost = (before.lost or 0) + (gap.lost or 0) if known else None
        joined[at] = replace(before, end=gap.end, lost=lost)
    return joined


def _place(gap: SourceGap) -> tuple[str, str, str, str]:
    return gap.gateway, gap.endpoint, gap.route, gap.target
