"""The pump of one source endpoint: receives batches, routes them and hands copies to lanes."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from gateway.endpoints.base import Batch, EndsIntake, Source
from gateway.endpoints.continuity import ReportsContinuity, Retention
from gateway.errors import (
    ArchiveError,
    GatewayError,
    LeaseNotHeldError,
    NotConnectedError,
    unexpected_error,
)
from gateway.routing.route import Route
from gateway.routing.router import RouteMatch
from gateway.runtime.context import GatewayContext, SourceBinding, TraceBatch
from gateway.runtime.delivery.admission import Admission
from gateway.runtime.delivery.backoff import Backoff
from gateway.runtime.delivery.distribution import ByLane, Refused, distribute
from gateway.runtime.delivery.duplicates import DuplicateFilter
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import BatchOrigin
from gateway.runtime.inbound.copy_maker import CopyMaker, HeaderMapper
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.record.counters import ConnectionState, EndpointState
from gateway.runtime.record.gap_recorder import GapRecorder
from gateway.runtime.record.gap_rows import watched_by
from gateway.translate.shorten import ShortNames

log = logging.getLogger(__name__)

RECEIVE_TIMEOUT: Final = 0.25  # seconds; a stop waits this long for a quiet source
FIRST_POLLS: Final = 1.0  # seconds after a connection with short waits: targets wait for its sign
LOOP_LOG_INTERVAL: Final = 60.0  # seconds between two log lines about loops
REBIND_TIMEOUT: Final = 5.0  # seconds for the batches of the old source to be settled
STORE_INTERVAL: Final = 1.0  # seconds between attempts to store short names
END_MARGIN: Final = 0.1  # seconds for the row of a gap before the archive closes
POLL_INTERVAL: Final = 0.02  # seconds between checks for batches in flight
MAX_PART_BYTES: Final = 1 << 20  # of a batch that is handed to a lane at once


class Pump:
    """The thread of one source endpoint.

    Only this thread calls `receive`; settlements arrive on the threads of the targets.
    Mutable: owned by the pump's thread; other threads call only the public methods.
    """

    def __init__(
        self, binding: SourceBinding, state: EndpointState, context: GatewayContext
    ) -> None:
        self.state = state
        self.duplicates = DuplicateFilter()
        self._context = context
        self._binding = binding
        self._next_binding: SourceBinding | None = None  # set by a reload
        self.begun = False  # to receive from the source of the binding
        self._opening = False  # the source; nobody waits for the end of that at a stop
        self._admission = Admission(context.gateway, self.duplicates, context.echoes.take_origin)
        self._copies = self._make_copies(binding)
        ledger, watched = context.ledger, watched_by(binding.router.routes)
        self._gaps = GapRecorder(
            state.name, binding.source, watched, ledger.archive, context.connections, ledger.clock,
            self._oldest_unsettled,
        )  # fmt: skip
        self._in_flight: set[InFlightBatch] = set()
        self._stop = threading.Event()
        self._removed = False  # set before _stop
        self._relay_until = 0.0  # monotonic seconds, after a stop; set before _stop
        self._backoff = Backoff()
        self._alive_at = 0.0  # monotonic seconds; the source was connected after it; 0: never
        self._first_polls_until = 0.0  # monotonic seconds
        self._loops_cut = 0
        self._log_loops_at = 0.0  # monotonic seconds
        self._reconnect_reason = ""  # set when the connection must be replaced
        self._thread = threading.Thread(target=self._run, name=f"pump-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_receiving(self, deadline: float, *, removed: bool = False) -> None:
        """Receive no further batch; batches in flight continue.

        What a source has whose broker keeps nothing is relayed until `deadline`, in monotonic
        seconds. With `removed` a reload took the source away: no gap begins.
        """
        self._removed, self._relay_until = removed, deadline
        self._stop.set()
        self.state.hasten()

    def idle(self) -> bool:
        """Return whether the thread has ended, or only connects, and every batch is settled."""
        return not (self._in_flight or self._is_busy())

    def _is_busy(self) -> bool:
        return self._thread.is_alive() and not self._opening

    @property
    def settled(self) -> bool:
        """Whether every received batch is settled."""
        return not self._in_flight

    def misses(self, since: float) -> bool:
        """Return whether its broker may have no subscription of it, and keep nothing for it.

        A broker that keeps messages for the source does so from the first connection on. At another
        one, a source that has been busy `since` then, in monotonic seconds, may not know that its
        connection is lost. A broker that refuses the source is not waited for. One inside this
        process reports no continuity, and keeps messages for queues that are subscribed.
        """
        source, state = self._binding.source, self.state.connection
        continuity = source.continuity if isinstance(source, ReportsContinuity) else None
        keeps = continuity is not None and continuity.retention is not Retention.NOTHING
        if self._stop.is_set() or (keeps and self._alive_at):
            return False
        if state is ConnectionState.CONNECTED:
            return continuity is not None and self._alive_at < since
        return state in {ConnectionState.CONNECTING, ConnectionState.LOST}

    @property
    def replaces_source(self) -> bool:
        """Whether a reload gave it another source, which is not in use yet."""
        wanted = self._next_binding
        return wanted is not None and wanted.source is not self._binding.source

    def close(self) -> None:
        """End the thread, then close the source: closing may redeliver unsettled messages."""
        self._stop.set()
        self.state.hasten()
        if self._is_busy():
            self._thread.join(timeout=4 * RECEIVE_TIMEOUT)  # a full lane may block it longer
        self._binding.source.close()
        if self._is_busy():
            self._thread.join(timeout=5)

    def rebind(self, binding: SourceBinding) -> None:
        """Continue with the routes of `binding`, and with its source when it is another one.

        Its routes take effect when the sources that the same reload lets read from their targets
        are ready. A pause between attempts to connect ends: its cause may be mended.
        """
        self._next_binding = binding
        self.state.hasten()

    @property
    def routes(self) -> tuple[Route, ...]:
        return (self._next_binding or self._binding).router.routes

    @property
    def rebinding(self) -> bool:
        """Whether a requested rebind is still outstanding."""
        return self._next_binding is not None and self._thread.is_alive()

    def reconnect(self, reason: str) -> None:
        """Replace the connection; any thread may call this."""
        self._reconnect_reason = reason
        self._binding.source.close()  # wakes a blocked receive

    @property
    def last_gap(self) -> str:
        """The last gap of this run, for display; empty without one."""
        return self._gaps.last_gap

    @property
    def source(self) -> Source:
        return self._binding.source

    def _make_copies(self, binding: SourceBinding) -> CopyMaker:
        context = self._context
        mapper = HeaderMapper(context.gateway, binding.router.dialect, context.ledger.counters)
        return CopyMaker(self.state.name, mapper)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._receive_once()
                continue
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a driver's fault, or ours, must not end this thread
                log.exception("unexpected error", extra={"endpoint": self.state.name})
                self._binding.source.close()
                error = unexpected_error(self.state.name, failure)
            if self._opening and self._stop.is_set():
                break
            self._opening = False
            self.state.lost(error)
            with suppress(LeaseNotHeldError):  # without it the new holder receives, and records
                self._context.require_lease()
                self._gaps.lost(error)
            refused = not error.retryable
            pause = self._backoff.pause(
                self._binding.backoff,
                time.monotonic(),
                random.random(),  # noqa: S311  # jitter
                refused=refused,
            )
            if self._next_applicable() is None and not self._stop.is_set():
                self.state.pause(pause)
        if self._opening:
            return
        with suppress(LeaseNotHeldError):
            self._context.require_lease()
            since = self._context.ledger.clock()
            if self._gaps.keeps_nothing:
                since = self._relay_rest(since)
            self._gaps.stopped(since, removed=self._removed)

    def _relay_rest(self, since: int) -> int:
        """Relay what the source has, and await the answers; return since when it misses messages.

        `since` is now. Nobody delivers these messages again. A source that can ends its intake: one
        whose broker sends faster than the targets take always has more.
        """
        source = self._binding.source
        try:
            if self.begun and isinstance(source, EndsIntake):
                source.end_intake()
            while self.begun and time.monotonic() < self._relay_until:
                self._context.require_lease()
                if (batch := source.receive(0)) is None:
                    if not isinstance(source, EndsIntake):
                        since = self._context.ledger.clock()
                    break
                self.state.messages += len(batch.messages)
                self._relay(batch)
        except NotConnectedError as error:
            self.state.lost(error)
            self._gaps.lost(error)
        tick = threading.Event()
        while self._in_flight and time.monotonic() < self._relay_until - END_MARGIN:
            tick.wait(POLL_INTERVAL)
        return since

    def _oldest_unsettled(self) -> int:
        """Return the receipt of the oldest batch in flight, in row microseconds; 0 for none."""
        times = [each.received.origin.time for each in self._in_flight.copy()]
        return min(times, default=0)

    def _receive_once(self) -> None:
        """Open the source if necessary, and relay one batch."""
        if self._next_binding is not None and (wanted := self._next_applicable()) is not None:
            self._apply(wanted)
        if self._reconnect_reason:
            reason, self._reconnect_reason = self._reconnect_reason, ""
            raise NotConnectedError(f"{self.state.name}: {reason}; reconnecting")
        begun = time.monotonic()
        if self.state.connection is not ConnectionState.CONNECTED:
            self._context.require_lease()
            self._opening = True
            self._binding.source.open()
            if self._stop.is_set():  # the gateway may be closed by now
                self._binding.source.close()
                raise NotConnectedError(f"{self.state.name}: stopped while it connected")
            self._opening = False
            self._alive_at = begun
            self._gaps.connected()
            self.state.connected()
            self._backoff.connected(time.monotonic())
            self._first_polls_until = time.monotonic() + FIRST_POLLS
        if not self.begun and not self._binding.readers_ready():
            self._stop.wait(POLL_INTERVAL)
            return
        self.begun = True
        timeout = POLL_INTERVAL if begun < self._first_polls_until else RECEIVE_TIMEOUT
        batch = self._binding.source.receive(timeout)
        self._alive_at = begun
        self._gaps.check()
        if batch is not None:
            self.state.messages += len(batch.messages)
            self._relay(batch)

    def _next_applicable(self) -> SourceBinding | None:
        """Return the binding of a reload, unless its routes must wait and its source is ours."""
        wanted = self._next_binding
        if wanted is None or self.replaces_source or wanted.readers_ready():
            return wanted
        return None

    def _apply(self, binding: SourceBinding) -> None:
        """Switch to `binding`; a replaced source is closed when its batches are settled."""
        if binding.source is not self._binding.source:
            deadline = time.monotonic() + REBIND_TIMEOUT
            while self._in_flight and time.monotonic() < deadline and not self._stop.is_set():
                self._stop.wait(POLL_INTERVAL)
            if self.state.connection is ConnectionState.CONNECTED:
                self._gaps.lost(NotConnectedError(f"{self.state.name}: a reload replaced it"))
            self._binding.source.close()
            self.state.connection = ConnectionState.CONNECTING
            self._alive_at = 0.0
            self.begun = False
        self._binding, self._next_binding = binding, None
        self._gaps.attach(binding.source, watched_by(binding.router.routes))
        self._copies = self._make_copies(binding)

    def _relay(self, batch: Batch) -> None:
        in_flight = self._track(batch)
        received = in_flight.received
        self._admit(in_flight)
        groups, by_lane, refused = distribute(received.matches)
        outbound = self._copy(in_flight, by_lane, refused)
        if self._binding.short_names is not None:
            self._store_short_names(in_flight, self._binding.short_names)
        for original in {id(each): each for each in received.earlier.values()}.values():
            if original is not in_flight:  # settle a duplicate no sooner than its original
                in_flight.expect_answer()
                original.when_settled(in_flight.release)
        if self._context.heartbeats:
            for positions, matches in groups.values():
                self._note_heartbeats(in_flight, positions, matches)
        for position, delivery in refused:
            in_flight.refuse(position, delivery)
        for lane, made in outbound:
            _hand_over(in_flight, lane, made, self._context.trace)
        for positions, matches in groups.values():  # after sending: recording delays no message
            in_flight.record_received(positions, matches)
        if received.cuts:
            self._gaps.cut(received.cuts)
            in_flight.record_cuts()
        in_flight.release()

    def _copy(
        self, in_flight: InFlightBatch, by_lane: ByLane, refused: Refused
    ) -> list[tuple[Lane, OutboundBatch]]:
        """Make the copies of every lane, which may shorten names."""
        outbound: list[tuple[Lane, OutboundBatch]] = []
        for (endpoint, when_full), copies in by_lane.items():
            lane = self._context.lanes.get(endpoint)
            if lane is None:  # a reload removed it while this thread waited
                for at, each in zip(*copies, strict=True):
                    reason = "a reload removed it"
                    refused.append((at, replace(each, rule="target-removed", reason=reason)))
                continue
            made = self._copies.make(in_flight, copies, when_full, lane.binding.carries)
            if made.messages:
                outbound.append((lane, made))
        return outbound

    def _admit(self, in_flight: InFlightBatch) -> None:
        """Recognise echoes and duplicates, which changes their messages, and route the rest."""
        received = in_flight.received
        self._admission.recognise(received, self._binding.rules, in_flight)
        for position in received.loops:
            self._log_loop(received.messages[position].address)
        self._admission.match(received, self._binding.rules.router)
        for route, reason in received.left_out:
            self._context.ledger.counters[route].count_left_out(reason)
        for failure in received.failures:
            log.error(
                "internal error while routing",
                exc_info=failure,
                extra={"endpoint": self.state.name},
            )

    def _log_loop(self, name: str) -> None:
        """Say that a message of this name has gone round too often, at times."""
        self._loops_cut += 1
        if time.monotonic() < self._log_loops_at:
            return
        self._log_loops_at = time.monotonic() + LOOP_LOG_INTERVAL
        log.warning(
            "loop: %r came back again and again, and was cut; %d messages were cut so far. Find the"
            " gateways that return it, or set `loop_window: 0` if an application repeats it",
            name, self._loops_cut,
            extra={"endpoint": self.state.name},
        )  # fmt: skip

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
                    log.error("%s; the source waits", error, extra={"endpoint": self.state.name})  # noqa: TRY400  # the text is complete
                waits = True
                if self._stop.wait(STORE_INTERVAL):
                    self._in_flight.discard(in_flight)
                    raise

    def _note_heartbeats(
        self, in_flight: InFlightBatch, positions: Sequence[int], matches: Sequence[RouteMatch]
    ) -> None:
        """Note the heartbeats among the messages at `positions`."""
        for position, match in zip(positions, matches, strict=True):
            heartbeat = self._context.heartbeats.get(match.route.name) if match.route else None
            message = in_flight.received.messages[position]
            if (
                heartbeat
                and message.address == heartbeat.name
                and heartbeat.is_ours(message.payload)
            ):
                heartbeat.note_received()
                in_flight.when_settled(heartbeat.note_delivered)

    def _track(self, batch: Batch) -> InFlightBatch:
        ledger, message_ids = self._context.ledger, self._context.message_ids
        first = message_ids.reserve(len(batch.messages))
        system = self._binding.rules.router.dialect.name
        origin = BatchOrigin(self.state.name, system, ledger.clock(), message_ids.run, first)
        received = ReceivedBatch(
            batch.messages, origin, batch.identities, archived=ledger.archive is not None
        )
        in_flight = InFlightBatch(batch, received, ledger, self._in_flight.discard)
        self._in_flight.add(in_flight)
        return in_flight


def _hand_over(
    in_flight: InFlightBatch, lane: Lane, batch: OutboundBatch, trace: TraceBatch | None
) -> None:
    """Deliver the copies, in parts that a nearly full disk takes one after the other."""
    if batch.size > MAX_PART_BYTES and len(batch.messages) > 1:
        for half in batch.halves():
            _hand_over(in_flight, lane, half, trace)
        return
    if trace is not None:
        trace(batch, lane.binding.carries)
    in_flight.expect_answer()
    lane.deliver(batch)
