"""The backlog of one target on disk: in order, and within limits of bytes, messages and age."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from gateway.clock import now
from gateway.errors import SpoolError
from gateway.model.memory_size import messages_size
from gateway.model.message import Message
from gateway.model.outcome import SPOOLED, Settlement, rejected
from gateway.routing.route import WhenFull
from gateway.runtime.outbound.backlog import OutboundBatch, QueuedBatch
from gateway.runtime.outbound.spool_codec import (
    PendingRow,
    pack_batch,
    select_pending,
    unpack_batch,
)
from gateway.runtime.outbound.spool_db import Change, SpoolDatabase
from gateway.runtime.record.ledger import Ledger, SpooledBatch

log = logging.getLogger(__name__)

READ_BYTES: Final = 4 << 20  # read from disk at once
MAX_JOINED: Final = 1_000  # messages of small batches that are taken as one
DISK_TIMEOUT: Final = 10.0  # seconds for one write to become durable

_INSERT: Final = (
    "INSERT INTO parcels (number, endpoint, messages, size, time, body) VALUES (?, ?, ?, ?, ?, ?)"
)
_SET_HANDED: Final = (
    "INSERT INTO handed (endpoint, number) VALUES (?, ?)"
    " ON CONFLICT (endpoint) DO UPDATE SET number = excluded.number"
)
_DELETE: Final = "DELETE FROM parcels WHERE number = ?"
_TOTALS: Final = (
    "SELECT COALESCE(MAX(number), 0), COALESCE(SUM(messages), 0), COALESCE(SUM(size), 0)"
    " FROM parcels WHERE endpoint = ?"
)
_NEXT: Final = (
    "SELECT number, time, body FROM parcels WHERE endpoint = ? AND number > ? ORDER BY number"
)


@dataclass(frozen=True, slots=True)
class SpoolLimits:
    """Limits of the spool of one target: bytes on disk, messages, and age in seconds."""

    bytes: int
    messages: int | None = None
    seconds: float | None = None


@dataclass(slots=True)
class _StoredBatch:
    """A batch read from disk; `size` is its bytes on disk."""

    number: int
    size: int
    messages: list[Message]
    pending: list[PendingRow]


class Spool:
    """The backlog of one target on disk.

    The spool is responsible for a batch from the moment its row is durable until the target's
    answer is recorded. `on_disk` is true: the source is settled when the row is durable.

    Thread-safe: self._take_lock guards the batches that were read, self._room the totals.
    """

    on_disk = True

    def __init__(
        self, endpoint: str, database: SpoolDatabase, ledger: Ledger, limits: SpoolLimits
    ) -> None:
        self.limits = limits
        self._endpoint = endpoint
        self._database = database
        self._ledger = ledger
        self._room = threading.Condition()
        self._stopping = False
        self._take_lock = threading.Lock()
        self._returned: deque[QueuedBatch] = deque()  # taken and put back
        self._read_rows: deque[tuple[int, int, bytes]] = deque()  # number, time, body
        self._last_read = 0  # the number of the last row that was read
        totals = database.rows(_TOTALS, [endpoint])[0]
        # `_last_put` is the number of the last row that was put
        self._last_put, self.messages, self.bytes = (int(str(each)) for each in totals)
        self._last_inherited = self._last_put  # rows up to here are from an earlier run
        handed = database.rows("SELECT number FROM handed WHERE endpoint = ?", [endpoint])
        self._handed = int(str(handed[0][0])) if handed else 0  # as on disk
        self._last_tried = self._handed  # an earlier run may have sent the rows up to here

    def next_number(self) -> int:
        return self._database.next_number()

    def admit(self, batch: OutboundBatch) -> bool:
        """Wait for room, or reject the oldest or this batch, as its `when_full` says.

        Return false if this batch was rejected, or the spool is stopping.
        """
        self._database.wait_for_room()
        if self._fits(batch):
            return True
        match batch.when_full:
            case WhenFull.SLOW:
                with self._room:
                    self._room.wait_for(lambda: self._stopping or self._fits(batch))
                return not self._stopping
            case WhenFull.NEWEST:
                reason = f"the spool of {self._endpoint} is full"
                _finish_all(QueuedBatch(batch, 0), rejected("spool-full", reason))
                return False
            case WhenFull.OLDEST:
                reason = f"the spool of {self._endpoint} is full, and this was its oldest"
                while not self._fits(batch) and (oldest := self._take_oldest()) is not None:
                    _finish_all(oldest, rejected("spool-full", reason))
                return True

    def put(self, queued: QueuedBatch) -> None:
        """Append the batch; it is finished as spooled when it is durable."""
        self._write(queued, self._pack(queued))

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        """Put stored batches back for the next `take`, and write the others to disk.

        A batch that is written keeps its number, and so its place before newer batches; `take`
        must not pass it, hence the wait until it is durable.
        """
        given = list(batches)
        with self._take_lock:
            self._returned.extendleft(reversed([each for each in given if each.stored]))
        unstored = [each for each in given if not each.stored]
        for each in unstored:
            self._write(each, self._pack(each))
        while unstored and not self._stopping and not self._database.flush(DISK_TIMEOUT):
            log.warning("the spool of %s waits for the disk", self._endpoint)

    def take(self) -> QueuedBatch | None:
        """The next durable batch, small ones joined; None if there is none."""
        with self._take_lock:
            return self._take()

    def _take(self) -> QueuedBatch | None:
        if self._returned:
            return self._returned.popleft()
        if not self._read_rows:
            self._read()
        taken: list[_StoredBatch] = []
        count = 0
        while self._read_rows and count < MAX_JOINED:
            if taken and self._history(self._read_rows[0][0]) != self._history(taken[0].number):
                break  # batches with another history are recorded in another way
            stored = self._unpack_next()
            taken.append(stored)
            count += len(stored.messages)
        return self._join(taken) if taken else None

    def empty(self) -> bool:
        return not self._returned and not self._read_rows and self._last_read >= self._last_put

    def stop(self) -> None:
        with self._room:
            self._stopping = True
            self._room.notify_all()

    def expire(self) -> None:
        if self.limits.seconds is None:
            return
        oldest = now() - int(self.limits.seconds * 1_000_000)
        while (queued := self._take_older_than(oldest)) is not None:
            reason = f"it waited longer than {self.limits.seconds:g} s for {self._endpoint}"
            _finish_all(queued, rejected("spool-age", reason))

    def _take_older_than(self, time: int) -> QueuedBatch | None:
        """Take the first batch on disk if it was put before `time`, in microseconds."""
        with self._take_lock:
            if self._returned or not (self._read_rows or self._read()):
                return None
            return self._join([self._unpack_next()]) if self._read_rows[0][1] < time else None

    def oldest(self) -> int | None:
        """The time the oldest batch was put, in microseconds; None if the spool is empty."""
        query = "SELECT time FROM parcels WHERE endpoint = ? ORDER BY number LIMIT 1"
        found = self._database.rows(query, [self._endpoint])
        return int(str(found[0][0])) if found else None

    def _fits(self, batch: OutboundBatch) -> bool:
        maximum = self.limits.messages
        too_many = maximum is not None and self.messages + len(batch.messages) > maximum
        return not self.messages or not (too_many or self.bytes + batch.size > self.limits.bytes)

    def _take_oldest(self) -> QueuedBatch | None:
        queued = self.take()
        if queued is None and self.messages:  # they are not durable yet
            self._database.flush(DISK_TIMEOUT)
            queued = self.take()
        return queued

    def _pack(self, queued: QueuedBatch) -> bytes:
        """The bytes of the unsettled messages; those without a form on disk are rejected."""
        try:
            return _pack_unsettled(queued)
        except SpoolError:
            unstorable = [at for at in queued.unsettled if not _is_storable(queued.messages([at]))]
            reason = f"{self._endpoint} is away, and a value has no form on disk"
            queued.settle(unstorable, [rejected("unstorable", reason)] * len(unstorable))
            return _pack_unsettled(queued)

    def _write(self, queued: QueuedBatch, body: bytes) -> None:
        number, messages = queued.number, len(queued.unsettled)
        if not messages:
            queued.finish()
            return
        queued.settle(queued.unsettled, [SPOOLED] * messages)
        with self._room:
            self.messages += messages
            self.bytes += len(body)
        self._last_put = max(self._last_put, number)
        row = (number, self._endpoint, messages, len(body), now(), body)
        with suppress(SpoolError):  # closed: the source keeps the batch
            self._database.put([(_INSERT, row)], queued.finish, len(body))

    def _read(self) -> bool:
        """Read the next rows and note on disk that they are about to be sent."""
        found = self._database.rows_up_to(READ_BYTES, _NEXT, [self._endpoint, self._last_read])
        if not found:
            return False
        rows = [(int(str(number)), int(str(time)), body) for number, time, body in found]
        self._read_rows.extend((number, time, _bytes(body)) for number, time, body in rows)
        self._last_read = rows[-1][0]
        if self._last_read > self._handed:
            self._handed = self._last_read
            durable = threading.Event()
            self._database.put([(_SET_HANDED, (self._endpoint, self._handed))], durable.set)
            durable.wait(DISK_TIMEOUT)
        return True

    def _history(self, number: int) -> tuple[bool, bool]:
        """Whether an earlier run put row `number`, and whether it may have sent it."""
        return number <= self._last_inherited, number <= self._last_tried

    def _unpack_next(self) -> _StoredBatch:
        number, _, body = self._read_rows.popleft()
        messages, pending = unpack_batch(body)
        return _StoredBatch(number, len(body), messages, pending)

    def _join(self, stored: Sequence[_StoredBatch]) -> QueuedBatch:
        """One batch of several stored ones with the same history."""
        messages = [message for each in stored for message in each.messages]
        pending: list[PendingRow] = []
        offset = 0
        for each in stored:
            for row in each.pending:
                moved = tuple(position + offset for position in row.positions)
                pending.append(PendingRow(moved, row.rows, row.source))
            offset += len(each.messages)
        numbers = [each.number for each in stored]
        size_on_disk = sum(each.size for each in stored)
        inherited, tried = self._history(numbers[0])

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            self._subtract(len(messages), size_on_disk)
            spooled = SpooledBatch(messages, pending, inherited)
            self._ledger.record_spooled(spooled, settlements, attempts, recorded)

        def recorded() -> None:
            changes: list[Change] = [(_DELETE, (number,)) for number in numbers]
            with suppress(SpoolError):  # closed: they are sent again, with a higher attempt
                self._database.put(changes, _nothing)

        batch = OutboundBatch(messages, messages_size(messages), done, lambda: pending)
        # the attempt of an earlier run counts, if it may have sent the batch
        return QueuedBatch(batch, numbers[0], stored=True, attempts=int(tried))

    def _subtract(self, messages: int, size: int) -> None:
        with self._room:
            self.messages -= messages
            self.bytes -= size
            self._room.notify_all()


def _pack_unsettled(queued: QueuedBatch) -> bytes:
    pending = select_pending(queued.batch.pending_rows(), queued.unsettled, queued.attempts)
    return pack_batch(queued.messages(queued.unsettled), pending)


def _is_storable(messages: Sequence[Message]) -> bool:
    try:
        pack_batch(messages, [])
    except SpoolError:
        return False
    return True


def _finish_all(queued: QueuedBatch, settlement: Settlement) -> None:
    """Finish the batch with one settlement for all its unsettled messages."""
    queued.settle(queued.unsettled, [settlement] * len(queued.unsettled))
    queued.finish()


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("the body of a batch is no blob; the spool's file is damaged")
    return value


def _nothing() -> None:
    """Ignore that a deletion is durable."""
