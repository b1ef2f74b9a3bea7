"""A received batch between the threads that fill it and those that answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import Final, TypeAlias

from gateway.endpoints.base import Batch
from gateway.model.outcome import ACCEPTED
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.earlier_batch import ConnectionPart, EarlierBatch
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.record.batch_recorder import BatchRecorder

ANY_PART: Final = ConnectionPart()
Group: TypeAlias = tuple[Sequence[int], Sequence[RouteMatch]]  # positions, and a match for each


class InFlightBatch:
    """A received batch, with the recorder that records it and the source that is settled then.

    Later batches with its duplicates wait for it, and find it for long: once settled, it has no
    messages. `on_settled` is called before they go on.
    The batch counts references: one for the relay that hands its copies over, one for each batch of
    copies without an answer, one for each earlier batch that it waits for. Answers may come before
    the relay says how many there are. Nothing is settled before all outcomes are known and durable.
    Thread-safe: guarded by self._lock, which is not held while rows are written.
    """

    __slots__ = (
        "__weakref__",
        "_awaited",
        "_callbacks",
        "_count",
        "_is_relayed",
        "_lock",
        "_on_settled",
        "_recorder",
        "_references",
        "_settle_source",
        "_waits",
        "arrived",
        "part",
        "received",
        "received_at",
    )

    def __init__(
        self,
        batch: Batch,
        received: ReceivedBatch,
        recorder: BatchRecorder,
        on_settled: Callable[[InFlightBatch], None] = lambda _: None,
        part: ConnectionPart = ANY_PART,
    ) -> None:
        self.arrived, self.part = monotonic(), part
        self.received = received
        self.received_at = received.origin.time  # it stays: another thread may settle the batch
        self._settle_source, self._count = batch.settle, len(batch.messages)
        self._awaited = batch.awaited
        self._recorder = recorder
        self._on_settled = on_settled
        self._lock = threading.Lock()
        self._references, self._is_relayed = 1, False
        self._waits: set[int] = set()  # for earlier batches, by id
        self._callbacks: list[Callable[[], None]] | None = []  # None when settled

    def refuse(self, position: int, delivery: Delivery) -> None:
        """Record a dead letter for a delivery that the mapping refused."""
        with self._lock:
            letter = self.received.refused(position, delivery, self._recorder.clock())
        self._recorder.count([letter])

    def relayed(self, groups: Iterable[Group], answers: int) -> None:
        """Record that routes received the messages of `groups`, and which they left out.

        Every copy was handed over; they have so many `answers`. Called once.
        """
        received = self.received
        with self._lock:
            counts = [each for group in groups for each in received.received(*group)]
            if received.cuts:
                received.record_cuts()
            self._references += answers
            self._is_relayed = True
        self._recorder.count(counts)
        self._release()

    def answered(self, batch: OutboundBatch) -> None:
        """Record the final settlements of one target."""
        with self._lock:
            counts = self.received.answered(batch, self._recorder.clock())
        self._recorder.count(counts)
        self._release()

    def pending_rows(self, batch: OutboundBatch) -> list[PendingRow]:
        return self.received.pending_rows(batch, self._recorder.clock())

    def _release(self) -> None:
        """Drop a reference; after the last one, record the rows and settle the source."""
        received = self.received
        with self._lock:
            self._references -= 1
            is_last = self._is_relayed and not self._references
        if is_last and (received.rows or received.letters):
            self._recorder.write(
                received.rows, received.letters, self._settle, awaited=self._awaited
            )
        elif is_last:
            self._settle()

    def wait_for(self, original: EarlierBatch) -> None:
        """Settle the source no sooner than `original`, which also has a message of this batch."""
        with self._lock:
            if id(original) in self._waits:
                return
            self._references += 1
            self._waits.add(id(original))
        original.when_settled(partial(self._end_wait, id(original)))

    def stop_waiting(self) -> None:
        """Wait for no earlier batch: the connection is gone, and settling its batch has no effect.

        Its next one brings the same messages again, as often as there are connections.
        """
        for original in self._waits.copy():
            self._end_wait(original)

    def _end_wait(self, original: int) -> None:
        with self._lock:
            waits = original in self._waits
            self._waits.discard(original)
        if waits:
            self._release()

    def is_over_for(self, later: EarlierBatch) -> bool:
        with self._lock:
            is_settled = self._callbacks is None
        return is_settled and (self.part.number == later.part.number or later.part.after_silence)

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the source is settled, or now if it is."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback()

    def _settle(self) -> None:
        self._settle_source([ACCEPTED] * self._count)
        self._on_settled(self)
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
            del self._settle_source, self.received
        if callbacks:
            _queue.run(callbacks)


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
