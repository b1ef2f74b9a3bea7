"""The completion of a batch: later batches with its duplicates wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic


class BatchCompletion:
    """Arrival time and completion of a batch, with callbacks.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self.arrived = monotonic()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] | None = []  # None when completed

    @classmethod
    def completed(cls) -> BatchCompletion:
        """The completion of a batch of an earlier run."""
        done = cls()
        done.complete()
        return done

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` on completion, or now if the batch is completed."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback()

    def complete(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
        _queue.run(callbacks or ())


class _CallbackQueue(threading.local):
    """The outstanding callbacks of each thread."""

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._running = False

    def run(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Run the callbacks, and those they add, in turn; then raise the first exception.

        Nested calls would exceed the stack: thousands of batches may each wait for the one
        before while a target is unreachable.
        """
        self._due.extend(callbacks)
        if self._running:
            return
        self._running = True
        failures: list[Exception] = []
        try:
            while self._due:
                try:
                    self._due.popleft()()
                except Exception as error:  # noqa: BLE001  # raised after the last callback
                    failures.append(error)
        finally:
            self._running = False
        if failures:
            raise failures[0]


_queue = _CallbackQueue()
