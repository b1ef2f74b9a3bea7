"""A received batch between the threads that fill it and those that answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from gateway.endpoints.base import Batch
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.batch import PendingRow
from gateway.runtime.delivery.in_flight import BatchAction, InFlightBatch, LaneBatch, Record
from gateway.runtime.delivery.rows import BatchOrigin, Cut
from gateway.runtime.inbound.completion import BatchCompletion
from gateway.runtime.record.ledger import Ledger


class SharedBatch:
    """A batch in flight, with the ledger that records it and the source that is settled then.

    Thread-safe: guarded by self._lock, which is not held while rows are written.
    """

    def __init__(
        self, batch: Batch, origin: BatchOrigin, ledger: Ledger, completion: BatchCompletion
    ) -> None:
        self._batch = batch
        self._in_flight = InFlightBatch(batch.messages, origin)
        self._ledger = ledger
        self._lock = threading.Lock()
        self._completion = completion
        self.on_settled: Callable[[SharedBatch], None] = lambda _: None

    def record_received(self, positions: Sequence[int], matches: Sequence[RouteMatch]) -> None:
        """Record that the routes of `matches` received the messages at `positions`."""
        with self._lock:
            actions = self._in_flight.received(positions, matches)
        self._perform(actions)

    def record_cut(self, cuts: Sequence[Cut]) -> None:
        with self._lock:
            self._in_flight.cut(cuts)

    def refuse(self, position: int, delivery: Delivery) -> None:
        """Record a dead letter for a delivery that the mapping refused."""
        with self._lock:
            actions = self._in_flight.refused(position, delivery, self._ledger.clock())
        self._perform(actions)

    def expect_answer(self) -> None:
        with self._lock:
            self._in_flight.expect_answer()

    def record_answers(
        self, lane_batch: LaneBatch, settlements: Sequence[Settlement], attempts: int
    ) -> None:
        """Record the final settlements of one target."""
        with self._lock:
            actions = self._in_flight.answered(
                lane_batch, settlements, attempts, self._ledger.clock()
            )
        self._perform(actions)

    def trace(self, position: int) -> bytes:
        return self._in_flight.trace(position)

    def message_id(self, position: int) -> bytes:
        return self._in_flight.message_id(position)

    def pending_rows(self, lane_batch: LaneBatch) -> list[PendingRow]:
        return self._in_flight.pending_rows(lane_batch, self._ledger.clock())

    def release(self) -> None:
        """Drop a reference; after the last one, record the rows and settle the source."""
        with self._lock:
            actions = self._in_flight.release()
        self._perform(actions)

    def _perform(self, actions: Iterable[BatchAction]) -> None:
        for action in actions:
            if isinstance(action, Record):
                self._ledger.write(action.rows, action.letters, self._settle)
            else:
                self._ledger.count(action)

    def _settle(self) -> None:
        self._batch.settle([ACCEPTED] * len(self._batch.messages))
        self.on_settled(self)
        self._completion.complete()
