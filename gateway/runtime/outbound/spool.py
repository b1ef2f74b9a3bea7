"""The spool of one target: the rows of its backlog in the database of the gateway."""

from __future__ import annotations

import logging
import threading
from collections.abc import Container, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from gateway.clock import now
from gateway.errors import SpoolError
from gateway.model.dead_letter_rule import SPOOL_DAMAGED, UNSTORABLE
from gateway.model.message import Message
from gateway.model.outcome import rejected
from gateway.runtime.delivery.actions import Read
from gateway.runtime.delivery.backlog import SpoolBacklog, SpoolLimits, SpoolTotals
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow, SpoolRow
from gateway.runtime.outbound.spool_codec import (
    check,
    checksum,
    pack_batch,
    select_pending,
    unpack_batch,
)
from gateway.runtime.outbound.spool_db import MARK_TRIED, Change, Durable, SpoolDatabase
from gateway.runtime.record.batch_recorder import BatchRecorder

log = logging.getLogger(__name__)

READ_BYTES: Final = 4 << 20  # read from disk at once
DISK_TIMEOUT: Final = 10.0  # seconds between two warnings that a mark is not durable

Packed: TypeAlias = tuple[bytes, set[str]]  # its bytes, and the routes of its messages

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
# A damaged row may have values of other types.
_OLDEST: Final = (
    "SELECT CAST(number AS INTEGER), CAST(time AS INTEGER) FROM batches WHERE endpoint = ?"
    " AND number NOT IN (SELECT number FROM held) ORDER BY number LIMIT 1"
)
_OLDEST_OF_ROUTE: Final = (
    "SELECT CAST(number AS INTEGER), CAST(time AS INTEGER) FROM batch_routes"
    " WHERE endpoint = ? AND route = ? AND number NOT IN (SELECT number FROM held)"
    " ORDER BY number LIMIT 1"
)
_TOTALS: Final = (
    "SELECT COALESCE(MAX(number), 0),"
    " COALESCE(SUM(CAST(messages AS INTEGER)) FILTER (WHERE ready), 0),"
    " COALESCE(SUM(CAST(size AS INTEGER)) FILTER (WHERE ready), 0) FROM"
    " (SELECT *, number NOT IN (SELECT number FROM held) AS ready FROM batches"
    " WHERE endpoint IN (?, ?))"
)
_ROWS: Final = (
    "SELECT endpoint, number, COALESCE(CAST(time AS INTEGER), 0),"
    " COALESCE(CAST(messages AS INTEGER), 0), checksum, COALESCE(CAST(body AS BLOB), x'')"
    " FROM batches WHERE endpoint = ?"
)
_NEXT_OF_NAME: Final = (
    _ROWS + "{} AND number > ?3 AND number < ?4 AND number NOT IN (SELECT number FROM held)"  # noqa: S608  # constants
)
_HOLD: Final = "INSERT INTO held (number) VALUES (?)"
_TRY_HELD: Final = "UPDATE held SET tried = 1 WHERE number = ?"
_MAY_CUT: Final = "UPDATE held SET newer = ?, stands = ?, facts = ? WHERE number = ?"
_KEEP_SPARE: Final = "UPDATE held SET newer = NULL WHERE newer = ?"
_LEFT_SPARES: Final = (
    "SELECT number, stands, facts FROM held WHERE newer IS NOT NULL AND number IN"
    " (SELECT number FROM batches WHERE endpoint IN (?, ?))"
)
_END_HOLD: Final = "DELETE FROM held WHERE number = ?"
_END_HOLDS: Final = (
    "DELETE FROM held WHERE newer IS NULL"
    " AND number IN (SELECT number FROM batches WHERE endpoint = ?)"
)
# The indexes of two names are merged: the rows are not sorted, and only those of the answer read.
_NEXT: Final = f"{_NEXT_OF_NAME.format(1)} UNION ALL {_NEXT_OF_NAME.format(2)} ORDER BY number"
_MARK: Final = (
    "SELECT COALESCE(MAX(CAST(number AS INTEGER)), 0) FROM marks WHERE endpoint IN (?, ?)"
)
_WAITING: Final = (
    "SELECT CAST(endpoint AS TEXT), COALESCE(SUM(CAST(messages AS INTEGER)), 0) FROM batches"
    " GROUP BY endpoint ORDER BY endpoint"
)
_ROUTES: Final = "SELECT route FROM batch_routes WHERE number = ?"


class Spare(NamedTuple):
    """A held copy in the place of a `newer` one that is sent, by their numbers.

    `stands` is the id of that one, `facts` are for the row that says so.
    """

    number: int
    newer: int
    stands: bytes
    facts: bytes


