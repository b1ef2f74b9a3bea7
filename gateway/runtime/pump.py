"""One source's way in: receive a batch, ask the router, hand every copy to its lane."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from gateway.clock import now
from gateway.endpoints.base import Batch, Source
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.message import GATEWAY_ID, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.payload import convert
from gateway.routing.route import Route, Target, WhenFull
from gateway.routing.router import Hop, Way
from gateway.runtime.context import Carrier, Intake, Surroundings
from gateway.runtime.delivery.in_flight import Flight, Share
from gateway.runtime.inbound.admission import Admission
from gateway.runtime.inbound.dedup import Landing, Seen
from gateway.runtime.inbound.header_mapping import Adapter
from gateway.runtime.monitor.counters import Connection, EndpointState
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.backoff import Attempts
from gateway.runtime.record.rows import Origin

log = logging.getLogger(__name__)

Taken: TypeAlias = dict[int, tuple[list[int], list[Way]]]
Shares: TypeAlias = dict[tuple[str, WhenFull], Share]
Refused: TypeAlias = list[tuple[int, Hop]]

WAIT = 0.25  # seconds that a stop may have to wait for a quiet source
LETTING_GO = 5.0  # seconds that a changed source gets for what it has brought
SOON = 0.02  # seconds between looks at what is under way
OVERHEAD = 300  # bytes a message costs beside its payload while it waits


class Pump:
    """The thread of one source endpoint; mutable, it keeps its flights.

    `receive` is called only by this thread; settlements come back on the threads of the targets.
    """

    def __init__(self, intake: Intake, state: EndpointState, around: Surroundings) -> None:
        self.state = state
        self.seen = Seen()
        self._around = around
        self._intake = intake
        self._next: Intake | None = None  # what a reload wants instead
        self._admission = Admission(state.name, around, self.seen)
        self._adapter = self._make_adapter(intake)
        self._flying: set[Flight] = set()
        self._stop = threading.Event()
        self._attempts = Attempts()
        self._given_up = ""  # why the connection is to be built anew
        self._thread = threading.Thread(target=self._pump, name=f"pump-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_receiving(self) -> None:
        """Take no more from the source; what is under way goes on."""
        self._stop.set()

    def idle(self) -> bool:
        """Whether the thread has ended and every batch is settled."""
        return not self._thread.is_alive() and not self._flying

    @property
    def settled(self) -> bool:
        """Whether every batch that was received is settled."""
        return not self._flying

    def close(self) -> None:
        """End the thread, then the source: a closed one may hand out again what is unsettled."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=4 * WAIT)  # unless a full lane holds it
        self._intake.source.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def exchange(self, intake: Intake) -> None:
        """Go on with other routes, and with another source when `intake` has one."""
        self._next = intake

    @property
    def routes(self) -> tuple[Route, ...]:
        return (self._next or self._intake).router.routes

    @property
    def changing(self) -> bool:
        """Whether an exchange is asked for and has not happened."""
        return self._next is not None and self._thread.is_alive()

    def rebuild(self, reason: str) -> None:
        """Give up the connection and build a new one; may be called from any thread."""
        self._given_up = reason
        self._intake.source.close()  # wakes a receive that would wait for ever

    @property
    def source(self) -> Source:
        return self._intake.source

    def _make_adapter(self, intake: Intake) -> Adapter:
        around = self._around
        return Adapter(around.gateway, intake.router.dialect, around.ledger.counters)

    def _pump(self) -> None:
        while not self._stop.is_set():
            try:
                self._step()
                continue
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a fault of a driver, or ours, must not end this thread
                log.exception("a fault", extra={"endpoint": self.state.name})
                self._intake.source.close()
                error = NotConnectedError(f"{self.state.name}: {type(failure).__name__}: {failure}")
            self.state.lost(error)
            refused = not error.retryable
            self._stop.wait(self._attempts.pause(self._intake.backoff, refused=refused))

    def _step(self) -> None:
        """Open the source unless it is open, and bridge a batch."""
        if self._next is not None:
            self._change(self._next)
        if self._given_up:
            reason, self._given_up = self._given_up, ""
            text = f"{self.state.name}: {reason}; the connection is built anew"
            raise NotConnectedError(text)
        if self.state.connection is not Connection.CONNECTED:
            self._intake.source.open()
            self.state.connected()
            self._attempts.connected()
        batch = self._intake.source.receive(WAIT)
        if batch is not None:
            self.state.messages += len(batch.messages)
            self._bridge(batch)

    def _change(self, wanted: Intake) -> None:
        """Take the routes of `wanted`; its source too, once what the old one brought has ended."""
        if wanted.source is not self._intake.source:
            deadline = time.monotonic() + LETTING_GO
            while self._flying and time.monotonic() < deadline and not self._stop.is_set():
                self._stop.wait(SOON)
            self._intake.source.close()
            self.state.connection = Connection.CONNECTING
        self._intake, self._next = wanted, None
        self._adapter = self._make_adapter(wanted)

    def _bridge(self, batch: Batch) -> None:
        landing = Landing()
        batch, twins = self._admission.recognise(batch, self._intake, landing)
        taken, shares, refused = self._sort(batch, twins)
        if not taken and not refused and not twins:
            batch.settle([ACCEPTED] * len(batch.messages))
            return
        flight = self._take_off(batch, landing)
        for earlier in {id(each): each for each in twins.values()}.values():
            if earlier is not landing:  # a duplicate is settled no sooner than what it doubles
                flight.sent()
                earlier.follow(flight.release)
        if self._around.pulses:
            for positions, ways in taken.values():
                self._feel(batch, positions, ways, landing)
        for position, hop in refused:
            flight.refused(position, hop)
        for (endpoint, when_full), share in shares.items():
            self._deliver(flight, self._around.lanes[endpoint], batch, share, when_full)
        for positions, ways in taken.values():  # no message need wait until this is recorded
            flight.received(positions, ways)
        flight.release()

    def _sort(self, batch: Batch, twins: Mapping[int, Landing]) -> tuple[Taken, Shares, Refused]:
        """What was taken, what each lane gets, and what cannot go to one.

        Of what was taken each route that keeps payloads has its own, the others share theirs.
        """
        taken: Taken = {}
        shares: Shares = {}
        refused: Refused = []
        of_target: dict[int, Share] = {}
        found_ways = self._admission.ways(batch.messages, self._intake, twins)
        for position, each in enumerate(found_ways):
            for way in each:
                route = way.route
                if route is not None:
                    own = id(route) if route.archive_payload else 0
                    found = taken.get(own)
                    if found is None:
                        found = taken[own] = ([], [])
                    found[0].append(position)
                    found[1].append(way)
                for hop in way.hops:
                    target = hop.target
                    if target is None or hop.rule:
                        refused.append((position, hop))
                        continue
                    share = of_target.get(id(target))
                    if share is None:
                        share = shares.setdefault((target.endpoint, target.when_full), Share())
                        of_target[id(target)] = share
                    share.positions.append(position)
                    share.hops.append(hop)
        return taken, shares, refused

    def _feel(
        self, batch: Batch, positions: Sequence[int], ways: Sequence[Way], landing: Landing
    ) -> None:
        """Notice heartbeats of routes among what those took."""
        for position, way in zip(positions, ways, strict=True):
            pulse = self._around.pulses.get(way.route.name) if way.route else None
            message = batch.messages[position]
            if pulse and message.address == pulse.name and pulse.is_ours(message.payload):
                pulse.arrived()
                landing.follow(pulse.landed)

    def _take_off(self, batch: Batch, landing: Landing) -> Flight:
        identities = self._around.identities
        first = identities.take(len(batch.messages))
        system = self._intake.router.dialect.name
        origin = Origin(self.state.name, system, now(), identities.run, first)
        flight = Flight(batch, origin, self._around.ledger, landing)
        self._flying.add(flight)
        flight.landed = self._flying.discard
        return flight

    def _deliver(
        self, flight: Flight, lane: Carrier, batch: Batch, found: Share, when_full: WhenFull
    ) -> None:
        share = Share()
        carries, adapt = lane.outlet.carries, self._adapter.adapt
        for position, hop in zip(found.positions, found.hops, strict=True):
            given, target = batch.messages[position], hop.target
            try:
                message = Message(hop.address, given.payload, adapt(given.headers, hop, carries))
                if target is not None and (target.conversion is not None or target.identify):
                    message = _finished(message, target, flight, position)
            except TranslationError as error:
                flight.refused(position, replace(hop, rule=error.rule, reason=str(error)))
                continue
            except Exception as error:
                log.exception("a message was not made", extra={"endpoint": self.state.name})
                reason = f"{type(error).__name__} while translating; this is a fault of the gateway"
                flight.refused(position, replace(hop, rule="internal", reason=reason))
                continue
            share.positions.append(position)
            share.hops.append(hop)
            share.messages.append(message)
        messages = share.messages
        if not messages:
            return
        flight.sent()
        lane.deliver(
            Parcel(
                messages,
                sum([len(message.payload) for message in messages]) + OVERHEAD * len(messages),
                lambda settlements, attempts: flight.answered(share, settlements, attempts),
                lambda: flight.ends(share),
                when_full,
            )
        )


def _finished(message: Message, target: Target, flight: Flight, position: int) -> Message:
    """The message as a target gets it that wants more than a name; `position` is in the batch."""
    headers, payload = message.headers, message.payload
    if target.conversion is not None:
        payload = convert(payload, target.conversion)
    if target.identify:
        properties = {**headers.properties, GATEWAY_ID: flight.identity(position).hex()}
        headers = replace(headers, properties=properties)
    return Message(message.address, payload, headers)
