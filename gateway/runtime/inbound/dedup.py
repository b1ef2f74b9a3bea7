"""Recognition of duplicates by the identity that their source gives them.

The payload is compared only for an endpoint with `echo_window`: two messages with the same name
and payload within that time count as the same message.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from time import monotonic
from typing import Final

MAX_IDENTITIES: Final = 50_000  # remembered for each source endpoint
EVICTION_BATCH: Final = 1_000  # identities evicted together, when that many are too many


class BatchCompletion:
    """Arrival time and completion of a batch, with callbacks.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self.arrived = monotonic()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] | None = []  # None when completed

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


class DuplicateFilter:
    """The latest identities of one source endpoint, with the completion of their batches.

    Mutable: owned by the pump's thread.
    """

    def __init__(self) -> None:
        self._completions: dict[Hashable, BatchCompletion] = {}

    def remember(self, identities: Iterable[Hashable]) -> None:
        """Add identities that an earlier run has delivered and recorded."""
        done = BatchCompletion()
        done.complete()
        self._completions.update(dict.fromkeys(identities, done))

    def find_or_add(
        self, identity: Hashable, completion: BatchCompletion, seconds: float = float("inf")
    ) -> BatchCompletion | None:
        """The batch that had `identity` in the last `seconds`; if there is none, add this batch."""
        found = self._completions.get(identity)
        if found is not None and completion.arrived - found.arrived <= seconds:
            return found
        self._completions.pop(identity, None)
        self._completions[identity] = completion
        if len(self._completions) >= MAX_IDENTITIES + EVICTION_BATCH:
            self._evict()
        return None

    def _evict(self) -> None:
        """Drop the oldest identities, many at once.

        A search for the first entry of a dict skips every deleted one, so single evictions would
        be slow.
        """
        for identity in list(islice(self._completions, EVICTION_BATCH)):
            del self._completions[identity]
