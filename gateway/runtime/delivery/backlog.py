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
from typing import Final, Protocol, TypeAlias

from gateway.model.outcome import SPOOLED, rejected
from gateway.runtime.delivery.actions import DiskAction, Finish, Mark, Read, Store
from gateway.runtime.delivery.batch import OutboundBatch, QueuedBatch

MAX_JOINED: Final = 1_000  # messages of small batches that are taken as one


class Backlog(Protocol):
    """Batches that wait for a target, in order. Mutable: owned by the lane's state."""

    on_disk: bool  # whether a batch in it counts as settled for its source

    def next_number(self) -> int:
        """The place of the next batch in the order."""

    def fits(self, batch: OutboundBatch) -> bool:
        """Return whether there is room for the batch."""

    def put(self, queued: QueuedBatch) -> Store | None:
        """Append the batch."""

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        """Take batches back that were taken, or that were sent without being put."""

    @property
    def puts_back(self) -> bool:
        """Whether a newer batch must wait for one that was sent."""

    def next_store(self) -> Store | None:
        """A batch that was put back and must be written before any later one is taken."""

    def take(self) -> QueuedBatch | DiskAction | None:
        """Remove and return the first batch, or what must happen before; None if none is ready."""

    def empty(self) -> bool:
        """Return whether no batch is ready or about to be."""


class MemoryBacklog:
    """The backlog of a target without a spool; its lane limits the bytes."""

    on_disk = False

    def __init__(self) -> None:
        self._batches: deque[QueuedBatch] = deque()
        self._numbers = count(1)

    def next_number(self) -> int:
        return next(self._numbers)

    def fits(self, batch: OutboundBatch) -> bool:
        del batch  # its lane has room
        return True

    def put(self, queued: QueuedBatch) -> Store | None:
        self._batches.append(queued)
        return None

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        self._batches.extendleft(sorted(batches, key=_number, reverse=True))

    @property
    def puts_back(self) -> bool:
        return False

    def next_store(self) -> Store | None:
        return None

    def take(self) -> QueuedBatch | DiskAction | None:
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
class SpoolRow:
    """A batch of `messages` on disk, written at `time`.

    Units: microseconds since 1970-01-01 UTC.
    """

    number: int
    time: int
    messages: int
    body: bytes
    checksum: bytes


@dataclass(frozen=True, slots=True)
class SpoolTotals:
    """The rows that an earlier run left; it may have sent those up to `marked`."""

    last: int = 0  # the highest number
    messages: int = 0
    bytes: int = 0
    marked: int = 0


@dataclass(frozen=True, slots=True)
class RowsTaken:
    """Rows that leave the backlog as one batch; `tried` when an earlier run may have sent them."""

    rows: tuple[SpoolRow, ...]
    tried: bool


JoinRows: TypeAlias = Callable[[RowsTaken], QueuedBatch]  # decodes rows as one stored batch


