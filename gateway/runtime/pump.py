"""One source's way in: receive a batch, ask the router, hand every copy to its lane."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.endpoints.base import Batch, Source
from gateway.errors import GatewayError, SubjectError, TranslationError
from gateway.model.message import PLAIN, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.headers import NO_RULES
from gateway.routing.payload import convert
from gateway.routing.retry import delay
from gateway.routing.route import Route
from gateway.routing.router import Hop, Router, Way
from gateway.runtime.flight import Archive, Counters, Flight
from gateway.runtime.lane import Lane, Parcel
from gateway.runtime.recording import Copy, Origin, now
from gateway.runtime.state import Connection, EndpointState

log = logging.getLogger(__name__)
WAIT = 0.25  # seconds that a stop may have to wait for a quiet source
REMEMBERED = 10_000  # headers and hops, past which the memory starts anew
OVERHEAD = 300  # bytes a message costs beside its payload while it waits
OPTIONAL_FIELDS = tuple(
    name
    for name in Headers.__dataclass_fields__
    if name not in {"mode", "redelivered", "source_id", "time", "origin"}
)


class Identities:
    """Message ids of this run: its start in microseconds, then a counter; mutable, it counts."""

    def __init__(self, run: int) -> None:
        self.run = run
        self._next = 0
        self._lock = threading.Lock()

    def take(self, number: int) -> int:
        """The first of `number` counters in a row."""
        with self._lock:
            first = self._next
            self._next += number
        return first


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all pumps of a gateway share; `gateway` is its name."""

    gateway: str
    lanes: Mapping[str, Lane]
    archive: Archive | None
    counters: Counters
    identities: Identities


@dataclass(frozen=True, slots=True)
class Adapted:
    """What became of headers on the way of a hop, and the fields that could not cross.

    It holds what it was made from, so that an identity is never another object's.
    """

    given: Headers
    hop: Hop
    made: Headers
    lost: tuple[str, ...]


