"""How many messages a target gets now, so that each second has at most its `rate`."""

from __future__ import annotations

from typing import Final

BURSTS: Final = 20  # a second


class Pace:
    """The messages of one lane, in bursts; a `rate` is messages a second, and 0 has no limit.

    Mutable: owned by the lane.
    """

    def __init__(self) -> None:
        self._next_burst = 0.0  # monotonic seconds

    def pause(self, rate: float, now: float) -> float:
        """Return the seconds until the next burst; 0 when it may be sent now."""
        return max(0.0, self._next_burst - now) if rate else 0.0

    @staticmethod
    def burst(rate: float, wanted: int) -> int:
        """Return how many of the `wanted` messages one burst has."""
        return min(wanted, max(1, int(rate / BURSTS))) if rate else wanted

    def sent(self, count: int, rate: float, now: float) -> None:
        """Count a burst."""
        if rate:
            self._next_burst = max(now, self._next_burst) + count / rate
