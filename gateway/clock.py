"""The clocks: the wall clock, and the times of archive rows, which never go backwards."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final, TypeAlias

log = logging.getLogger(__name__)

Clock: TypeAlias = Callable[[], int]  # microseconds where nothing else is said

# The boot clock of Linux and the monotonic clock of macOS count the time of a sleep. Windows has
# neither of them, and runs no gateway.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", 0))
# Returns the nanoseconds since the machine started; no step of the wall clock changes it.
since_boot: Final[Clock] = (
    partial(time.clock_gettime_ns, _BOOT_CLOCK)
    if hasattr(time, "clock_gettime_ns")
    else time.monotonic_ns
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_AHEAD: Final = 86_400_000_000  # microseconds; a run does not continue from an end further ahead


def now() -> int:
    """Return the current time in microseconds since 1970-01-01 UTC."""
    return time.time_ns() // 1000


def moment(time: int) -> datetime:
    """Return a time in microseconds since 1970-01-01 UTC as a datetime."""
    return _EPOCH + timedelta(microseconds=time)


def microseconds(moment: datetime) -> int:
    """Return a time in microseconds since 1970-01-01 UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def today() -> date:
    """Return the current date in UTC."""
    return datetime.now(UTC).date()


def boot_seconds() -> float:
    """Return the seconds since the machine started, with those of its sleep."""
    return since_boot() / 1_000_000_000


class RowClock:
    """The times of a gateway's rows: the wall clock when a journal opens, plus the time since.

    It never goes backwards. While it is ahead of the wall clock, which was set back, it runs at
    half speed.
    Thread-safe: guarded by self._lock.
    Units: microseconds since 1970-01-01 UTC.
    """

    def __init__(self, wall: Clock = now, elapsed: Clock = since_boot) -> None:
        """Begin at the time of `wall`; `elapsed` is a monotonic clock of nanoseconds."""
        self._wall, self._elapsed = wall, elapsed
        self._lock = threading.RLock()
        self._since, self._base = elapsed(), wall()
        self._ahead = 0  # of the wall clock, at `_since`

    def __call__(self) -> int:
        with self._lock:
            passed = (self._elapsed() - self._since) // 1_000
            return self._base + passed - min(self._ahead, passed // 2)

    def anchor(self, least: int = 0) -> int:
        """Follow the wall clock from now on; return the time, which is `least` or later."""
        with self._lock:
            wall = self._wall()
            base = max(wall, self(), least)
            self._since, self._base, self._ahead = self._elapsed(), base, base - wall
            return base

    def continue_from(self, end: int) -> None:
        """Be no earlier than `end`, the last time of the run before, unless it is a day ahead."""
        ahead = end - self.anchor()
        if ahead <= MAX_AHEAD:
            self.anchor(end)
            return
        log.warning(
            "the clock of the run before was %d h ahead of the clock of now, and is not continued:"
            " correct the clock if it is wrong",
            ahead // 3_600_000_000,
        )
