"""The ids that a run of the gateway gives its messages."""

from __future__ import annotations

import threading


class MessageIds:
    """Message ids of this run: 8 bytes of its start in microseconds, then 8 of a counter.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, run: int) -> None:
        self._run = run.to_bytes(8, "big")
        self._next = 0
        self._lock = threading.Lock()

    def take(self, count: int) -> list[bytes]:
        """Return the next `count` ids, each of 16 bytes."""
        with self._lock:
            first = self._next
            self._next += count
        run = self._run
        return [run + number.to_bytes(8, "big") for number in range(first, first + count)]
