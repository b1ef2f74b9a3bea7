"""The copies of one target that wait in the spool for the end of an interval, and their thread.

A held copy: a row of the spool that its lane does not read, under a number of its own. Written:
when it is the newest of its name in an interval; its source is settled when the row is durable.
Replaced: by a newer row; then it gets its cut, and is deleted. Sent: at the end of the interval,
read from the disk, by way of the lane, like a message that comes from a source then. Deleted: when
its outcome is recorded, or when the spool of the lane has it. After a crash, a stop, or without its
target: an ordinary row of the spool, in its place.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final, TypeAlias

from gateway.archive.journal.records import Rows
from gateway.errors import SpoolError
from gateway.model.cut_class import THINNED
from gateway.model.outcome import SPOOLED
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow, SpoolRow
from gateway.runtime.delivery.thinning import (
    Candidate,
    Course,
    HeldCopy,
    Interval,
    Key,
    Rules,
    Thinning,
)
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.outbound.spool_codec import pack_batch, unpack_batch
from gateway.runtime.record.counters import EndpointState

log = logging.getLogger(__name__)

MAX_JOINED: Final = 1_000  # held copies that are sent together
MAX_PART_BYTES: Final = 1 << 20  # of them
READ_PAUSE: Final = 1.0  # seconds between attempts to read a spool that cannot be read

Deliver: TypeAlias = Callable[[OutboundBatch], None]


class HeldCopies:
    """The thinning of one lane, with the copies that it holds.

    Thread-safe: self._changed guards the state, and is not held during a call of the lane, the
    disk or the ledger.
    """

    def __init__(self, endpoint: EndpointState, spool: Spool | None, deliver: Deliver) -> None:
        """`deliver` hands a batch to the lane, and blocks while that is full."""
        self._endpoint, self._spool, self._deliver = endpoint, spool, deliver
        self.state = Thinning(holds=spool is not None)
        self.intervals, self.changes = self.state.intervals, self.state.changes
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def concerns(self, key: Key) -> bool:
        """Return whether a copy of a route that does not thin concerns a held one, or a change."""
        return key in self.intervals or key[1] in self.changes

    def course(self, copy: Candidate) -> tuple[Course | bytes, Interval | None]:
        """Return the course of a copy, or the id of another one, and the interval of its name."""
        with self._changed:
            found = self.state.course(copy, monotonic())
            return found, self.state.intervals.get(copy.key)

    def use(self, rules: Rules) -> None:
        """Go on with these rules: what no rule holds any more is sent."""
        with self._changed:
            self.state.keep(rules, monotonic())
            self.state.end_intervals(monotonic())
            self._changed.notify_all()

    def forget_changes(self) -> None:
        """The target is connected again, and may not have what it accepted."""
        with self._changed:
            self.state.forget_changes()

    def hold(self, copy: Candidate, batch: OutboundBatch, cut: Rows | None) -> None:
        """Hold the copy of a batch of one, in place of an older one; it is sent if nothing fits.

        `cut` is the row for the case that a newer copy replaces it.
        """
        spool, facts = self._spool, b""
        if cut is not None:
            facts = pack_batch((), [PendingRow((0,), cut, "")])
        fits = spool is not None and spool.backlog.fits(batch) and self.state.has_room(facts)
        if spool is None or not fits or self._stopped:
            self._send_in_place(copy, batch)
            return
        spool.wait_for_disk()
        packed = spool.pack(batch)
        if not batch.unsettled:  # it has no form on disk, and is a dead letter
            self._send_in_place(copy, batch)
            return
        number, size = spool.backlog.next_number(), len(packed[0])
        batch.settle_rest(SPOOLED)
        held = HeldCopy(number, copy.id, size, facts)
        with self._changed:
            replaced = self.state.hold(copy.key, copy.rule, held, monotonic())
            spool.backlog.held_messages += 1
            spool.backlog.held_bytes += size
            self._start(spool)
        stored = partial(self._stored, spool, copy, held, batch, replaced)
        spool.write(number, 1, packed, stored, held=True)

    def answered(self, batch: OutboundBatch, copies: Mapping[tuple[int, str], Candidate]) -> None:
        """Note the answers of copies that were sent; `copies` are by position and label."""
        with self._changed:
            for at, delivery in enumerate(batch.deliveries):
                copy = copies.get((batch.positions[at], delivery.label))
                if copy is not None:
                    self.state.answered(copy, batch.settlements[at], (batch.number, at))

    def stop(self) -> None:
        """Send none of them any more; they stay on disk."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._spool is not None:
            self._spool.stop_held()

    def join(self, *, removed: bool = False) -> None:
        """Wait for the thread; of a `removed` lane, what it did not take waits like other rows."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout=5)
        if removed and self._spool is not None:
            self._spool.end_holds()

    def _send_in_place(self, copy: Candidate, batch: OutboundBatch) -> None:
        """Send a copy that has no room on disk, behind older ones of its name."""
        with self._changed:
            while not self._stopped:
                interval = self.state.intervals.get(copy.key)
                if interval is None or not interval.taken:
                    break
                self._changed.wait()
            replaced = self.state.drop_held(copy.key)
        if replaced is not None and self._spool is not None:
            self._cut(self._spool, copy, replaced)
        if batch.unsettled:
            self._deliver(batch)
        else:
            batch.origin.answered(batch)

    def _stored(
        self,
        spool: Spool,
        copy: Candidate,
        held: HeldCopy,
        batch: OutboundBatch,
        replaced: HeldCopy | None,
    ) -> None:
        """A copy is durable; the thread of the database calls this."""
        with self._changed:
            self.state.stored(copy.key, held)
            self._changed.notify_all()
        batch.origin.answered(batch)
        if replaced is not None:
            self._cut(spool, copy, replaced)

    def _cut(self, spool: Spool, newer: Candidate, replaced: HeldCopy) -> None:
        """Record that a newer copy stands for a held one, then delete that."""
        rows: list[Rows] = []
        if replaced.facts:
            (pending,) = unpack_batch(replaced.facts)[1]
            rows.append(pending.completed((0,), time=spool.ledger.clock(), reason=newer.id.hex()))
        route = newer.key[0]
        if route in spool.ledger.counters:
            spool.ledger.counters[route].count_left_out(THINNED)
        spool.ledger.write(
            rows, [], partial(self._delete, spool, {replaced.number: replaced.size}, ())
        )

    def _delete(self, spool: Spool, numbers: Mapping[int, int], keys: Sequence[Key]) -> None:
        """Delete rows of these numbers and sizes, the last taken copies of `keys`."""

        def deleted() -> None:
            with self._changed:
                spool.backlog.held_messages -= len(numbers)
                spool.backlog.held_bytes -= sum(numbers.values())
                self.state.deleted(keys)
                self._changed.notify_all()

        spool.delete_held([*numbers], deleted)

    def _start(self, spool: Spool) -> None:
        if self._thread is None:
            name = f"held-{self._endpoint.name}"
            self._thread = threading.Thread(target=self._run, args=(spool,), name=name, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self, spool: Spool) -> None:
        while taken := self._take():
            try:
                self._send(spool, taken)
            except Exception:  # of the disk, or ours; this thread goes on
                log.exception(
                    "unexpected error with held copies", extra={"endpoint": self._endpoint.name}
                )

    def _take(self) -> list[tuple[Key, HeldCopy]]:
        """Wait for copies whose intervals have ended; return none at a stop."""
        with self._changed:
            while not self._stopped:
                now = monotonic()
                self.state.end_intervals(now)
                if taken := self.state.take_ready(MAX_JOINED, MAX_PART_BYTES, now):
                    return taken
                end = self.state.next_end()
                self._changed.wait(None if end is None else max(0.0, end - now))
        return []

    def _send(self, spool: Spool, taken: Sequence[tuple[Key, HeldCopy]]) -> None:
        """Send copies as one batch."""
        keys = {held.number: key for key, held in taken}
        sizes = {held.number: held.size for _, held in taken}

        def delete(numbers: Collection[int]) -> None:
            own = {each: sizes[each] for each in numbers}
            self._delete(spool, own, [keys[each] for each in numbers])

        if (rows := self._read(spool, [*keys])) is None or not spool.try_held([*keys]):
            return  # it stops
        for row in rows:
            if row.letter is not None:
                spool.ledger.record_damaged(row.letter, partial(delete, [row.number]))
        if gone := keys.keys() - {row.number for row in rows}:  # the file was damaged
            delete(gone)
        if whole := [row for row in rows if row.letter is None]:
            left = [row.number for row in whole]
            origin = _Released(spool, whole, partial(delete, left))
            messages = [message for row in whole for message in row.messages]
            self._deliver(OutboundBatch(origin, WhenFull.SLOW, messages))
            with self._changed:
                if not origin.is_over:
                    self.state.handed_over([keys[each] for each in left])
                self._changed.notify_all()

    def _read(self, spool: Spool, numbers: Sequence[int]) -> list[SpoolRow] | None:
        """Read held rows; None at a stop."""
        while True:
            try:
                return spool.read_held(numbers)
            except SpoolError as error:
                log.error("%s; held copies wait", error, extra={"endpoint": self._endpoint.name})  # noqa: TRY400  # the text is complete
            with self._changed:
                if self._stopped or self._changed.wait_for(lambda: self._stopped, READ_PAUSE):
                    return None


class _Released:
    """The origin of a batch of copies that were held."""

    def __init__(self, spool: Spool, rows: Sequence[SpoolRow], done: Callable[[], None]) -> None:
        self._spool, self._rows, self._done = spool, rows, done
        self.is_over = False

    def answered(self, batch: OutboundBatch) -> None:
        """Record the outcomes; the rows of copies that the lane's spool took are deleted, too."""
        self.is_over = True
        batch.rows = self._rows
        self._spool.ledger.record_spooled(batch, self._done)

    def pending_rows(self, _batch: OutboundBatch) -> list[PendingRow]:
        return [
            PendingRow((at,), pending.rows, pending.source)
            for at, row in enumerate(self._rows)
            for pending in row.pending
        ]
