"""Recognition of duplicates by the identity that their source gives them.

A duplicate also has the name and the payload of the earlier message: publishers can write an
identity, also one that another message will have, so an identity alone must not drop a message.
For an endpoint with `echo_window`, name and payload alone are the identity for that time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final, TypeAlias

MAX_SIZE: Final = 32 << 20  # bytes of the identities of a source endpoint
EVICTED_SIZE: Final = MAX_SIZE // 50  # bytes of the identities that are evicted together
_OVERHEAD: Final = 320  # bytes of an identity beside the characters of its texts

Identity: TypeAlias = tuple[str, str, bytes]  # name, id of the message or "", payload hash


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
        self._completions: dict[Identity, BatchCompletion] = {}
        self._size = 0  # bytes

    def remember(self, identities: Iterable[Identity]) -> None:
        """Add identities that an earlier run has delivered and recorded."""
        done = BatchCompletion()
        done.complete()
        for identity in identities:
            self.find_or_add(identity, done, 0.0)

    def find_or_add(
        self, identity: Identity, completion: BatchCompletion, seconds: float = float("inf")
    ) -> BatchCompletion | None:
        """The batch that had `identity` in the last `seconds`; if there is none, add this batch."""
        found = self._completions.get(identity)
        if found is not None:
            if completion.arrived - found.arrived <= seconds:
                return found
            del self._completions[identity]
        else:
            self._size += _OVERHEAD + 4 * (len(identity[0]) + len(identity[1]))  # as `_size`
        self._completions[identity] = completion
        if self._size >= MAX_SIZE + EVICTED_SIZE:
            self._evict()
        return None

    def _evict(self) -> None:
        """Drop the oldest identities, many at once.

        A search for the first entry of a dict skips every deleted one, so single evictions would
        be slow.
        """
        oldest: list[Identity] = []
        for identity in self._completions:
            if self._size <= MAX_SIZE:
                break
            self._size -= _size(identity)
            oldest.append(identity)
        for identity in oldest:
            del self._completions[identity]


def _size(identity: Identity) -> int:
    """Return about the bytes of a remembered identity; a character takes at most four."""
    return _OVERHEAD + 4 * (len(identity[0]) + len(identity[1]))
