"""The copies of one target that wait in the spool for the end of an interval, and their thread.

A held copy: a row of the spool that its lane does not read, under a number of its own. Written:
when it is the newest of its name in an interval; its source is settled when the row is durable.
Replaced: by a newer row; then it is the spare of that. Cut, and deleted: when two newer rows are
there, or when the target accepted the newer copy. Sent: at the end of the interval, read from the
disk, by way of the lane, like a message that comes from a source then; a spare, when the target
refused the newer copy. Deleted: when its outcome is recorded, or when the spool of the lane has it;
a spare that is cut, together with the newer row. After a crash, a stop, or without its target: an
ordinary row of the spool, in its place. A spare whose newer copy may have been sent is cut then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Final, TypeAlias

from gateway.archive.journal.records import Rows
from gateway.errors import SpoolError
from gateway.model.cut_class import THINNED
from gateway.model.outcome import SPOOLED, Outcome
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow, SpoolRow
from gateway.runtime.delivery.thinning import Rules, Thinning
from gateway.runtime.delivery.thinning_candidate import Candidate, Course
from gateway.runtime.delivery.thinning_intervals import HeldCopy, Interval
from gateway.runtime.outbound.replay_mark import ReplayMark
from gateway.runtime.outbound.spool import Spare, Spool
from gateway.runtime.outbound.spool_codec import pack_batch, unpack_batch
from gateway.runtime.record.counters import EndpointState

log = logging.getLogger(__name__)

MAX_JOINED: Final = 1_000  # held copies that are sent together
MAX_PART_BYTES: Final = 1 << 20  # of them
READ_PAUSE: Final = 1.0  # seconds between attempts to read a spool that cannot be read

Deliver: TypeAlias = Callable[[OutboundBatch], None]
Taken: TypeAlias = tuple[str, HeldCopy]  # by its name at the target


class HeldCopies:
    """The thinning of one lane, with the copies that it holds.

    Thread-safe: self._changed guards the state, and is not held during a call of the lane or the
    recorder; nor while the disk is awaited, for which `Spool.write` only queues.
    """

    def __init__(
        self,
        endpoint: EndpointState,
        spool: Spool | None,
        deliver: Deliver,
        is_direct: Callable[[], bool],
    ) -> None:
        """`deliver` hands a batch to the lane, and blocks while that is full.

        `is_direct`: the lane sends at once what it is given.
        """
        self._endpoint, self._spool, self._deliver = endpoint, spool, deliver
        self._is_direct = is_direct
        self._mark, self._marked = ReplayMark(), 0
        self.state = Thinning(holds=spool is not None)
        self.intervals = self.state.intervals.by_name
        self.changes = self.state.changes.by_name
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None
        if spool is not None:
            for each in spool.left_spares():
                rows = _cut_row(each.facts, each.stands, spool.recorder.clock())
                done = partial(spool.delete_held, [each.number], lambda: None)
                spool.recorder.write(rows, [], done)

    def concerns(self, name: str) -> bool:
        """Return whether a copy of a route that does not thin concerns a held one, or a change."""
        return name in self.intervals or name in self.changes

    def course(self, copy: Candidate) -> tuple[Course | bytes, Interval | None]:
        """Return the course of a copy, or the id of another one, and the interval of its name."""
        with self._changed:
            if copy.rule is not None and not copy.seconds:
                self._forget_replayed()
            found = self.state.course(copy, monotonic())
            return found, self.intervals.get(copy.name)

    def passed(self, name: str) -> None:
        """A copy that was to be held is left out."""
        with self._changed:
            self.state.intervals.passed(name)

    def _forget_replayed(self) -> None:
        """Forget what the target accepted if a command has sent something since, or sends now."""
        count = self._mark.count
        if count != self._marked or count % 2:
            self.state.changes.forget_all()
        self._marked = count

    def use(self, rules: Rules, mark: ReplayMark) -> None:
        """Go on with these rules: what no rule holds any more is sent.

        `mark` is that of the commands that also send to the target.
        """
        with self._changed:
            self._mark = mark
            self.state.keep(rules, monotonic())
            self.state.intervals.end_due(monotonic())
            self._changed.notify_all()

    def forget_changes(self) -> None:
        """The target is connected again, and may not have what it accepted."""
        with self._changed:
            self.state.changes.forget_all()

    def hold(self, copy: Candidate, batch: OutboundBatch, cut: Rows | None) -> None:
        """Hold the copy of a batch of one if it is of an interval; else it follows the older ones.

        It is sent as well if nothing fits. `cut` is the row for the case that a newer copy stands
        for it.
        """
        spool, facts = self._spool, b""
        if cut is not None:
            facts = pack_batch((), [PendingRow((0,), cut, "")])
        fits = (
            spool is not None and spool.backlog.fits(batch) and self.state.intervals.has_room(facts)
        )
        if spool is None or not fits or self._stopped or not copy.seconds:
            self._send_behind(copy, batch)
            return
        spool.wait_for_disk()
        packed = spool.pack(batch)
        if not batch.unsettled:  # it has no form on disk, and is a dead letter
            with self._changed:
                self.state.intervals.passed(copy.name)
            batch.origin.answered(batch)
            return
        size = len(packed[0])
        batch.settle_rest(SPOOLED)
        with self._changed:  # copies of several sources have their rows in one order
            held = HeldCopy(spool.backlog.next_number(), copy.id, size, facts, copy.route)
            replaced = self.state.intervals.hold(copy.name, held)
            spool.backlog.held_messages += 1
            spool.backlog.held_bytes += size
            self._start(spool)
            stored = partial(self._stored, spool, copy, held, batch, replaced)
            spool.write(held.number, 1, packed, stored, held=True)

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

    def _send_behind(self, copy: Candidate, batch: OutboundBatch) -> None:
        """Send a copy behind the older ones of its name, which do not wait any longer."""
        with self._changed:
            last = self.state.intervals.hasten(copy.name)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._stopped or not self.state.intervals.has_older(copy.name, last)
            )
            dropped = self.state.intervals.passed(copy.name, drop=self._stopped)
        if self._spool is not None:
            for each in dropped:
                self._cut(self._spool, copy.id, each)
        self._deliver(batch)

    def _stored(
        self,
        spool: Spool,
        copy: Candidate,
        held: HeldCopy,
        batch: OutboundBatch,
        replaced: tuple[HeldCopy, HeldCopy] | None,
    ) -> None:
        """A copy is durable; the thread of the database calls this."""
        with self._changed:
            self.state.intervals.stored(copy.name, held)
            self._changed.notify_all()
        batch.origin.answered(batch)
        if replaced is not None:
            self._cut(spool, replaced[1].id, replaced[0])

    def _cut(self, spool: Spool, stands: bytes, replaced: HeldCopy) -> None:
        """Record that the copy with the id `stands` stands for a held one, then delete that."""
        rows = self._cut_rows(spool, stands, replaced)
        spool.recorder.write(rows, [], partial(self._delete, spool, (), [replaced]))

    @staticmethod
    def _cut_rows(spool: Spool, stands: bytes, replaced: HeldCopy) -> list[Rows]:
        """Count a copy that is cut; return its row, if there is an archive."""
        if replaced.route in spool.recorder.counters:
            spool.recorder.counters[replaced.route].count_left_out(THINNED)
        return _cut_row(replaced.facts, stands, spool.recorder.clock())

    def _delete(
        self, spool: Spool, taken: Sequence[Taken], others: Sequence[HeldCopy] = ()
    ) -> None:
        """Delete the rows of copies that were taken, and of others, at once."""
        copies = [*(held for _, held in taken), *others]

        def deleted() -> None:
            with self._changed:
                spool.backlog.held_messages -= len(copies)
                spool.backlog.held_bytes -= sum(each.size for each in copies)
                for name, held in taken:
                    self.state.intervals.deleted(name, held.number)
                self._changed.notify_all()

        spool.delete_held([each.number for each in copies], deleted)

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

    def _take(self) -> list[Taken]:
        """Wait for copies whose intervals have ended; return none at a stop.

        While the target is away, a refusal comes too late for a spare: both are sent.
        """
        with self._changed:
            while not self._stopped:
                now, both = monotonic(), not self._is_direct()
                self.state.intervals.end_due(now)
                if taken := self.state.take_ready(MAX_JOINED, MAX_PART_BYTES, now, both=both):
                    return taken
                end = self.state.intervals.next_end()
                self._changed.wait(None if end is None else max(0.0, end - now))
        return []

    def _send(self, spool: Spool, taken: Sequence[Taken]) -> None:
        """Send copies as one batch."""
        copies = {held.number: (name, held) for name, held in taken}
        with self._changed:
            spares = [
                Spare(spare.number, held.number, held.id, spare.facts)
                for name, held in taken
                if (spare := self.state.intervals.spare_of(name, held.number)) is not None
            ]
        rows = self._read(spool, [*copies])
        if rows is None or not spool.try_held([*copies], spares):
            return  # it stops
        for row in rows:
            if row.letter is not None:
                self._decide(copies[row.number], Outcome.REJECTED)
                done = partial(self._delete, spool, [copies[row.number]])
                spool.recorder.record_damaged(row.letter, done)
        gone = [copies[each] for each in copies.keys() - {row.number for row in rows}]
        for each in gone:  # the file was damaged
            self._decide(each, Outcome.REJECTED)
        if gone:
            self._delete(spool, gone)
        if whole := [row for row in rows if row.letter is None]:
            origin = _Released(whole, partial(self._record, spool, copies))
            messages = [message for row in whole for message in row.messages]
            self._deliver(OutboundBatch(origin, WhenFull.SLOW, messages))

    def _record(self, spool: Spool, copies: Mapping[int, Taken], batch: OutboundBatch) -> None:
        """Record the outcomes of taken copies and their spares, then delete the rows of both.

        They are deleted at once: after a crash no spare is left that comes after the newer copy.
        """
        taken = [copies[row.number] for row in batch.rows]
        spares: list[HeldCopy] = []
        rows: list[Rows] = []
        for each, settlement in zip(taken, batch.settlements, strict=True):  # a message a row
            spare = self._decide(each, settlement.outcome)
            if spare is not None:
                spares.append(spare)
                rows += self._cut_rows(spool, each[1].id, spare)
        spool.recorder.record_spooled(batch, partial(self._delete, spool, taken, spares), rows)

    def _decide(self, taken: Taken, outcome: Outcome) -> HeldCopy | None:
        """Take the outcome of a copy; return its spare if that is cut."""
        name, held = taken
        with self._changed:
            return self.state.intervals.decided(
                name, held.number, refused=outcome is Outcome.REJECTED
            )

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


def _cut_row(facts: bytes, stands: bytes, time: int) -> list[Rows]:
    """Return the row of a copy for which that with the id `stands` stands; none without facts."""
    if not facts:
        return []
    (pending,) = unpack_batch(facts)[1]
    return [pending.completed((0,), time=time, reason=stands.hex())]


class _Released:
    """The origin of a batch of copies that were held, with their rows."""

    def __init__(self, rows: Sequence[SpoolRow], record: Deliver) -> None:
        self._rows, self._record = rows, record

    def answered(self, batch: OutboundBatch) -> None:
        """Record the outcomes, and delete the rows of copies that the lane's spool took."""
        batch.rows = self._rows
        self._record(batch)

    def pending_rows(self, _batch: OutboundBatch) -> list[PendingRow]:
        return [
            PendingRow((at,), pending.rows, pending.source)
            for at, row in enumerate(self._rows)
            for pending in row.pending
        ]
