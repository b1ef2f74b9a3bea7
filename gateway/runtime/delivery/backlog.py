"""The batches that wait for one target, in order: in memory, or in a spool on disk.

A backlog gives each batch a number. The batches leave it strictly in the order of their numbers,
also after a lost connection put some of them back.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias

from gateway.model.dead_letter_rule import SPOOL_AGE, SPOOL_FULL
from gateway.model.outcome import SPOOLED, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.actions import Finish, Mark, Read, Store
from gateway.runtime.delivery.outbound_batch import Origin, OutboundBatch, SpoolRow

MAX_JOINED: Final = 1_000  # messages of small batches that are taken as one
MAX_NUMBER: Final = 2**63 - 1  # of a batch on disk


class MemoryBacklog:
    """The backlog of a target without a spool; its lane limits the bytes.

    Mutable: owned by the lane's state.
    """

    def __init__(self) -> None:
        self._batches: deque[OutboundBatch] = deque()
        self.next_number = count(1).__next__

    def put(self, batch: OutboundBatch) -> None:
        self._batches.append(batch)

    def put_back(self, batches: Iterable[OutboundBatch]) -> None:
        self._batches.extendleft(sorted(batches, key=_number, reverse=True))

    def take(self) -> OutboundBatch | None:
        return self._batches.popleft() if self._batches else None

    def empty(self) -> bool:
        return not self._batches


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """Limits of the spool of one target: bytes on disk, messages, and age in seconds."""

    bytes: int
    messages: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SpoolTotals:
    """The rows that an earlier run left; it may have sent those up to `marked`."""

    last: int = 0  # the highest number
    messages: int = 0
    bytes: int = 0
    marked: int = 0


class SpoolBacklog:
    """The backlog of a target on disk.

    A batch is put under its number, written, and durable later; it can be taken from then on. A
    number that is not durable holds back every later one, so no batch passes another, whichever
    thread writes first. Rows are read ahead, and sent only after a durable mark, so that a copy
    which a dead run sent is marked as a repeated one.
    """

    def __init__(
        self,
        name: str,
        limits: SpoolLimits,
        totals: SpoolTotals,
        next_number: Callable[[], int],
        origin: Origin,
    ) -> None:
        """`origin` gets the answers of the batches that were on disk."""
        self.limits = limits
        self.messages, self.bytes = totals.messages, totals.bytes
        self.held_messages = self.held_bytes = 0  # that wait for the end of an interval
        self.next_number = next_number
        self.name = name
        self._origin = origin
        self._last_tried = totals.marked
        self._marked = totals.marked  # as on disk
        self._stored = totals.last  # the highest number that is durable
        self._last_read = 0
        self._rows: deque[SpoolRow] = deque()  # read from disk
        self._returned: list[OutboundBatch] = []  # taken and put back; sorted
        self._unwritten: deque[OutboundBatch] = deque()  # put back, never on disk; sorted
        self._unqueued: set[int] = set()  # numbers put back, and not on the way to the disk
        self._pending: dict[int, OutboundBatch] = {}  # put, and not durable yet

    def fits(self, batch: OutboundBatch) -> bool:
        maximum, messages = self.limits.messages, self.messages + self.held_messages
        too_many = maximum is not None and messages + len(batch.messages) > maximum
        size = self.bytes + self.held_bytes + batch.size
        return not self.messages or not (too_many or size > self.limits.bytes)

    def put(self, batch: OutboundBatch) -> Store:
        self._pending[batch.number] = batch
        return Store(batch)

    def put_back(self, batches: Iterable[OutboundBatch]) -> None:
        """Take batches back that were taken, or that were sent without being put."""
        for batch in sorted(batches, key=_number):
            if batch.rows:
                insort(self._returned, batch, key=_number)
            else:
                self._pending[batch.number] = batch
                self._unwritten.append(batch)
                self._unqueued.add(batch.number)

    def next_store(self) -> Store | None:
        """A batch that was put back and must be written before any later one is taken."""
        return Store(self._unwritten.popleft()) if self._unwritten else None

    def written(self, batch: OutboundBatch, size: int) -> bool:
        """Count the unsettled messages of a batch that is on its way to the disk with `size` bytes.

        Return false if none is left: then nothing is written.
        """
        messages = len(batch.unsettled)
        if not messages:
            del self._pending[batch.number]
            return False
        batch.settle_rest(SPOOLED)
        self.messages += messages
        self.bytes += size
        return True

    @property
    def puts_back(self) -> bool:
        """Whether a batch that was sent is not on its way to the disk yet.

        A newer one must not be durable before it: after a crash it would be sent first.
        """
        return bool(self._unqueued)

    def queued_for_disk(self, batch: OutboundBatch) -> None:
        """The batch becomes durable no later than any that is queued from now on."""
        self._unqueued.discard(batch.number)

    def stored(self, batch: OutboundBatch) -> None:
        """The batch is durable: its source is settled, and it can be taken."""
        del self._pending[batch.number]
        self._stored = max(self._stored, batch.number)

    def read(self, rows: Sequence[SpoolRow], request: Read) -> None:
        """Rows that the disk returned for `request`, which ends with the last of them."""
        if request.after != self._last_read:
            return  # another thread read them first
        self._rows.extend(rows)
        self._last_read = rows[-1].number if rows else min(self._stored, request.before - 1)

    def marked(self, number: int) -> None:
        self._marked = max(self._marked, number)

    def take(self) -> OutboundBatch | Read | Mark | None:
        """Remove and return the first batch, or what must happen before; None if none is ready."""
        if self._returned:
            return self._returned.pop(0)
        if not self._rows:
            return self._next_read()
        if self._marked < self._last_read:
            return Mark(self._last_read)
        return self._take_rows()

    def take_oldest(self) -> Finish | Read | None:
        """Reject the oldest batch; None if none is ready."""
        if not (self._returned or self._rows):
            return self._next_read()
        oldest = self._returned.pop(0) if self._returned else self._take_rows()
        reason = f"the spool of {self.name} is full, and this was its oldest"
        oldest.settle_rest(rejected(SPOOL_FULL, reason))
        return Finish(oldest)

    def take_expired(self, wall: int) -> Finish | Read | None:
        """Reject the messages of the oldest batch that have waited too long; it may have others.

        Units: microseconds since 1970-01-01 UTC.
        """
        if self.limits.seconds is None:
            return None
        oldest = wall - int(self.limits.seconds * 1_000_000)
        if not self._returned:
            if not self._rows:
                return self._next_read()
            if self._rows[0].time >= oldest:
                return None
            self._returned.append(self._join([self._rows.popleft()]))
        batch = self._returned[0]
        times = [row.time for row in batch.rows for _ in row.messages]
        expired = [each for each in batch.unsettled if times[each] < oldest]
        reason = f"it waited longer than {self.limits.seconds:g} s for {self.name}"
        batch.settle(expired, [rejected(SPOOL_AGE, reason)] * len(expired))
        return None if batch.unsettled else Finish(self._returned.pop(0))

    def empty(self) -> bool:
        """Return whether no batch is ready or about to be."""
        return not (self._returned or self._rows or self._pending or self._last_read < self._stored)

    def freed(self, batch: OutboundBatch) -> None:
        """The messages of a batch have their outcome, and their rows are about to be deleted."""
        self.messages -= sum(row.count for row in batch.rows)
        self.bytes -= sum(row.size for row in batch.rows)

    def _next_read(self) -> Read | None:
        """The rows to read: all durable ones that no earlier number holds back."""
        end = min(self._pending, default=MAX_NUMBER)
        if self._last_read >= min(self._stored, end - 1):
            return None
        return Read(self._last_read, end)

    def _take_rows(self) -> OutboundBatch:
        """The next rows that were read; small batches are taken as one."""
        first = self._rows.popleft()
        taken, count, tried = [first], first.count, self._is_tried(first)
        while self._rows and count < MAX_JOINED and self._is_tried(self._rows[0]) is tried:
            taken.append(self._rows.popleft())
            count += taken[-1].count
        return self._join(taken)

    def _join(self, rows: Sequence[SpoolRow]) -> OutboundBatch:
        """One batch of several rows; an attempt of an earlier run counts if it may have sent it."""
        messages = [message for row in rows for message in row.messages]
        batch = OutboundBatch(self._origin, WhenFull.SLOW, messages)
        batch.rows, batch.number = rows, rows[0].number
        batch.attempts = int(self._is_tried(rows[0]))
        return batch

    def _is_tried(self, row: SpoolRow) -> bool:
        return row.number <= self._last_tried


Backlog: TypeAlias = MemoryBacklog | SpoolBacklog


def _number(batch: OutboundBatch) -> int:
    return batch.number
