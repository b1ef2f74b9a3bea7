"""The wall clock: every other module takes the current time from here."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime


def now() -> int:
    """Return the current time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def today() -> date:
    """Return the current date in UTC."""
    return datetime.now(UTC).date()
