"""Marks for what a source may read twice, since its endpoint was read under two names.

An endpoint that was renamed reads from its own session or consumer until somebody writes `was`:
then it goes on with that of the earlier name, which holds much that was read under the later one.

    begun     with a connection, if the memory of the later name has changed since the last mark
    marked    each message, until the source is quiet for a while and all of them are settled
    ended     by a note of that memory, which the source's own one keeps; a crash begins it again
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from time import monotonic
from typing import Final

from gateway.endpoints.base import Batch
from gateway.endpoints.received_queue import mark_redelivered
from gateway.endpoints.source_memory import SourceMemory
from gateway.model.outcome import Settlement

QUIET_TIME: Final = 5.0  # seconds without a message, after which what waited has come


class SecondReading:
    """The marks of one connection. Thread-safe: guarded by self._lock.

    One thread passes batches, and any settles them.
    """

    def __init__(self, memory: SourceMemory) -> None:
        self._memory, self._lock = memory, Lock()
        self._unsettled, self._since = 0, monotonic()  # messages; of the last one

    def marked(self, batch: Batch | None) -> Batch | None:
        """Return a received batch with its marks."""
        if not self._memory.may_repeat:
            return batch
        if batch is None:
            if not self._unsettled and monotonic() - self._since >= QUIET_TIME:
                self._memory.note_repeated()
            return None
        settle = batch.settle
        self._since = monotonic()

        def settled(settlements: Sequence[Settlement]) -> None:
            settle(settlements)
            self._count(-len(settlements))

        self._count(len(batch.messages))
        return replace(batch, messages=[*map(mark_redelivered, batch.messages)], settle=settled)

    def _count(self, messages: int) -> None:
        with self._lock:
            self._unsettled += messages
