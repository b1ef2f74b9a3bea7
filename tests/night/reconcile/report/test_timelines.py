"""Times of a day in the report."""

from __future__ import annotations

from datetime import date, timedelta

from gateway.night.reconcile.report.timelines import clock
from tests.night.reconcile.summaries import DAY


def test_times_are_shown_for_the_day() -> None:
    day = date(2026, 3, 14)

    assert clock(DAY + timedelta(seconds=3_661), day) == "01:01:01"
    assert clock(DAY + timedelta(days=1), day) == "24:00:00"
    assert clock(DAY - timedelta(seconds=1), day) == "2026-03-13 23:59:59"
