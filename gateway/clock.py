"""The wall clock of the gateway: the one module that reads the current time."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime


def now() -> int:
    """Microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def today() -> date:
    """The current date in UTC."""
    return datetime.now(UTC).date()
