"""The spool of one target: the rows of its backlog in the database of the gateway."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, cast

from gateway.clock import now
from gateway.errors import SpoolError
from gateway.model.memory_size import messages_size
from gateway.model.message import Message
from gateway.model.outcome import Settlement, rejected
from gateway.runtime.delivery.actions import Action, Mark, Read, Store
from gateway.runtime.delivery.backlog import (
    RowsTaken,
    SpoolBacklog,
    SpoolLimits,
    SpoolRow,
    SpoolTotals,
)
from gateway.runtime.delivery.batch import OutboundBatch, PendingRow, QueuedBatch
from gateway.runtime.delivery.dead_letter import SPOOL_DAMAGED, DeadLetter
from gateway.runtime.outbound.checksum import check, checksum
from gateway.runtime.outbound.spool_codec import pack_batch, select_pending, unpack_batch
from gateway.runtime.outbound.spool_db import Change, SpoolDatabase
from gateway.runtime.record.ledger import Ledger, SpooledBatch

log = logging.getLogger(__name__)

READ_BYTES: Final = 4 << 20  # read from disk at once
DISK_TIMEOUT: Final = 10.0  # seconds between two warnings that a mark is not durable

Tell: TypeAlias = Callable[[Callable[[], Iterable[Action] | None]], None]

_INSERT: Final = (
    "INSERT INTO batches (number, endpoint, messages, size, time, body, checksum)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_SET_MARK: Final = (
    "INSERT INTO marks (endpoint, number) VALUES (?, ?)"
    " ON CONFLICT (endpoint) DO UPDATE SET number = excluded.number"
)
_INSERT_ROUTE: Final = (  # a damaged file may have a stale one
    "INSERT OR REPLACE INTO batch_routes (number, route, endpoint, time) VALUES (?, ?, ?, ?)"
)
_DELETE: Final = "DELETE FROM batches WHERE number = ?"
_DELETE_ROUTES: Final = "DELETE FROM batch_routes WHERE number = ?"
_OLDEST_OF_ROUTE: Final = (
    "SELECT time FROM batch_routes WHERE endpoint = ? AND route = ? ORDER BY number LIMIT 1"
)
_TOTALS: Final = (
    "SELECT COALESCE(MAX(number), 0), COALESCE(SUM(CAST(messages AS INTEGER)), 0),"
    " COALESCE(SUM(CAST(size AS INTEGER)), 0) FROM batches WHERE endpoint = ?"
)
_NEXT: Final = (  # a damaged row may have values of other types
    "SELECT number, COALESCE(CAST(time AS INTEGER), 0), COALESCE(CAST(messages AS INTEGER), 0),"
    " checksum, COALESCE(CAST(body AS BLOB), x'') FROM batches"
    " WHERE endpoint = ? AND number > ? AND number < ? ORDER BY number"
)
_MARK: Final = "SELECT COALESCE(CAST(number AS INTEGER), 0) FROM marks WHERE endpoint = ?"
_ROUTES: Final = "SELECT route FROM batch_routes WHERE number = ?"
_NO_END: Final = 2**63 - 1


class Spool:
    """The backlog of one target on disk.

    The spool is responsible for a batch from the moment its row is durable until the target's
    answer is recorded; the source is settled when the row is durable.
    Thread-safe: the backlog is guarded by its lane, which sets `tell`.
    """

    def __init__(
        self, endpoint: str, database: SpoolDatabase, ledger: Ledger, limits: SpoolLimits
    ) -> None:
        self._endpoint = endpoint
        self._database = database
        self._ledger = ledger
        last, messages, size = (int(str(each)) for each in database.rows(_TOTALS, [endpoint])[0])
        marked = database.rows(_MARK, [endpoint])
        totals = SpoolTotals(last, messages, size, int(str(marked[0][0])) if marked else 0)
        self.backlog = SpoolBacklog(endpoint, limits, totals, database.next_number, self._join)
        self.tell: Tell  # applies an event under the lock of the lane, which sets it
        self._stopping = False
        self._durable = threading.Event()  # of the last mark

    def wait_for_disk(self) -> None:
        """Wait while many bytes are queued for the disk, as with a slow or full one."""
        self._database.wait_for_room()

    def perform(self, action: Store | Read | Mark) -> None:
        match action:
            case Store(queued):
                self._store(queued)
            case Read():
                self._read(action)
            case Mark(number):
                self._mark(number)

    def stop(self) -> None:
        """End a wait for a mark."""
        self._stopping = True
        self._durable.set()

    def oldest(self) -> int | None:
        """The time the oldest batch was put, in microseconds; None if the spool is empty."""
        query = "SELECT time FROM batches WHERE endpoint = ? ORDER BY number LIMIT 1"
        found = self._database.rows(query, [self._endpoint])
        return int(str(found[0][0])) if found else None

    def oldest_of(self, route: str) -> int | None:
        """The time the oldest batch with a message of `route` was put, as in `oldest`."""
        found = self._database.rows(_OLDEST_OF_ROUTE, [self._endpoint, route])
        return int(str(found[0][0])) if found else None

    def _store(self, queued: QueuedBatch) -> None:
        """Write the unsettled messages; those without a form on disk are rejected."""
        (body, routes), messages, time = self._pack(queued), len(queued.unsettled), now()
        found = checksum(body, (queued.number, self._endpoint, time, messages))
        changes: list[Change] = [
            (_INSERT, (queued.number, self._endpoint, messages, len(body), time, body, found))
        ]
        changes += [(_INSERT_ROUTE, (queued.number, each, self._endpoint, time)) for each in routes]

        def written() -> Iterable[Action] | None:
            finish = self.backlog.written(queued, len(body))
            return [finish] if finish else None

        self.tell(written)
        if messages:
            with suppress(SpoolError):  # closed: the source keeps the batch
                self._database.put(changes, lambda: self._stored(queued), len(body))
        self.tell(lambda: self.backlog.queued_for_disk(queued))

    def _stored(self, queued: QueuedBatch) -> None:
        self.tell(lambda: [self.backlog.stored(queued)])

    def _pack(self, queued: QueuedBatch) -> tuple[bytes, set[str]]:
        try:
            return _pack_unsettled(queued)
        except SpoolError:
            unstorable = [at for at in queued.unsettled if not _is_storable(queued.messages([at]))]
            reason = f"{self._endpoint} is away, and a value has no form on disk"
            queued.settle(unstorable, [rejected("unstorable", reason)] * len(unstorable))
            return _pack_unsettled(queued)

    def _read(self, request: Read) -> None:
        values = [self._endpoint, request.after, request.before or _NO_END]
        found = self._database.rows_up_to(READ_BYTES, _NEXT, values)
        rows = [
            SpoolRow(
                int(str(number)),
                int(str(time)),
                int(str(messages)),
                cast("bytes", body),
                cast("bytes", stored),
            )
            for number, time, messages, stored, body in found
        ]
        self.tell(lambda: self.backlog.read(rows, request))

    def _mark(self, number: int) -> None:
        """Note on disk that the rows up to `number` are about to be sent; wait until it is so.

        Without the mark a later run could not tell that its copies are repeated ones.
        """
        durable = self._durable = threading.Event()

        def marked() -> None:
            self.tell(lambda: self.backlog.marked(number))
            durable.set()

        with suppress(SpoolError):  # closed: the run ends
            self._database.put([(_SET_MARK, (self._endpoint, number))], marked)
        while not self._stopping and not durable.wait(DISK_TIMEOUT):
            log.warning("the spool of %s waits for the disk", self._endpoint)

    def _join(self, taken: RowsTaken) -> QueuedBatch:
        """One batch of several rows."""
        at = self._ledger.clock()
        messages: list[Message] = []
        pending: list[PendingRow] = []
        rows: list[SpoolRow] = []
        for row in taken.rows:
            offset = len(messages)
            try:
                more, its_pending = self._unpack(row)
            except SpoolError as error:
                self._set_aside(row, str(error))
                continue
            rows.append(row)
            messages += more
            for each in its_pending:
                moved = tuple(position + offset for position in each.positions)
                pending.append(PendingRow(moved, each.rows, each.source))
        numbers = [row.number for row in rows]
        size_on_disk = sum(len(row.body) for row in rows)

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            self.tell(lambda: self.backlog.freed(len(messages), size_on_disk))
            self._ledger.record_spooled(
                SpooledBatch(messages, pending, at),
                settlements,
                attempts,
                lambda: self._delete(numbers),
            )

        batch = OutboundBatch(messages, messages_size(messages), done, lambda: pending)
        # the attempt of an earlier run counts, if it may have sent the batch
        return QueuedBatch(batch, taken.rows[0].number, stored=True, attempts=int(taken.tried))

    def _unpack(self, row: SpoolRow) -> tuple[list[Message], list[PendingRow]]:
        check(row.body, (row.number, self._endpoint, row.time, row.messages), row.checksum)
        return unpack_batch(row.body)

    def _set_aside(self, row: SpoolRow, reason: str) -> None:
        """Make a damaged row a dead letter, which no command sends."""
        log.error("row %d is damaged and is not sent: %s", row.number, reason,
                  extra={"endpoint": self._endpoint})  # fmt: skip
        self.backlog.freed(row.messages, len(row.body))
        at, routes = self._ledger.clock(), "unknown"
        with suppress(SpoolError):  # the file is damaged
            found = self._database.rows(_ROUTES, [row.number])
            routes = ", ".join(str(route) for (route,) in found) or routes
        letter = DeadLetter(
            0, at, at.to_bytes(8) + row.number.to_bytes(8), routes, "", "",
            self._endpoint, self._endpoint, SPOOL_DAMAGED,
            f"row {row.number} of {row.messages} messages: {reason}", 0, Message("", row.body),
        )  # fmt: skip
        self._ledger.record_damaged(letter, lambda: self._delete([row.number]))

    def _delete(self, numbers: Sequence[int]) -> None:
        changes: list[Change] = [
            (delete, (number,)) for number in numbers for delete in (_DELETE, _DELETE_ROUTES)
        ]
        with suppress(SpoolError):  # closed: the next run reads them again
            self._database.put(changes, _nothing)


def _pack_unsettled(queued: QueuedBatch) -> tuple[bytes, set[str]]:
    """The bytes of the unsettled messages, and their routes."""
    pending = select_pending(queued.batch.pending_rows(), queued.unsettled, queued.attempts)
    routes = {str(each.rows.common["route"]) for each in pending}
    return pack_batch(queued.messages(queued.unsettled), pending), routes


def _is_storable(messages: Sequence[Message]) -> bool:
    try:
        pack_batch(messages, [])
    except SpoolError:
        return False
    return True


def _nothing() -> None:
    """Ignore that a deletion is durable."""
