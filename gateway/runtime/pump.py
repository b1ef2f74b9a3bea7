"""One source's way in: receive a batch, ask the router, hand every copy to its lane."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TypeAlias

from gateway.endpoints.base import Batch, Source
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.message import GATEWAY_ID, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.payload import convert
from gateway.routing.retry import delay
from gateway.routing.route import Route, WhenFull
from gateway.routing.router import Way
from gateway.runtime.adapting import Adapter
from gateway.runtime.admission import Admission
from gateway.runtime.backlog import Parcel
from gateway.runtime.duplicates import Landing, Seen
from gateway.runtime.flight import Flight
from gateway.runtime.lane import Lane
from gateway.runtime.recording import Copy, Origin, now
from gateway.runtime.state import Connection, EndpointState
from gateway.runtime.surroundings import Intake, Surroundings

log = logging.getLogger(__name__)

Taken: TypeAlias = dict[str, tuple[Route, list[int], list[Way]]]
Shares: TypeAlias = dict[tuple[str, WhenFull], list[Copy]]

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
        attempt = 0
        while not self._stop.is_set():
            try:
                if self._step():
                    attempt = 0
                continue
            except GatewayError as failure:
                error = failure
            except Exception as failure:  # a fault of a driver, or ours, must not end this thread
                log.exception("a fault", extra={"endpoint": self.state.name})
                self._intake.source.close()
                error = NotConnectedError(f"{self.state.name}: {type(failure).__name__}: {failure}")
            self.state.lost(error)
            attempt = attempt + 1 if error.retryable else 99  # a refusal: the longest pause
            self._stop.wait(delay(attempt, *self._intake.backoff, random.random()))  # noqa: S311

    def _step(self) -> bool:
        """Open the source or bridge a batch; whether the source is open."""
        if self._next is not None:
            self._change(self._next)
        if self._given_up:
            reason, self._given_up = self._given_up, ""
            text = f"{self.state.name}: {reason}; the connection is built anew"
            raise NotConnectedError(text)
        if self.state.connection is not Connection.CONNECTED:
            self._intake.source.open()
            self.state.connected()
        batch = self._intake.source.receive(WAIT)
        if batch is not None:
            self.state.messages += len(batch.messages)
            self._bridge(batch)
        return True

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
        taken, copies, refused = self._sort(batch, twins)
        if not taken and not refused and not twins:
            batch.settle([ACCEPTED] * len(batch.messages))
            return
        flight = self._take_off(batch, landing)
        for earlier in {id(each): each for each in twins.values()}.values():
            if earlier is not landing:  # a duplicate is settled no sooner than what it doubles
                flight.sent()
                earlier.follow(flight.release)
        for route, positions, ways in taken.values():
            flight.received(route, positions, ways)
            self._feel(route, batch, positions, landing)
        for copy in refused:
            flight.refused(copy)
        for (endpoint, when_full), group in copies.items():
            self._deliver(flight, self._around.lanes[endpoint], batch, group, when_full)
        flight.release()

    def _sort(self, batch: Batch, twins: Container[int]) -> tuple[Taken, Shares, list[Copy]]:
        """What each route took, what each target gets, and what cannot go to one."""
        taken: Taken = {}
        copies: Shares = {}
        refused: list[Copy] = []
        for position, message in enumerate(batch.messages):
            for way in self._admission.ways(message, self._intake, twin=position in twins):
                if way.route is not None:
                    _, positions, ways = taken.setdefault(way.route.name, (way.route, [], []))
                    positions.append(position)
                    ways.append(way)
                for hop in way.hops:
                    if hop.target is None or hop.rule:
                        refused.append(Copy(position, hop))
                    else:
                        key = hop.target.endpoint, hop.target.when_full
                        copies.setdefault(key, []).append(Copy(position, hop))
        return taken, copies, refused

    def _feel(self, route: Route, batch: Batch, positions: Sequence[int], landing: Landing) -> None:
        """Notice a heartbeat of the route among what it took."""
        pulse = self._around.pulses.get(route.name)
        if pulse is None:
            return
        for position in positions:
            message = batch.messages[position]
            if message.address == pulse.name and pulse.is_ours(message.payload):
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
        self, flight: Flight, lane: Lane, batch: Batch, group: list[Copy], when_full: WhenFull
    ) -> None:
        sent: list[Copy] = []
        messages: list[Message] = []
        for copy in group:
            message, hop = batch.messages[copy.position], copy.hop
            try:
                headers = self._adapter.adapt(message.headers, hop, lane.outlet.carries)
                payload = message.payload
                if hop.target is not None and hop.target.conversion is not None:
                    payload = convert(payload, hop.target.conversion)
                if hop.target is not None and hop.target.identify:
                    headers = _identified(headers, flight.identity(copy.position))
            except TranslationError as error:
                refusal = replace(hop, rule=error.rule, reason=str(error))
                flight.refused(Copy(copy.position, refusal))
                continue
            except Exception as error:
                log.exception("a message was not made", extra={"endpoint": self.state.name})
                reason = f"{type(error).__name__} while translating; this is a fault of the gateway"
                flight.refused(Copy(copy.position, replace(hop, rule="internal", reason=reason)))
                continue
            sent.append(copy)
            messages.append(Message(hop.address, payload, headers))
        if not messages:
            return
        size = sum(len(message.payload) + OVERHEAD for message in messages)
        flight.sent()
        lane.deliver(
            Parcel(
                messages,
                size,
                lambda settlements, attempts: flight.answered(
                    sent, messages, settlements, attempts
                ),
                lambda: flight.ends(sent, messages),
                when_full,
            )
        )


def _identified(headers: Headers, identity: bytes) -> Headers:
    return replace(headers, properties={**headers.properties, GATEWAY_ID: identity.hex()})
