"""A batch of copies for a target that gets less: what is sent, what is held, what is left out."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.archive.journal.records import Rows
from gateway.model.cut_class import THINNED
from gateway.model.message import Message
from gateway.routing.route import Thin
from gateway.routing.router import Delivery
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import Cut, fingerprint
from gateway.runtime.delivery.thinning_candidate import Candidate, Course
from gateway.runtime.delivery.thinning_intervals import Interval
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.outbound.held_copies import HeldCopies
from gateway.runtime.record.batch_recorder import Counters

KEPT: Final = 2  # copies of a name that are held: the newest, and its spare


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A copy to hold, or to send behind those, as a batch of its own, with the row of its cut."""

    copy: Candidate
    batch: OutboundBatch
    cut: Rows | None


def thin_out(
    made: OutboundBatch,
    in_flight: InFlightBatch,
    target: HeldCopies,
    unsettled: Collection[object],
    counters: Counters,
) -> tuple[OutboundBatch, list[HeldBack]]:
    """Divide the copies of a batch for one target, in their order: those to send, and to hold.

    Those that are left out are among the cuts of `in_flight`. It is settled no sooner than a batch
    of `unsettled`, those of its source, that has an older copy of a held name: after a crash that
    one comes first.
    """
    sent: list[int] = []
    followed: dict[tuple[int, str], Candidate] = {}
    waiting: dict[int, Candidate] = {}  # to hold, or to follow those; by place
    left_out: list[tuple[int, bytes]] = []
    for at, copy in enumerate(_candidates(made, in_flight, target)):
        if copy is None:
            sent.append(at)
            continue
        course, interval = target.course(copy)
        if isinstance(course, bytes):
            left_out.append((at, course))
        elif course is Course.SEND:
            sent.append(at)
            if copy.rule is not None:
                followed[made.positions[at], made.deliveries[at].label] = copy
        else:
            waiting[at] = copy
            if interval is not None:
                _wait_for_first(in_flight, interval, unsettled)
    for at, stands in _replaced(waiting):
        target.passed(waiting.pop(at).name)
        left_out.append((at, stands))
    _leave_out(made, in_flight.received, left_out, counters)
    held = [_held_back(made, in_flight.received, at, copy) for at, copy in waiting.items()]
    whole = made if len(sent) == len(made.messages) else _part(made, sent)
    if followed:
        whole.origin = _Followed(in_flight, target, followed)
    return whole, held


def _replaced(waiting: Mapping[int, Candidate]) -> list[tuple[int, bytes]]:
    """Return the places of copies that are cut, each with the id of the copy that stands for it."""
    places: dict[str, list[int]] = {}
    for at, copy in waiting.items():
        if copy.seconds:
            places.setdefault(copy.name, []).append(at)
    return [(at, waiting[each[-KEPT]].id) for each in places.values() for at in each[:-KEPT]]


def _candidates(
    made: OutboundBatch, in_flight: InFlightBatch, target: HeldCopies
) -> Iterator[Candidate | None]:
    """Yield the facts of each copy, or None for one that no rule concerns."""
    received, earlier = in_flight.received, weakref.ref(in_flight)
    for at, delivery in enumerate(made.deliveries):
        position = made.positions[at]
        rule = _rule_of(delivery, received.messages[position])
        route = delivery.route.name if delivery.route else ""
        if rule is None and not target.concerns(delivery.address):
            yield None
            continue
        yield Candidate(
            delivery.address,
            route,
            rule,
            received.ids[position],
            earlier,
            b"" if rule is None or rule.seconds else _content(made.messages[at]),
            again=position in received.earlier,
        )


def _wait_for_first(
    in_flight: InFlightBatch, interval: Interval, unsettled: Collection[object]
) -> None:
    first = interval.earlier()
    if isinstance(first, InFlightBatch) and first is not in_flight and first in unsettled:
        in_flight.wait_for(first)


def _leave_out(
    made: OutboundBatch,
    received: ReceivedBatch,
    left_out: Sequence[tuple[int, bytes]],
    counters: Counters,
) -> None:
    """Record copies as cuts, each with the id of the copy that stands for it."""
    for at, stands in left_out:
        delivery = made.deliveries[at]
        received.cuts.append(_cut(delivery, made.positions[at], stands))
        if delivery.route is not None:
            counters[delivery.route.name].count_left_out(THINNED)


def _held_back(made: OutboundBatch, received: ReceivedBatch, at: int, copy: Candidate) -> HeldBack:
    cut = received.later_cut(_cut(made.deliveries[at], made.positions[at]))
    return HeldBack(copy, _part(made, [at]), cut)


def _rule_of(delivery: Delivery, message: Message) -> Thin | None:
    """The rule of a copy; a heartbeat has none."""
    route, target = delivery.route, delivery.target
    if route is None or target is None or message.address == route.heartbeat:
        return None
    return target.thin


def _content(message: Message) -> bytes:
    """Return the hash of the payload, and whether the target keeps it: a change is one of these."""
    return fingerprint(message.payload)[1] + bytes([message.headers.retained])


def _cut(delivery: Delivery, position: int, stands: bytes = b"") -> Cut:
    route = delivery.route.name if delivery.route else ""
    return Cut(position, route, delivery.label, THINNED, stands.hex(), name=delivery.address)


def _part(batch: OutboundBatch, places: Sequence[int]) -> OutboundBatch:
    return OutboundBatch(
        batch.origin,
        batch.when_full,
        [batch.messages[at] for at in places],
        [batch.positions[at] for at in places],
        [batch.deliveries[at] for at in places],
    )


class _Followed:
    """The origin of copies whose answers concern the next ones of their names."""

    def __init__(
        self,
        in_flight: InFlightBatch,
        target: HeldCopies,
        copies: Mapping[tuple[int, str], Candidate],
    ) -> None:
        self._in_flight, self._target, self._copies = in_flight, target, copies

    def answered(self, batch: OutboundBatch) -> None:
        self._target.answered(batch, self._copies)
        self._in_flight.answered(batch)

    def pending_rows(self, batch: OutboundBatch) -> list[PendingRow]:
        return self._in_flight.pending_rows(batch)
