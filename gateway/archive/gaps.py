"""Gaps of sources and taps: the rules of gap rows, and the merge of the rows of one gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

NO_ID: Final = bytes(16)  # the id of gap rows


class GapRule(Enum):
    """Why a source may have missed messages: values of the column `rule` of gap rows."""

    SESSION_LOST = "session-lost"  # the broker no longer had the session or the queue
    DISCONNECTED = "disconnected"  # not connected, and the broker keeps nothing meanwhile
    NOT_RUNNING = "not-running"  # the same, because the gateway did not run
    TAKEN_OVER = "taken-over"  # another client used the session
    REFUSED = "subscription-refused"
    DROPPED = "dropped"  # the broker or the driver reports dropped messages
    LOOP_LIMIT = "loop-limit"  # the gateway cut messages that came back too often
    AWAY = "away"  # not connected, and the broker kept the messages: no loss by itself


MOMENTARY: Final = frozenset({GapRule.DROPPED.value, GapRule.LOOP_LIMIT.value})  # no outages


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
    rows have the same `source_time`, and the latest `time` replaces the earlier ones. A momentary
    gap has one row.
    """
    latest: dict[tuple[object, ...], SourceGap] = {}
    for row in rows:
        begin, end = _microseconds(row["source_time"]), _microseconds(row["time"])
        gap = SourceGap(
            row["gateway"], row["route"], row["endpoint"], row["name"], row["rule"],
            row["reason"] or "", begin, end, row["size"], row["target"] or "",
        )  # fmt: skip
        own = (end, gap.reason) if row["rule"] in MOMENTARY else ()
        key = (gap.gateway, gap.endpoint, gap.route, gap.target, begin, *own)
        if key not in latest or latest[key].end <= end:
            latest[key] = gap
    return sorted(latest.values(), key=lambda gap: (gap.begin, gap.endpoint, gap.route))


def _microseconds(moment: datetime | int) -> int:
    if isinstance(moment, int):
        return moment
    return round(moment.timestamp() * 1_000_000)
