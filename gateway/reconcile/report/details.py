"""The details of the page: gateways, targets that need a tap, times of day."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import PurePath
from typing import Final

from gateway.archive.layout import gateway_of, safe_name, writer_of
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import word

MAX_ROWS: Final = 200  # rows of a table
MAX_GATEWAYS: Final = 10  # named at the top
MAX_SAMPLES: Final = 25  # of each class
MAX_ROUTES: Final = 2_000  # rows of the table of routes


def gateways(report: Report) -> list[str]:
    """Return the gateways with copies, then those whose segments have errors and count nowhere."""
    found = [word(row, "gateway") for row in report.gateways]
    known = {safe_name(name) for name in found}
    writers = dict.fromkeys(_writer(each.place) for each in report.errors)
    return [*found, *(name for name in writers if name and name not in known)]


def _writer(segment: str) -> str:
    """Return the gateway of a segment, as its file is named; empty when it tells none."""
    return gateway_of(writer_of(PurePath(segment)) or "")


def tap_reasons(report: Report) -> list[tuple[str, int]]:
    """Return why targets need a tap to prove payloads unaltered, with the number of routes."""
    reasons = Counter(word(row, "taps_needed") for row in report.routes)
    return [(reason, number) for reason, number in reasons.most_common() if reason]


def time_of_day(text: str) -> str:
    """Return the time of day of an ISO 8601 time, in milliseconds; other text as it is."""
    try:
        return datetime.fromisoformat(text).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return text or "-"
