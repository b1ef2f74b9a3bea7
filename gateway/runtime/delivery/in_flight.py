"""A received batch until it is settled: collects the outcomes, records them, settles the source."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence

from gateway.archive.journal.records import Rows
from gateway.clock import now
from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.inbound.dedup import BatchCompletion
from gateway.runtime.outbound.dead_letters import DeadLetter
from gateway.runtime.outbound.spool_codec import PendingRow
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.record.rows import BatchOrigin, BatchRecord


class LaneBatch:
    """The entries of a received batch that go to one lane, as parallel lists.

    Mutable: filled by the pump before it is handed over.
    """

    __slots__ = ("deliveries", "messages", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []  # in the received batch
        self.deliveries: list[Delivery] = []
        self.messages: list[Message] = []  # as sent to the target

    def by_target(self, indices: Sequence[int]) -> Iterable[Sequence[int]]:
        """Group entry `indices` by route and label."""
        deliveries = self.deliveries
        keys = [(id(deliveries[at].route), deliveries[at].label) for at in indices]
        return _grouped(indices, keys)

    def by_conversion(self, indices: Sequence[int]) -> Iterable[Sequence[int]]:
        """Group entry `indices` by whether they were converted; a group can share its rows."""
        targets = [self.deliveries[at].target for at in indices]
        return _grouped(
            indices, [target is None or target.conversion is None for target in targets]
        )

    def select(
        self, indices: Sequence[int]
    ) -> tuple[Sequence[Delivery], Sequence[int], Sequence[Message]]:
        """Deliveries, positions and messages of the entries at `indices`."""
        if len(indices) == len(self.positions):
            return self.deliveries, self.positions, self.messages
        deliveries = [self.deliveries[i] for i in indices]
        positions = [self.positions[i] for i in indices]
        return deliveries, positions, [self.messages[i] for i in indices]


class InFlightBatch:
    """A received batch with outstanding answers.

    It counts references: one for the pump that fills it, one for each expected answer. The last
    release records the rows and settles the source.
    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self, batch: Batch, origin: BatchOrigin, ledger: Ledger, completion: BatchCompletion
    ) -> None:
        self._batch = batch
        self._origin = origin
        self._record = BatchRecord(batch.messages, origin)
        self._ledger = ledger
        self._lock = threading.Lock()
        self._references = 1
        self._rows: list[Rows] = []
        self._dead_letters: list[DeadLetter] = []
        self._completion = completion
        self.on_settled: Callable[[InFlightBatch], None] = lambda _: None

    def record_received(self, positions: Sequence[int], matches: Sequence[RouteMatch]) -> None:
        """Record that the routes of `matches` received the messages at `positions`."""
        rows = self._record.received(positions, matches)
        with self._lock:
            self._rows.append(rows)
        for route, indices in _by_route([match.route for match in matches]):
            every = len(indices) == len(positions)
            selected = positions if every else [positions[i] for i in indices]
            size = self._record.size(selected)
            self._ledger.counters[route.name].count_received(len(indices), size)

    def refuse(self, position: int, delivery: Delivery) -> None:
        """Record a dead letter for a delivery that the mapping refused."""
        settlement = rejected(delivery.rule, delivery.reason)
        message = self._batch.messages[position]
        self._add_dead_letter(delivery, position, message, "", settlement, 0, now())

    def expect_answer(self) -> None:
        """Add a reference: one more target will answer."""
        with self._lock:
            self._references += 1

    def record_answers(
        self, lane_batch: LaneBatch, settlements: Sequence[Settlement], attempts: int
    ) -> None:
        """Record the final settlements of one target and release its reference."""
        at = now()
        rows: list[Rows] = []
        all_accepted = settlements.count(ACCEPTED) == len(settlements)
        every = range(len(settlements))
        accepted = every if all_accepted else _with_outcome(Outcome.ACCEPTED, settlements)
        for group in lane_batch.by_conversion(accepted):
            deliveries, positions, sent = lane_batch.select(group)
            rows.append(self._record.delivered(deliveries, positions, sent, attempts, at))
            latency = (at - self._origin.time) / 1_000_000
            for route, indices in _by_route([delivery.route for delivery in deliveries]):
                self._ledger.counters[route.name].count_delivered(len(indices), latency)
        if not all_accepted:
            rows += self._spooled_and_rejected(lane_batch, settlements, attempts, at)
        with self._lock:
            self._rows += rows
        self.release()

    def message_id(self, position: int) -> bytes:
        """The id of the message at `position` in the batch."""
        return self._record.message_id(position)

    def pending_rows(self, lane_batch: LaneBatch) -> list[PendingRow]:
        """The delivered rows to write later, for a batch that goes to the spool."""
        every = range(len(lane_batch.deliveries))
        return [self._pending_row(lane_batch, group) for group in lane_batch.by_target(every)]

    def release(self) -> None:
        """Drop a reference; after the last one, record the rows and settle the source."""
        with self._lock:
            self._references -= 1
            if self._references:
                return
        self._ledger.write(self._rows, self._dead_letters, self._settle)

    def _pending_row(self, lane_batch: LaneBatch, group: Sequence[int]) -> PendingRow:
        rows = self._record.delivered(*lane_batch.select(group), 0, 0)
        return PendingRow(tuple(group), rows, self._origin.endpoint)

    def _spooled_and_rejected(
        self, lane_batch: LaneBatch, settlements: Sequence[Settlement], attempts: int, at: int
    ) -> list[Rows]:
        """Rows of the spooled entries; rejected entries become dead letters."""
        rows: list[Rows] = []
        for group in lane_batch.by_target(_with_outcome(Outcome.SPOOLED, settlements)):
            rows.append(self._pending_row(lane_batch, group).spooled(group, at))
            for route, indices in _by_route([lane_batch.deliveries[i].route for i in group]):
                self._ledger.counters[route.name].count_spooled(len(indices))
        for i in _with_outcome(Outcome.REJECTED, settlements):
            delivery, position = lane_batch.deliveries[i], lane_batch.positions[i]
            message = lane_batch.messages[i]
            endpoint = delivery.target.endpoint if delivery.target else ""
            self._add_dead_letter(
                delivery, position, message, endpoint, settlements[i], attempts, at
            )
        return rows

    def _add_dead_letter(  # noqa: PLR0913, PLR0917  # the facts of one dead letter
        self,
        delivery: Delivery,
        position: int,
        message: Message,
        endpoint: str,
        settlement: Settlement,
        attempts: int,
        at: int,
    ) -> None:
        origin = self._origin
        name = message.address if endpoint else delivery.address
        letter = DeadLetter(
            number=0,
            time=at,
            id=self._record.message_id(position),
            route=delivery.route.name if delivery.route else "",
            source=origin.endpoint,
            source_name=self._batch.messages[position].address,
            target=delivery.label,
            endpoint=endpoint,
            rule=settlement.rule,
            reason=settlement.reason,
            attempts=attempts,
            message=message,
        )
        with self._lock:
            self._rows.append(self._record.dead(delivery, position, name, settlement, at))
            self._dead_letters.append(letter)
        self._ledger.count_dead_letter(letter)

    def _settle(self) -> None:
        self._batch.settle([ACCEPTED] * len(self._batch.messages))
        self.on_settled(self)
        self._completion.complete()


def _with_outcome(outcome: Outcome, settlements: Sequence[Settlement]) -> list[int]:
    """The indices of the settlements with `outcome`."""
    return [i for i, settlement in enumerate(settlements) if settlement.outcome is outcome]


def _by_route(routes: Sequence[Route | None]) -> Iterable[tuple[Route, Sequence[int]]]:
    """Each distinct route with its indices in `routes`; None is omitted."""
    indices = _grouped(range(len(routes)), [*map(id, routes)])
    found = [(routes[group[0]], group) for group in indices]
    return [(route, group) for route, group in found if route is not None]


def _grouped(indices: Sequence[int], keys: Sequence[Hashable]) -> Iterable[Sequence[int]]:
    """Group `indices` by their `keys`; equal keys give one group, which is `indices` itself."""
    if not keys or keys.count(keys[0]) == len(keys):
        return [indices] if keys else []
    groups: dict[Hashable, list[int]] = {}
    for index, key in zip(indices, keys, strict=True):
        groups.setdefault(key, []).append(index)
    return groups.values()
