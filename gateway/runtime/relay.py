"""The way of a received batch: recognised, routed, copied, handed to lanes and recorded."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Final, TypeAlias

from gateway.endpoints.base import Batch
from gateway.errors import ArchiveError
from gateway.model.dead_letter_rule import TARGET_REMOVED
from gateway.model.message import SOURCE_NAME
from gateway.routing.origin_path import BrokerAddress
from gateway.routing.router import RouteMatch
from gateway.runtime.context import GatewayContext, SourceBinding
from gateway.runtime.delivery.admission import Admission
from gateway.runtime.delivery.distribution import ByLane, Refused, distribute
from gateway.runtime.delivery.duplicates import DuplicateFilter
from gateway.runtime.delivery.earlier_batch import ConnectionPart
from gateway.runtime.delivery.loop_limit import LoopLimit
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.repeat_watch import FastRepeat, RepeatWatch
from gateway.runtime.delivery.rows import BatchOrigin
from gateway.runtime.inbound.copy_maker import HeaderMapper, make_copies
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.inbound.thinned_batch import HeldBack, thin_out
from gateway.runtime.outbound.held_copies import HeldCopies
from gateway.runtime.record.counters import EndpointState
from gateway.runtime.record.cut_log import UNPROVEN_NAME, CutLog
from gateway.translate.shorten import ShortNames

log = logging.getLogger(__name__)

# Copies, and what hands them to their lane.
_Outbound: TypeAlias = tuple[OutboundBatch, Callable[[OutboundBatch], None]]

SILENCE: Final = 1.0  # seconds; what a broker delivers again comes first over a connection
STORE_INTERVAL: Final = 1.0  # seconds between attempts to store short names
MAX_PART_BYTES: Final = 4 << 20  # of a batch that is handed to a lane at once


class Relay:
    """Relays the batches of one source by its binding, and knows which are not settled.

    Mutable: only the thread of the pump calls `relay` and `rebind`; settlements arrive on the
    threads of the targets.
    """

    def __init__(
        self,
        binding: SourceBinding,
        state: EndpointState,
        context: GatewayContext,
        stop: threading.Event,
    ) -> None:
        self.duplicates = DuplicateFilter()
        self.in_flight: set[InFlightBatch] = set()
        self._connection = 0
        self._arrived: float | None = 0.0  # the last batch of a connection that was not quiet yet
        self._state, self._context = state, context
        self._stop = stop
        self._admission = Admission(
            context.identity, self.duplicates, context.echoes.take_origin, context.path_rules
        )
        self._loop_limit, self.cut_log = LoopLimit(), CutLog(state.name)
        self._repeat_watch = RepeatWatch(random.random)
        self._asked: set[BrokerAddress] = set()
        self.rebind(binding)

    def rebind(self, binding: SourceBinding) -> None:
        """Relay by the routes of `binding` from now on."""
        context = self._context
        self._binding = binding
        routes = binding.rules.router.routes
        self._is_limited = any(each.loop_limit for each in routes)
        targets = (target for each in routes for target in each.targets)
        self._thinned = {each.endpoint for each in targets if each.thin is not None}
        self.cut_log.two_way = {each.name for each in routes if each.inverse}
        self._over_names = next((each.name for each in routes if each.names_of is not None), "")
        counters = context.recorder.counters
        dialect = binding.rules.router.dialect
        self._mapper = HeaderMapper(
            context.identity, dialect, counters, context.path_rules, context.replies.note
        )

    @property
    def oldest_unsettled(self) -> int:
        """The receipt of the oldest batch in flight, in row microseconds; 0 for none."""
        return min((each.received_at for each in self.in_flight.copy()), default=0)

    def relay(self, batch: Batch) -> None:
        """Hand the copies of a batch to their lanes; it is settled when all outcomes are durable.

        Raises:
            ArchiveError: shortened names cannot be stored, and the gateway stops.
        """
        self._state.messages += len(batch.messages)
        in_flight = self._track(batch)
        received = in_flight.received
        self._admit(in_flight)
        groups, by_lane, refused = distribute(received.matches)
        outbound = self._copy(in_flight, by_lane, refused)
        if self._binding.short_names is not None:
            self._store_short_names(in_flight, self._binding.short_names)
        if received.earlier:
            _wait_for_originals(in_flight)
        if self._context.heartbeats:
            for positions, matches in groups.values():
                self._note_heartbeats(in_flight, positions, matches)
        for position, delivery in refused:
            in_flight.refuse(position, delivery)
        for copies, hand_over in outbound:
            hand_over(copies)
        messages = received.messages  # after sending: recording delays no message
        if self._context.recent_names.views:
            self._context.recent_names.note(self._state.name, messages, groups.values())
        if received.cuts:
            self.cut_log.count(
                (each.route, each.rule, messages[each.position].address) for each in received.cuts
            )
        if received.untaken:
            self._note_untaken(received)
        in_flight.relayed(groups.values(), len(outbound))

    def _note_untaken(self, received: ReceivedBatch) -> None:
        """Count the messages that no route takes; a line tells of names that nothing proves."""
        self._state.untaken += len(received.untaken)
        if self._over_names:
            messages = [received.messages[at] for at in received.untaken]
            self.cut_log.count(
                (self._over_names, UNPROVEN_NAME, each.address)
                for each in messages
                if SOURCE_NAME in each.headers.properties
            )

    def note_quiet(self) -> None:
        """Note that nothing came: after a while, all has come that the broker delivers again."""
        if self._arrived is not None and monotonic() - self._arrived >= SILENCE:
            self._arrived = None

    def stop_waiting(self) -> None:
        """The connection is a new one: the batches of the last one wait for no earlier ones."""
        self._connection += 1
        self._arrived = monotonic()
        for each in self.in_flight.copy():
            each.stop_waiting()

    def _copy(self, in_flight: InFlightBatch, by_lane: ByLane, refused: Refused) -> list[_Outbound]:
        """Make the copies of every lane, which may shorten names; some wait for their interval.

        A lane gets them in parts: a nearly full disk takes and a slow link answers each of them.
        """
        outbound: list[_Outbound] = []
        for (endpoint, when_full), copies in by_lane.items():
            lane = self._context.lanes.get(endpoint)
            if lane is None:  # a reload removed it while this thread waited
                for at, delivery in zip(*copies, strict=True):
                    reason = "a reload removed it"
                    refused.append((at, replace(delivery, rule=TARGET_REMOVED, reason=reason)))
                continue
            made = make_copies(self._mapper, in_flight, copies, when_full, lane.binding.carries)
            held: Sequence[HeldBack] = ()
            thinning = lane.thinning
            if endpoint in self._thinned or thinning.intervals or thinning.changes:
                counters = self._context.recorder.counters
                made, held = thin_out(made, in_flight, thinning, self.in_flight, counters)
            parts = [made] if made.size <= MAX_PART_BYTES else [*_parts_of(made)]
            outbound += [(part, lane.deliver) for part in parts if part.messages]
            outbound += [(each.batch, partial(_hold, lane.thinning, each)) for each in held]
            if self._context.trace is not None:
                for part in (*parts, *(each.batch for each in held)):
                    self._context.trace(part, lane.binding.carries)
        return outbound

    def _admit(self, in_flight: InFlightBatch) -> None:
        """Recognise echoes and duplicates, which changes their messages, and route the rest."""
        received = in_flight.received
        self._admission.recognise(received, self._binding.rules, in_flight)
        self._admission.match(received, self._binding.rules)
        if self._is_limited:
            self._loop_limit.cut(received, in_flight.arrived)
        if not self._binding.shows_paths:
            repeat = self._repeat_watch.add(received.messages, in_flight.arrived)
            if repeat is not None:
                self._suspect(repeat)
        for each in self._admission.path_check.same_addresses - self._asked:
            self._ask_for_broker_id(each.endpoint)
            self._asked.add(each)
        for route, reason in received.left_out:
            self._context.recorder.counters[route].count_left_out(reason)
        for failure in received.failures:
            log.error(
                "internal error while routing",
                exc_info=failure,
                extra={"endpoint": self._state.name},
            )

    def _suspect(self, repeat: FastRepeat) -> None:
        """Say that a repeated message may circle; a heartbeat would tell more exactly."""
        matches = self._binding.rules.router[repeat.name]
        routes = {each.route.name for each in matches if each.route is not None}
        reason = f"with an equal payload comes {repeat.rate:.0f} times a second"
        for route in sorted(each for each in routes if each not in self._context.heartbeats):
            self._context.suspicions.note(self._state.name, route, repeat.name, reason)

    def _ask_for_broker_id(self, endpoint: str) -> None:
        """Say once that another gateway reads a broker with the address of this one."""
        text = (
            f"another gateway reads a broker with the address of {endpoint!r}; if it is one broker,"
            " write `broker_id: X` at that endpoint of both, so that no message passes it twice"
        )
        log.warning(text, extra={"endpoint": endpoint})  # each text is one of its own
        self._state.question = text

    def _store_short_names(self, in_flight: InFlightBatch, short_names: ShortNames) -> None:
        """Make the names durable that the batch has shortened; wait while the disk is full.

        Raises:
            ArchiveError: they cannot be stored, and the gateway stops; the source delivers again.
        """
        waits = False
        while True:
            try:
                return short_names.commit()
            except ArchiveError as error:
                if not waits:
                    log.error("%s; the source waits", error, extra={"endpoint": self._state.name})  # noqa: TRY400  # the text is complete
                waits = True
                if self._stop.wait(STORE_INTERVAL):
                    self.in_flight.discard(in_flight)
                    raise

    def _note_heartbeats(
        self, in_flight: InFlightBatch, positions: Sequence[int], matches: Sequence[RouteMatch]
    ) -> None:
        """Note the heartbeats among the messages at `positions`."""
        for position, match in zip(positions, matches, strict=True):
            heartbeat = self._context.heartbeats.get(match.route.name) if match.route else None
            message = in_flight.received.messages[position]
            if heartbeat and heartbeat.is_ours(message):
                if heartbeat.note_received(message):
                    self._context.suspicions.note(
                        self._state.name,
                        heartbeat.route,
                        heartbeat.name,
                        "is its heartbeat, and came back",
                        proven=True,
                    )
                in_flight.when_settled(heartbeat.note_delivered)

    def _track(self, batch: Batch) -> InFlightBatch:
        recorder = self._context.recorder
        ids = [*islice(self._context.message_ids, len(batch.messages))]
        system = self._binding.rules.router.dialect.name
        origin = BatchOrigin(self._state.name, system, recorder.clock())
        received = ReceivedBatch(
            batch.messages, origin, ids, batch.identities, archived=recorder.archive is not None
        )
        part = ConnectionPart(self._connection, self._arrived is None)
        in_flight = InFlightBatch(batch, received, recorder, self.in_flight.discard, part)
        if self._arrived is not None:
            self._arrived = in_flight.arrived
        self.in_flight.add(in_flight)
        return in_flight


def _wait_for_originals(in_flight: InFlightBatch) -> None:
    """Settle duplicates no sooner than their originals."""
    for original in {id(each): each for each in in_flight.received.earlier.values()}.values():
        if original is not in_flight:
            in_flight.wait_for(original)


def _parts_of(batch: OutboundBatch) -> Iterator[OutboundBatch]:
    """Yield the parts of a batch, of at most `MAX_PART_BYTES` or of one message."""
    if batch.size <= MAX_PART_BYTES or len(batch.messages) == 1:
        yield batch
        return
    for half in batch.halves():
        yield from _parts_of(half)


def _hold(thinning: HeldCopies, held: HeldBack, batch: OutboundBatch) -> None:
    """Hold a copy that is newer than one of its name that was delivered."""
    thinning.hold(held.copy, batch, held.cut)