class SpoolBacklog:
    """The backlog of a target on disk.

    A batch is put under its number, written, and durable later; it can be taken from then on. A
    number that is not durable holds back every later one, so no batch passes another, whichever
    thread writes first. Rows are read ahead, and sent only after a durable mark, so that a copy
    which a dead run sent is marked as a repeated one.
    """

    on_disk = True

    def __init__(
        self,
        name: str,
        limits: SpoolLimits,
        totals: SpoolTotals,
        next_number: Callable[[], int],
        join: JoinRows,
    ) -> None:
        self.limits = limits
        self.messages, self.bytes = totals.messages, totals.bytes
        self.next_number = next_number
        self._name = name
        self._join = join
        self._last_tried = totals.marked
        self._marked = totals.marked  # as on disk
        self._stored = totals.last  # the highest number that is durable
        self._last_read = 0
        self._rows: deque[SpoolRow] = deque()  # read from disk
        self._returned: list[QueuedBatch] = []  # taken and put back; sorted
        self._unwritten: deque[QueuedBatch] = deque()  # put back, never on disk; sorted
        self._unqueued: set[int] = set()  # numbers put back, and not on the way to the disk
        self._pending: dict[int, QueuedBatch] = {}  # put, and not durable yet

    def fits(self, batch: OutboundBatch) -> bool:
        maximum = self.limits.messages
        too_many = maximum is not None and self.messages + len(batch.messages) > maximum
        return not self.messages or not (too_many or self.bytes + batch.size > self.limits.bytes)

    def put(self, queued: QueuedBatch) -> Store:
        self._pending[queued.number] = queued
        return Store(queued)

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        for queued in sorted(batches, key=_number):
            if queued.stored:
                insort(self._returned, queued, key=_number)
            else:
                self._pending[queued.number] = queued
                self._unwritten.append(queued)
                self._unqueued.add(queued.number)

    def next_store(self) -> Store | None:
        return Store(self._unwritten.popleft()) if self._unwritten else None

    def written(self, queued: QueuedBatch, size: int) -> Finish | None:
        """Count the unsettled messages of a batch that is on its way to the disk with `size` bytes.

        Return `Finish` if none is left: then nothing is written.
        """
        messages = len(queued.unsettled)
        if not messages:
            del self._pending[queued.number]
            return Finish(queued)
        queued.settle_rest(SPOOLED)
        self.messages += messages
        self.bytes += size
        return None

    @property
    def puts_back(self) -> bool:
        """Whether a batch that was sent is not on its way to the disk yet.

        A newer one must not be durable before it: after a crash it would be sent first.
        """
        return bool(self._unqueued)

    def queued_for_disk(self, queued: QueuedBatch) -> None:
        """The batch becomes durable no later than any that is queued from now on."""
        self._unqueued.discard(queued.number)

    def stored(self, queued: QueuedBatch) -> Finish:
        """The batch is durable: its source is settled, and it can be taken."""
        del self._pending[queued.number]
        self._stored = max(self._stored, queued.number)
        return Finish(queued)

    def read(self, rows: Iterable[SpoolRow], request: Read) -> None:
        """Rows that the disk returned for `request`, which ends with the last of them."""
        if request.after != self._last_read:
            return  # another thread read them first
        self._rows.extend(rows)
        if self._rows:
            self._last_read = self._rows[-1].number
        elif request.before is None:
            self._last_read = self._stored
        else:
            self._last_read = min(self._stored, request.before - 1)

    def marked(self, number: int) -> None:
        self._marked = max(self._marked, number)

    def take(self) -> QueuedBatch | DiskAction | None:
        if self._returned:
            return self._returned.pop(0)
        if not self._rows:
            return self._next_read()
        if self._marked < self._last_read:
            return Mark(self._last_read)
        return self._take_rows()

    def take_oldest(self, *, older_than: int | None = None) -> Finish | Read | None:
        """Reject the oldest batch; None if none is ready, or none is `older_than` the time.

        Units: microseconds since 1970-01-01 UTC.
        """
        if older_than is None and self._returned:
            oldest = self._returned.pop(0)
        elif self._returned:
            return None
        elif not self._rows:
            return self._next_read()
        elif older_than is None:
            oldest = self._take_rows()
        elif self._rows[0].time < older_than:
            oldest = self._join(self._taken([self._rows.popleft()]))
        else:
            return None
        if older_than is None:
            reason = f"the spool of {self._name} is full, and this was its oldest"
            oldest.settle_rest(rejected("spool-full", reason))
        else:
            reason = f"it waited longer than {self.limits.seconds:g} s for {self._name}"
            oldest.settle_rest(rejected("spool-age", reason))
        return Finish(oldest)

    def empty(self) -> bool:
        return not (self._returned or self._rows or self._pending or self._last_read < self._stored)

    def freed(self, messages: int, size: int) -> None:
        """Messages of this backlog have their outcome; `size` is their bytes on disk."""
        self.messages -= messages
        self.bytes -= size

    def _next_read(self) -> Read | None:
        """The rows to read: all durable ones that no earlier number holds back."""
        end = min(self._pending, default=None)
        if self._last_read >= (self._stored if end is None else min(self._stored, end - 1)):
            return None
        return Read(self._last_read, end)

    def _take_rows(self) -> QueuedBatch:
        """The next rows that were read; small batches are taken as one."""
        first = self._rows.popleft()
        taken, count = [first], first.messages
        while (
            self._rows
            and count < MAX_JOINED
            and self._is_tried(first) is self._is_tried(self._rows[0])
        ):
            taken.append(self._rows.popleft())
            count += taken[-1].messages
        return self._join(self._taken(taken))

    def _taken(self, rows: Sequence[SpoolRow]) -> RowsTaken:
        return RowsTaken(tuple(rows), self._is_tried(rows[0]))

    def _is_tried(self, row: SpoolRow) -> bool:
        return row.number <= self._last_tried


def refuse_newest(queued: QueuedBatch, name: str) -> Finish:
    """Reject a batch for which the spool of `name` has no room."""
    queued.settle_rest(rejected("spool-full", f"the spool of {name} is full"))
    return Finish(queued)


def _number(queued: QueuedBatch) -> int:
    return queued.number
