"""Numbers, durations and times as the report shows them, and the bounds of its tables."""

from __future__ import annotations

from datetime import datetime
from typing import Final

MAX_ROWS: Final = 200  # rows of a table
MAX_GATEWAYS: Final = 10  # named at the top
MAX_SAMPLES: Final = 25  # of each class
MAX_ROUTES: Final = 2_000  # rows of the table of routes
_THOUSAND: Final = 1_000
_SCALES: Final = ((120_000_000, 1_000_000, "s"), (7_200_000_000, 60_000_000, "min"))
_HOUR: Final = 3_600_000_000  # microseconds


def duration(micros: float) -> str:
    """Return a duration in microseconds with the unit that suits its size."""
    if micros < _THOUSAND:
        return f"{micros:.0f} µs"
    if micros < _THOUSAND**2:
        return f"{micros / _THOUSAND:.3g} ms"
    for end, unit, name in _SCALES:
        if micros < end:
            return f"{micros / unit:.3g} {name}"
    return f"{micros / _HOUR:,.1f} h"


def amount(value: float) -> str:
    """Return a count or a rate: three digits below a thousand, all digits above."""
    if round(value) >= _THOUSAND or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def time_of_day(text: str) -> str:
    """Return the time of day of an ISO 8601 time, in milliseconds; other text as it is."""
    try:
        return datetime.fromisoformat(text).strftime("%H:%M:%S.%f")[:-3]
    except ValueError:
        return text or "-"
