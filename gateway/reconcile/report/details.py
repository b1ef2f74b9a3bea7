"""The details of the page: gateways, targets that need a tap, hours as numbers."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import PurePath
from typing import Final

from gateway.archive.layout import gateway_of, safe_name, writer_of
from gateway.model.copy_class import COLUMNS, EXCEPTION_CLASSES
from gateway.reconcile.report.figures import Day, percentiles
from gateway.reconcile.report.formatting import amount, duration
from gateway.reconcile.report.report import Report
from gateway.reconcile.report.rows import count, exceptions_in, number, word

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


def hour_table(day: Day) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the numbers behind the charts of a day: heads, and for each hour a text for each.

    "0" and "-" are the quiet values.
    """
    times = [*percentiles(day), "slowest"]
    found = exceptions_in(list(day.values()))
    counts = [name for name in COLUMNS if name not in EXCEPTION_CLASSES or name in found]
    rows: list[tuple[str, list[str]]] = []
    for hour, row in sorted(day.items()):
        durations = [number(row, name) for name in times]
        texts = [
            *[amount(count(row, name)) for name in counts],
            *["-" if each is None else duration(each) for each in durations],
        ]
        rows.append((f"{hour:02}:00", texts))
    return [*counts, *times], rows
