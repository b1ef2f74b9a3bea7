"""Pauses: between attempts to connect, and between the bursts of a lane with a `rate`."""

from __future__ import annotations

from typing import Final

STABLE_SECONDS: Final = 10.0  # a connection that lived this long resets the back-off
MAX_DOUBLINGS: Final = 32  # enough to reach the maximum of any back-off


class Backoff:
    """Consecutive failed attempts to connect to one broker.

    A connection that is lost soon counts as a failed attempt. A broker closes the first of two
    connections with one client id, so two such clients would otherwise replace each other several
    times a second.
    Mutable: owned by the state that connects.
    Units: seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._failed = 0
        self._connected_at: float | None = None

    def connected(self, now: float) -> None:
        """Note that an attempt succeeded."""
        self._connected_at = now

    def forgive(self) -> None:
        """Note that a message broke the connection: the broker is well, and needs no pause."""
        self._failed, self._connected_at = 0, None

    def pause(
        self, backoff: tuple[float, float], now: float, jitter: float, *, refused: bool = False
    ) -> float:
        """Seconds to wait after a failed attempt or a lost connection.

        The pause doubles from the minimum of `backoff` to its maximum; when the broker `refused`
        the connection, it is the maximum at once. `jitter`, from 0 to 1, subtracts up to half, so
        that many gateways do not reconnect to one broker at the same moment.
        """
        connected_at, self._connected_at = self._connected_at, None
        if connected_at is not None and now - connected_at >= STABLE_SECONDS:
            self._failed = 0
        minimum, maximum = backoff
        doublings = MAX_DOUBLINGS if refused else min(self._failed, MAX_DOUBLINGS)
        self._failed += 1
        return min(maximum, minimum * 2.0**doublings) * (1.0 - jitter / 2)


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
