"""A received batch until it is settled: collects the outcomes of all its copies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.archive.journal.records import Rows
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement, rejected
from gateway.routing.route import Route
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.batch import PendingRow
from gateway.runtime.delivery.dead_letter import DeadLetter
from gateway.runtime.delivery.rows import BatchOrigin, BatchRecord, Cut


class LaneBatch:
    """The entries of a received batch that go to one lane, as parallel lists.

    `packed_at` is the time at which the spool took them, in microseconds.
    Mutable: filled by the pump before it is handed over.
    """

    __slots__ = ("deliveries", "messages", "packed_at", "positions")

    def __init__(self) -> None:
        self.positions: list[int] = []  # in the received batch
        self.deliveries: list[Delivery] = []
        self.messages: list[Message] = []  # as sent to the target
        self.packed_at = 0

    def entries(self) -> Iterator[tuple[int, Delivery]]:
        """The position and the delivery of each entry."""
        return zip(self.positions, self.deliveries, strict=True)

    def halves(self) -> Iterator[LaneBatch]:
        """The first and the second half of the entries."""
        middle = len(self.positions) // 2
        for part in (slice(middle), slice(middle, None)):
            half = LaneBatch()
            half.positions = self.positions[part]
            half.deliveries = self.deliveries[part]
            half.messages = self.messages[part]
            yield half

    def by_target(self, indices: Sequence[int]) -> Iterable[Sequence[int]]:
        """Group entry `indices` by route and label."""
        deliveries = self.deliveries
        keys = [(id(deliveries[at].route), deliveries[at].label) for at in indices]
        return _grouped(indices, keys)

    def by_row(
        self, indices: Sequence[int], settlements: Sequence[Settlement]
    ) -> Iterable[Sequence[int]]:
        """Group entry `indices` by conversion and rule; the entries of a group share their row."""
        targets = [self.deliveries[at].target for at in indices]
        keys = [
            (target is None or target.conversion is None, settlements[at].rule)
            for at, target in zip(indices, targets, strict=True)
        ]
        return _grouped(indices, keys)

    def select(
        self, indices: Sequence[int]
    ) -> tuple[Sequence[Delivery], Sequence[int], Sequence[Message]]:
        """Deliveries, positions and messages of the entries at `indices`."""
        if len(indices) == len(self.positions):
            return self.deliveries, self.positions, self.messages
        deliveries = [self.deliveries[i] for i in indices]
        positions = [self.positions[i] for i in indices]
        return deliveries, positions, [self.messages[i] for i in indices]


@dataclass(frozen=True, slots=True)
class Count:
    """Messages of a route for its counters; `size` is the bytes of received payloads.

    Units: `latency` in seconds since the receipt.
    """

    route: str
    received: int = 0
    size: int = 0
    delivered: int = 0
    latency: float = 0.0
    spooled: int = 0


@dataclass(frozen=True, slots=True)
class CountDead:
    """A dead letter for the counters and the log."""

    letter: DeadLetter


@dataclass(frozen=True, slots=True)
class Record:
    """Make the dead letters durable, then the rows, then settle the batch at its source."""

    rows: Sequence[Rows]
    letters: Sequence[DeadLetter]


BatchAction: TypeAlias = Count | CountDead | Record


class InFlightBatch:
    """A received batch with outstanding answers.

    It counts references: one for the source that fills it, one for each expected answer. The last
    release returns `Record`: nothing is settled before all its outcomes are known and durable.
    Mutable: its owner calls one method at a time. Times are microseconds since 1970-01-01 UTC.
    """

    def __init__(self, messages: Sequence[Message], origin: BatchOrigin) -> None:
        self._messages = messages
        self._origin = origin
        self._record = BatchRecord(messages, origin)
        self._references = 1
        self._rows: list[Rows] = []
        self._dead_letters: list[DeadLetter] = []

    def received(
        self, positions: Sequence[int], matches: Sequence[RouteMatch]
    ) -> list[BatchAction]:
        """The routes of `matches` received the messages at `positions`."""
        self._rows.append(self._record.received(positions, matches))
        actions: list[BatchAction] = []
        for route, indices in _by_route([match.route for match in matches]):
            every = len(indices) == len(positions)
            selected = positions if every else [positions[i] for i in indices]
            size = self._record.size(selected)
            actions.append(Count(route.name, received=len(indices), size=size))
        return actions

    def cut(self, cuts: Sequence[Cut]) -> None:
        """Routes left these messages out: their rows say so."""
        self._rows += self._record.cut(cuts)

    def refused(self, position: int, delivery: Delivery, at: int) -> list[BatchAction]:
        """The mapping refused a delivery: a dead letter."""
        settlement = rejected(delivery.rule, delivery.reason)
        message = self._messages[position]
        return [self._add_dead_letter(delivery, position, message, "", settlement, 0, at)]

    def expect_answer(self) -> None:
        """Add a reference: one more target will answer."""
        self._references += 1

    def answered(
        self, lane_batch: LaneBatch, settlements: Sequence[Settlement], attempts: int, at: int
    ) -> list[BatchAction]:
        """Record the final settlements of one target and release its reference."""
        actions: list[BatchAction] = []
        all_accepted = settlements.count(ACCEPTED) == len(settlements)
        every = range(len(settlements))
        accepted = every if all_accepted else _with_outcome(Outcome.ACCEPTED, settlements)
        latency = (at - self._origin.time) / 1_000_000
        for group in lane_batch.by_row(accepted, settlements):
            selected, rule = lane_batch.select(group), settlements[group[0]].rule
            rows = self._record.delivered(*selected, attempts, at)
            self._rows.append(replace(rows, common={**rows.common, "rule": rule}) if rule else rows)
            deliveries = selected[0]
            for route, indices in _by_route([delivery.route for delivery in deliveries]):
                actions.append(Count(route.name, delivered=len(indices), latency=latency))
        if not all_accepted:
            actions += self._spooled_and_rejected(lane_batch, settlements, attempts, at)
        return actions + self.release()

    def trace(self, position: int) -> bytes:
        """The 16-byte trace id of the message at `position`."""
        return self._record.trace(position)

    def message_id(self, position: int) -> bytes:
        """The id of the message at `position` in the batch."""
        return self._record.message_id(position)

    def pending_rows(self, lane_batch: LaneBatch, at: int) -> list[PendingRow]:
        """The delivered rows to write later, for a batch that the spool takes at `at`."""
        lane_batch.packed_at = at
        every = range(len(lane_batch.deliveries))
        return [self._pending_row(lane_batch, group) for group in lane_batch.by_target(every)]

    def release(self) -> list[BatchAction]:
        """Drop a reference; after the last one, all is to be recorded."""
        self._references -= 1
        return [] if self._references else [Record(self._rows, self._dead_letters)]

    def _pending_row(self, lane_batch: LaneBatch, group: Sequence[int]) -> PendingRow:
        rows = self._record.delivered(*lane_batch.select(group), 0, 0)
        return PendingRow(tuple(group), rows, self._origin.endpoint)

    def _spooled_and_rejected(
        self, lane_batch: LaneBatch, settlements: Sequence[Settlement], attempts: int, at: int
    ) -> list[BatchAction]:
        """Rows of the spooled entries; rejected entries become dead letters."""
        actions: list[BatchAction] = []
        for group in lane_batch.by_target(_with_outcome(Outcome.SPOOLED, settlements)):
            self._rows.append(
                self._pending_row(lane_batch, group).spooled(group, lane_batch.packed_at)
            )
            for route, indices in _by_route([lane_batch.deliveries[i].route for i in group]):
                actions.append(Count(route.name, spooled=len(indices)))
        for i in _with_outcome(Outcome.REJECTED, settlements):
            delivery, position = lane_batch.deliveries[i], lane_batch.positions[i]
            message = lane_batch.messages[i]
            endpoint = delivery.target.endpoint if delivery.target else ""
            actions.append(
                self._add_dead_letter(
                    delivery, position, message, endpoint, settlements[i], attempts, at
                )
            )
        return actions

    def _add_dead_letter(  # noqa: PLR0913, PLR0917  # the facts of one dead letter
        self,
        delivery: Delivery,
        position: int,
        message: Message,
        endpoint: str,
        settlement: Settlement,
        attempts: int,
        at: int,
    ) -> CountDead:
        origin = self._origin
        name = message.address if endpoint else delivery.address
        letter = DeadLetter(
            number=0,
            time=at,
            id=self._record.message_id(position),
            route=delivery.route.name if delivery.route else "",
            source=origin.endpoint,
            source_name=self._messages[position].address,
            target=delivery.label,
            endpoint=endpoint,
            rule=settlement.rule,
            reason=settlement.reason,
            attempts=attempts,
            message=message,
        )
        self._rows.append(self._record.dead(delivery, position, name, settlement, at))
        self._dead_letters.append(letter)
        return CountDead(letter)


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
