"""The gaps of sources on a date, as rows of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from gateway.archive.gaps import SourceGap
from gateway.reconcile.input.inputs import day_range
from gateway.reconcile.report.text import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def gap_rows(found: Iterable[SourceGap], stopped: Iterable[SourceGap], day: date) -> Sequence[Row]:
    """Return the gaps of `day`, by begin.

    `found` are those that the gateways recorded. `stopped` are times in which a gateway did not
    run; they are listed and not counted, because the gateway records at its start which of its
    sources missed messages.
    """
    begin, end = day_range(day)
    rows = [
        *(_row(gap, kept=not gap.counts) for gap in found if gap.begin < end and gap.end >= begin),
        *(_row(gap, kept=True) for gap in stopped if gap.begin < end and gap.end >= begin),
    ]
    return sorted(rows, key=lambda row: (str(row["begin"]), str(row["endpoint"])))


def _row(gap: SourceGap, *, kept: bool) -> Row:
    return {
        "route": gap.route,
        "endpoint": gap.endpoint,
        "gateway": gap.gateway,
        "rule": gap.rule,
        "begin": _time(gap.begin),
        "end": _time(gap.end),
        "reason": gap.reason,
        "lost": gap.lost,
        "kept": kept,
    }


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