class Spool:
    """The backlog of one target on disk.

    The spool is responsible for a batch from the moment its row is durable until the target's
    answer is recorded; the source is settled when the row is durable.

    A row is under the name that the endpoint had first, its key. So a rename changes no row, and a
    crash in it loses none. Rows under its present name are those of a run without `was`.
    Thread-safe: the database has its own lock; the backlog is guarded by that of the lane.
    """

    def __init__(
        self,
        endpoint: str,
        database: SpoolDatabase,
        recorder: BatchRecorder,
        limits: SpoolLimits,
        first_name: str = "",
    ) -> None:
        """`first_name` of the endpoint, where a rename gave it another one."""
        self._endpoint = endpoint
        self._key = first_name or endpoint
        self._second = endpoint if first_name else ""  # no endpoint has the name ""
        self._database = database
        self.recorder = recorder
        names = [self._key, self._second]
        # The higher mark is for both: a row that was not tried may be marked without need.
        ((marked,),) = database.rows(_MARK, names)
        ((last, messages, size),) = database.rows(_TOTALS, names)
        totals = SpoolTotals(last, messages, size, marked)
        self.backlog = SpoolBacklog(endpoint, limits, totals, database.next_number, self)
        self._stopping = False
        self._durable = threading.Event()  # of the last mark
        self._tried = threading.Event()  # of the last held copies that are sent
        self._stopping_held = False

    @property
    def names(self) -> frozenset[str]:
        """The names under which it has rows."""
        return frozenset({self._key, self._second} - {""})

    def rename(self, endpoint: str) -> None:
        """Use another name of the endpoint in texts; its rows stay as they are."""
        self._endpoint = self.backlog.name = endpoint

    def wait_for_disk(self) -> None:
        """Wait while many bytes are queued for the disk, as with a slow or full one."""
        self._database.wait_for_room()

    def stop(self) -> None:
        """End a wait for a mark."""
        self._stopping = True
        self._durable.set()
        self._tried.set()

    def stop_held(self) -> None:
        """End a wait for held copies that are sent."""
        self._stopping_held = True
        self._tried.set()

    def waited(self, *route: str) -> float:
        """The seconds for which the oldest batch, or that with a message of a route, has waited.

        0 if there is none, or if its time is damaged.
        """
        if not self.backlog.messages:
            return 0.0
        query = _OLDEST_OF_ROUTE if route else _OLDEST
        found = [row for name in self.names for row in self._database.rows(query, [name, *route])]
        _, since = min(found, default=(0, 0))
        return max(0.0, (now() - since) / 1_000_000) if since else 0.0

    def pack(self, batch: OutboundBatch) -> Packed:
        """The bytes and the routes of the unsettled messages; those without a form are rejected."""
        try:
            return _pack_unsettled(batch)
        except SpoolError:
            unstorable = [at for at in batch.unsettled if not _is_storable(batch.messages_at([at]))]
            reason = f"{self._endpoint} is away, and a value has no form on disk"
            batch.settle(unstorable, [rejected(UNSTORABLE, reason)] * len(unstorable))
            return _pack_unsettled(batch)

    def write(
        self, number: int, messages: int, packed: Packed, durable: Durable, *, held: bool = False
    ) -> None:
        """Write a packed batch with so many messages, and call `durable` when it is on disk.

        One that is `held` is not among those that `read` returns.
        """
        (body, routes), time = packed, now()
        found = checksum(body, (number, self._key, time, messages))
        row = number, self._key, messages, len(body), time, body, found
        changes: list[Change] = [(_INSERT, row)]
        changes += [(_INSERT_ROUTE, (number, each, self._key, time)) for each in routes]
        changes += [(_HOLD, (number,))] * held
        with suppress(SpoolError):  # closed: the source keeps the batch
            self._database.put(changes, durable, len(body))

    def read(self, request: Read) -> list[SpoolRow]:
        """The rows of a request, at least one if there is any."""
        values = [self._key, self._second, request.after, request.before]
        return [self._unpack(*row) for row in self._database.rows(_NEXT, values, size=READ_BYTES)]

    def mark(self, number: int) -> int:
        """Note on disk that the rows up to `number` are about to be sent; wait until it is so.

        Without the mark a later run could not tell that its copies are repeated ones. Return the
        number, or 0 if it is not on disk: a stop does not wait for it.
        """
        durable = self._durable = threading.Event()
        with suppress(SpoolError):  # closed: the run ends
            self._database.put([(_SET_MARK, (self._key, number))], durable.set)
        return number if self._wait_for(durable) else 0

    def _wait_for(self, durable: threading.Event) -> bool:
        while not self._stopping and not durable.wait(DISK_TIMEOUT):
            log.warning("the spool of %s waits for the disk", self._endpoint)
        return durable.is_set()

    # Copies that wait for the end of an interval

    def read_held(self, numbers: Sequence[int]) -> list[SpoolRow]:
        """The held rows with these numbers, in their order.

        Raises:
            SpoolError: the file cannot be read.
        """
        query = f"{_ROWS} AND number IN ({', '.join('?' * len(numbers))}) ORDER BY number"
        found = self._database.rows(query, [self._key, *numbers])
        return [self._unpack(*row) for row in found]

    def try_held(self, numbers: Sequence[int], spares: Sequence[Spare]) -> bool:
        """Note on disk that held rows are about to be sent; return whether it is there.

        Without the note a later run could not tell that their copies are repeated ones, and that
        the target may have them before the `spares`.
        """
        tried = self._tried = threading.Event()
        if self._stopping_held:
            return False
        with suppress(SpoolError):  # closed: the run ends
            changes: list[Change] = [(_TRY_HELD, (each,)) for each in numbers]
            changes += [
                (_MAY_CUT, (each.newer, each.stands, each.facts, each.number)) for each in spares
            ]
            self._database.put(changes, tried.set)
        return self._wait_for(tried) and not self._stopping_held

    def delete_held(self, numbers: Sequence[int], then: Durable) -> None:
        """Delete held rows, which have their outcome; `then` is called when they are gone.

        A spare that is left is no longer a spare.
        """
        self._delete(numbers, then, (_KEEP_SPARE, _END_HOLD, _DELETE, _DELETE_ROUTES))

    def left_spares(self) -> list[Spare]:
        """The spares of an earlier run whose newer copies it may have sent."""
        found = self._database.rows(_LEFT_SPARES, [self._key, self._second])
        return [Spare(number, 0, bytes(stands), bytes(facts)) for number, stands, facts in found]

    def end_holds(self) -> None:
        """Let all held rows wait like others: this run sends none of them any more."""
        with suppress(SpoolError):  # closed: the next run does it
            changes: list[Change] = [(MARK_TRIED, ()), (_END_HOLDS, (self._key,))]
            self._database.put(changes, lambda: None)

    def answered(self, batch: OutboundBatch) -> None:
        """Record the answers of a batch that was on disk, then delete its rows."""
        for row in batch.rows:
            if row.letter is not None:
                reason = row.letter.reason
                log.error(
                    "a row is damaged and is not sent: %s",
                    reason,
                    extra={"endpoint": self._endpoint},
                )
                self.recorder.record_damaged(row.letter, partial(self._delete, [row.number]))
        whole = [row.number for row in batch.rows if row.letter is None]
        if whole:
            self.recorder.record_spooled(batch, partial(self._delete, whole))

    def pending_rows(self, batch: OutboundBatch) -> list[PendingRow]:
        """The rows of a batch that was on disk; it is never written again."""
        return [pending for row in batch.rows for pending in row.pending]

    def _unpack(  # the columns of a row
        self, name: str, number: int, time: int, count: int, stored: bytes, body: bytes
    ) -> SpoolRow:
        at = self.recorder.clock()
        try:
            check(body, (number, name, time, count), stored)
            messages, pending = unpack_batch(body)
        except SpoolError as error:
            reason = f"row {number} of {count} messages: {error}"
            letter = self._damaged(number, at, reason, body)
            return SpoolRow(number, time, len(body), count, (), letter=letter)
        return SpoolRow(number, time, len(body), count, messages, pending, at)

    def _damaged(self, number: int, at: int, reason: str, body: bytes) -> DeadLetter:
        """A dead letter of a damaged row, which no command sends."""
        routes = "unknown"
        with suppress(SpoolError):  # the file is damaged
            found = self._database.rows(_ROUTES, [number])
            routes = ", ".join(str(route) for (route,) in found) or routes
        return DeadLetter(
            0,
            at,
            at.to_bytes(8) + number.to_bytes(8),
            routes,
            "",
            "",
            self._endpoint,
            self._endpoint,
            SPOOL_DAMAGED,
            reason,
            0,
            Message("", body),
        )

    def _delete(
        self,
        numbers: Sequence[int],
        then: Durable = lambda: None,
        deletes: Sequence[str] = (_DELETE, _DELETE_ROUTES),
    ) -> None:
        changes: list[Change] = [(delete, (number,)) for number in numbers for delete in deletes]
        with suppress(SpoolError):  # closed: the next run reads them again
            self._database.put(changes, then)


def stranded(database: SpoolDatabase, targets: Container[str]) -> tuple[tuple[str, int], ...]:
    """Return the endpoints that are not a target now, with their messages on disk.

    They stay there until a route sends to an endpoint of that name again.
    """
    with suppress(SpoolError):  # reported where the spool is written
        return tuple(
            (name, number) for name, number in database.rows(_WAITING) if name not in targets
        )
    return ()


def _pack_unsettled(batch: OutboundBatch) -> Packed:
    pending = select_pending(batch.origin.pending_rows(batch), batch.unsettled, batch.attempts)
    routes = {str(each.rows.common["route"]) for each in pending}
    return pack_batch(batch.messages_at(batch.unsettled), pending), routes


def _is_storable(messages: Sequence[Message]) -> bool:
    try:
        pack_batch(messages, [])
    except SpoolError:
        return False
    return True
