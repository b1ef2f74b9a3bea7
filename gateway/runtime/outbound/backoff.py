"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random
from collections.abc import Callable
from time import monotonic
from typing import Final

STEADY: Final = 10.0  # seconds that a connection lives before its loss is the first again
REFUSED: Final = 32  # as many failures as make the longest pause of any back-off


class Attempts:
    """The attempts in a row to connect to one broker; mutable, it counts those that failed.

    A connection that is lost at once is a failed attempt, too: a broker hangs up on the first of
    two clients with one id, so those would take it from each other several times a second.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock, self._jitter = clock, jitter
        self._failed = 0
        self._since: float | None = None  # of the connection

    def connected(self) -> None:
        """Take note of a connection."""
        self._since = self._clock()

    def pause(self, backoff: tuple[float, float], *, refused: bool = False) -> float:
        """Seconds before the next attempt, after a failed one or a lost connection.

        They double from the first of `backoff` up to the second, at once there when the broker has
        `refused` us. Up to half is taken away at random, so that many gateways that lost one
        broker do not come back in step.
        """
        if self._since is not None and self._clock() - self._since >= STEADY:
            self._failed = 0
        self._since = None
        minimum, maximum = backoff
        doubled = minimum * 2.0 ** min(REFUSED if refused else self._failed, REFUSED)
        self._failed += 1
        return min(maximum, doubled) * (1.0 - self._jitter() / 2)
