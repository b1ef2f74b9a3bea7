"""Message rates of the last ten minutes, of each route and endpoint: a ring in memory."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from gateway.runtime.gateway import Gateway
from gateway.web.snapshot import Json

SAMPLE_INTERVAL: Final = 10.0  # seconds
SAMPLES: Final = 60  # kept of each route and side of an endpoint: 240 bytes


def message_counts(running: Gateway) -> dict[str, int]:
    """Return the messages since the start, by `route NAME` and by `SIDE NAME` of an endpoint."""
    counters = running.counters
    counts = {
        f"route {route.name}": counters[route.name].received
        for route in running.configuration.routes
        if route.name in counters
    }
    return counts | {f"{state.side} {state.name}": state.messages for state in running.states}


class RateHistory:
    """Samples the counts that `read` returns, and gives the rates between the samples.

    Thread-safe: guarded by self._lock.
    Units: messages per second.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, int]], clock: Callable[[], float] = monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._number = 0  # of samples since the start
        self._counts = read()
        self._time = clock()
        self._rings: dict[str, array[float]] = {}

    def sample(self) -> None:
        """Add a sample; a route or endpoint that is gone loses its history."""
        counts, time = self._read(), self._clock()
        with self._lock:
            seconds = max(time - self._time, 0.001)
            position = self._number % SAMPLES
            rings = {}
            for key, count in counts.items():
                ring = self._rings.get(key) or array("f", bytes(4 * SAMPLES))
                before = self._counts.get(key, count)  # a reload may add one that has a count
                added = max(0, count - before)  # or start its count again
                ring[position] = added / seconds
                rings[key] = ring
            self._rings, self._counts, self._time = rings, counts, time
            self._number += 1

    def since(self, number: int) -> Json:
        """Return the samples after sample `number`, the oldest first; 0 asks for all that are kept.

        A route or endpoint that was quiet in all of them is left out.
        """
        with self._lock:
            known = number if 0 <= number <= self._number else 0
            first = max(known, self._number - SAMPLES)
            positions = [each % SAMPLES for each in range(first, self._number)]
            rates = {
                key: [round(ring[each], 2) for each in positions]
                for key, ring in self._rings.items()
                if any(ring[each] for each in positions)
            }
            return {
                "number": self._number,
                "interval": SAMPLE_INTERVAL,
                "samples": len(positions),
                "kept": SAMPLES,
                "rates": rates,
            }