class Pump:
    """The thread of one source endpoint; mutable, it keeps its flights.

    `receive` is called only by this thread; settlements come back on the threads of the targets.
    """

    def __init__(
        self,
        source: Source,
        state: EndpointState,
        backoff: tuple[float, float],
        router: Router,
        around: Surroundings,
    ) -> None:
        self._source = source
        self._state = state
        self._backoff = backoff
        self._router = router
        self._around = around
        self._selective = any(route.selector is not None for route in router.routes)
        self._adapted: dict[tuple[int, int], Adapted] = {}
        self._flying: set[Flight] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pump, name=f"pump-{state.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop_receiving(self) -> None:
        """Take no more from the source; what is under way goes on."""
        self._stop.set()

    def idle(self) -> bool:
        """Whether the thread has ended and every batch is settled."""
        return not self._thread.is_alive() and not self._flying

    def close(self) -> None:
        """End the thread, then the source: a closed one may hand out again what is unsettled."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=4 * WAIT)  # unless a full lane holds it
        self._source.close()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _pump(self) -> None:
        attempt = 0
        while not self._stop.is_set():
            try:
                if self._state.connection is not Connection.CONNECTED:
                    self._source.open()
                    self._state.connected()
                    attempt = 0
                batch = self._source.receive(WAIT)
            except GatewayError as error:
                self._state.lost(error)
                attempt = attempt + 1 if error.retryable else 99  # a refusal: the longest pause
                self._stop.wait(delay(attempt, *self._backoff, random.random()))  # noqa: S311
                continue
            if batch is not None:
                self._bridge(batch)

    def _bridge(self, batch: Batch) -> None:
        taken: dict[str, tuple[Route, list[int], list[Way]]] = {}
        copies: dict[str, list[Copy]] = {}
        refused: list[Copy] = []
        for position, message in enumerate(batch.messages):
            for way in self._ways(message):
                if way.route is not None:
                    _, positions, ways = taken.setdefault(way.route.name, (way.route, [], []))
                    positions.append(position)
                    ways.append(way)
                for hop in way.hops:
                    if hop.target is None or hop.rule:
                        refused.append(Copy(position, hop))
                    else:
                        copies.setdefault(hop.target.endpoint, []).append(Copy(position, hop))
        if not taken and not refused:
            batch.settle([ACCEPTED] * len(batch.messages))
            return
        flight = self._take_off(batch)
        for route, positions, ways in taken.values():
            flight.received(route, positions, ways)
        for copy in refused:
            flight.refused(copy)
        for endpoint, group in copies.items():
            self._deliver(flight, self._around.lanes[endpoint], batch, group)
        flight.release()

    def _ways(self, message: Message) -> tuple[Way, ...]:
        try:
            ways = self._router[message.address]
        except Exception as error:
            # A fault of ours: this message is set aside with it, the route goes on.
            log.exception("a name was not routed", extra={"endpoint": self._state.name})
            reason = f"{type(error).__name__} while routing; this is a fault of the gateway"
            return (Way(None, (Hop(None, None, "", rule="internal", reason=reason),)),)
        headers = message.headers
        if headers.retained:
            ways = tuple(filter(self._takes_retained, ways))
        if self._selective:
            ways = tuple(way for way in ways if self._selects(way, headers))
        return self._without_loops(ways, headers.origin) if headers.origin else ways

    def _selects(self, way: Way, headers: Headers) -> bool:
        if way.route is None or way.route.selector is None:
            return True
        if way.route.selector.matches(headers):
            return True
        self._around.counters[way.route.name].passes_over()
        return False

    def _without_loops(self, ways: tuple[Way, ...], origin: tuple[str, ...]) -> tuple[Way, ...]:
        kept: list[Way] = []
        for way in ways:
            if way.route is None or not way.route.has_carried(self._around.gateway, origin):
                kept.append(way)
            else:
                self._around.counters[way.route.name].cuts()
        return tuple(kept)

    def _takes_retained(self, way: Way) -> bool:
        if way.route is None or way.route.take_retained:
            return True
        self._around.counters[way.route.name].ignores()
        return False

    def _take_off(self, batch: Batch) -> Flight:
        identities = self._around.identities
        first = identities.take(len(batch.messages))
        system = self._router.dialect.name
        origin = Origin(self._state.name, system, now(), identities.run, first)
        flight = Flight(batch, origin, self._around.archive, self._around.counters)
        self._flying.add(flight)
        flight.landed = self._flying.discard
        return flight

    def _deliver(self, flight: Flight, lane: Lane, batch: Batch, group: list[Copy]) -> None:
        sent: list[Copy] = []
        messages: list[Message] = []
        for copy in group:
            message, hop = batch.messages[copy.position], copy.hop
            try:
                headers = self._headers_for(message.headers, hop, lane)
                payload = message.payload
                if hop.target is not None and hop.target.conversion is not None:
                    payload = convert(payload, hop.target.conversion)
            except TranslationError as error:
                refusal = replace(hop, rule=error.rule, reason=str(error))
                flight.refused(Copy(copy.position, refusal))
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
            )
        )

    def _headers_for(self, headers: Headers, hop: Hop, lane: Lane) -> Headers:
        """Headers as the target gets them; what cannot cross is counted on the route.

        Most messages of a source share their headers, so what became of them is remembered.

        Raises:
            TranslationError: a rule of the target makes a value that does not fit its field.
        """
        key = (id(headers), id(hop))
        known = self._adapted.get(key)
        if known is None or known.given is not headers or known.hop is not hop:
            known = self._adapt(headers, hop, lane)
            if hop.rules is NO_RULES:  # rules may read the clock
                if len(self._adapted) >= REMEMBERED:
                    self._adapted.clear()
                self._adapted[key] = known
        if known.lost and hop.route is not None:
            for field in known.lost:
                self._around.counters[hop.route.name].lost(field)
        return known.made

    def _adapt(self, given: Headers, hop: Hop, lane: Lane) -> Adapted:
        headers = hop.rules.apply(given, now())
        lost = [
            field
            for field in OPTIONAL_FIELDS
            if field not in lane.carries and getattr(headers, field) != getattr(PLAIN, field)
        ]
        if headers.reply_to is not None and hop.target is not None and "reply_to" not in lost:
            try:
                name = hop.target.reply_name(self._router.dialect, headers.reply_to)
                headers = replace(headers, reply_to=name)
            except (SubjectError, TranslationError):
                lost.append("reply_to")
                headers = replace(headers, reply_to=None)
        if hop.route is not None and "origin" in lane.carries:
            passed = (*headers.origin, f"{self._around.gateway}/{hop.route.name}")
            headers = replace(headers, origin=passed)
        return Adapted(given, hop, headers, tuple(lost))
