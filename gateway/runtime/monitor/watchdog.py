"""Looks after what cannot look after itself: heartbeats, and connections that only seem to work."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final

from gateway.model.message import Message
from gateway.model.outcome import Settlement
from gateway.runtime.monitor.counters import Connection
from gateway.runtime.monitor.heartbeat import Pulse
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.pump import Pump

log = logging.getLogger(__name__)

LOOK: Final = 0.5  # seconds between two looks
BEAT: Final = 0.1  # seconds that something to send waits
WAITING: Final = 1_000  # messages to publish that wait at most
MISSED: Final = 3  # heartbeats in a row without which a route counts as stuck


class Watch:
    """Looks at every lane, sends heartbeats and copies of dead letters; mutable, it has threads."""

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        pumps: Mapping[str, Pump],
        pulses: Mapping[str, Pulse],
        seconds: Callable[[], float],
    ) -> None:
        """`seconds` between two heartbeats."""
        self._lanes = lanes
        self._pumps = pumps
        self._pulses = pulses
        self._seconds = seconds
        self._stop = threading.Event()
        self._letters: deque[tuple[str, Message]] = deque(maxlen=WAITING)
        steps = {"watch": (LOOK, self._look), "beat": (BEAT, self._beat)}
        self._threads = [
            threading.Thread(target=self._run, args=step, name=name, daemon=True)
            for name, step in steps.items()
        ]
        self._next = 0.0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=2)

    def publish(self, endpoint: str, messages: Sequence[Message]) -> None:
        """Send messages to `endpoint` soon, if it is there; the oldest go when there are many."""
        self._letters.extend((endpoint, message) for message in messages)

    def _run(self, pause: float, step: Callable[[], None]) -> None:
        while not self._stop.wait(pause):
            try:
                step()
            except Exception:  # the next time may be better
                log.exception("a fault while looking after the connections")

    def _look(self) -> None:
        for lane in list(self._lanes.values()):
            lane.look()
        for pulse in list(self._pulses.values()):
            self._look_at(pulse)

    def _beat(self) -> None:
        """Send what is due; in a thread of its own, as a driver may make it wait."""
        while self._letters:
            self._offer(*self._letters.popleft())
        if monotonic() >= self._next:
            self._next = monotonic() + self._seconds()
            for pulse in list(self._pulses.values()):
                self._offer(pulse.endpoint, pulse.message())

    def _offer(self, endpoint: str, message: Message) -> None:
        lane = self._lanes.get(endpoint)
        if lane is not None:
            lane.offer(Parcel([message], len(message.payload), _forget, list))

    def _look_at(self, pulse: Pulse) -> None:
        """Build anew what a missing heartbeat points to: its source, or its targets."""
        patience = MISSED * self._seconds()
        pump = self._pumps.get(pulse.endpoint)
        if pump is None or min(pulse.age, monotonic() - pulse.acted) < patience:
            return
        ends = [pump.state, *(self._lanes[name].state for name in _targets(pump, pulse.route))]
        if any(end.connection is not Connection.CONNECTED for end in ends):
            return  # that one is known, and being mended
        pulse.acted = monotonic()
        reason = f"no heartbeat of route {pulse.route!r} for {pulse.age:.0f} s"
        if pulse.source_age >= patience:
            self._lanes[pulse.endpoint].rebuild(reason)
            pump.rebuild(reason)
            return
        for name in _targets(pump, pulse.route):
            self._lanes[name].rebuild(reason)


def _targets(pump: Pump, name: str) -> Sequence[str]:
    """The endpoints that the route `name` of `pump` sends to."""
    routes = [route for route in pump.routes if route.name == name]
    return sorted({target.endpoint for route in routes for target in route.targets})


def _forget(_settlements: Sequence[Settlement], _attempts: int) -> None:
    """A heartbeat that does not arrive is missed; nothing else is to be done."""
