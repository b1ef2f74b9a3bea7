"""The ids that a run of the gateway gives its messages."""

from __future__ import annotations

import threading


class MessageIds:
    """Message ids of this run: the start of the run in microseconds, then a counter.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, run: int) -> None:
        self.run = run
        self._next = 0
        self._lock = threading.Lock()

    def reserve(self, count: int) -> int:
        """Reserve `count` consecutive counters and return the first."""
        with self._lock:
            first = self._next
            self._next += count
        return first
