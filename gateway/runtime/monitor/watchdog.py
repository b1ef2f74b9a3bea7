"""The watchdog: sends heartbeats and replaces connections that are open and carry nothing.

A route can be connected at both ends and carry no messages, for example when a session has lost
its subscription. Only a message that passed the whole route shows that it works: its heartbeat,
which is sent to its source and must reach all its targets.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final, Protocol

from gateway.clock import now
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.routing.route import WhenFull
from gateway.runtime.delivery.outbound_batch import OutboundBatch, PendingRow
from gateway.runtime.delivery.rows import payload_bytes
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.record.counters import ConnectionState, EndpointState


class Heartbeat:
    """The heartbeat of one route, with the times it was last received and delivered.

    Its number is the time of its sending, so no other run, and no other instance, has the same one.
    Ages count from the start until the first heartbeat.
    Mutable: written by the pump, the lanes and the watchdog; every write is one assignment.
    Units: seconds of the monotonic clock.
    """

    def __init__(
        self, gateway: str, route: str, endpoint: str, name: str, lanes: Mapping[str, Lane]
    ) -> None:
        self.route = route
        self.endpoint = endpoint  # the source of the route; heartbeats are sent to it
        self.name = name
        self.targets: Sequence[str] = ()  # endpoints of the route; set by each reload
        self.copies = 1  # subscriptions that bring a copy of each heartbeat; likewise
        self._lanes = lanes
        self._prefix = f"gateway-heartbeat {gateway}/{route} ".encode()
        self._receipts: dict[bytes, int] = {}  # of the latest heartbeats, by number
        self._sent = 0  # number of the last one
        self._received_at = self._delivered_at = self.acted_at = monotonic()

    def next_message(self) -> Message:
        """Create the next heartbeat."""
        self._sent = max(self._sent + 1, now())
        number = str(self._sent).encode()
        self._receipts[number] = 0
        if len(self._receipts) > MAX_HEARTBEATS:
            del self._receipts[next(iter(self._receipts))]
        return Message(self.name, self._prefix + number, Headers(mode=DeliveryMode.AT_LEAST_ONCE))

    def is_ours(self, message: Message) -> bool:
        """Return whether `message` is one of the heartbeats that were sent here."""
        return message.address == self.name and self._number(message) in self._receipts

    def note_received(self, message: Message) -> bool:
        """Note that a heartbeat was received; return whether it proves a loop.

        It does when it comes once more than the subscriptions bring it, and the broker does not
        say that it delivers it again.
        """
        number, is_again = self._number(message), message.headers.redelivered
        receipts = self._receipts.get(number, 0)
        if not receipts:
            self._received_at = monotonic()
        if number in self._receipts and not is_again:
            self._receipts[number] = receipts + 1
        return receipts >= self.copies and not is_again

    def _number(self, message: Message) -> bytes:
        payload = payload_bytes(message.payload)
        return payload[len(self._prefix) :] if payload.startswith(self._prefix) else b""

    def note_delivered(self) -> None:
        """Note that a heartbeat was settled; a spooled one does not count as delivered."""
        if all(lane.direct for lane in self.target_lanes):
            self._delivered_at = monotonic()

    @property
    def target_lanes(self) -> list[Lane]:
        """The lanes of the targets of the route; a reload may remove one at any time."""
        return [lane for name in self.targets if (lane := self._lanes.get(name)) is not None]

    @property
    def age(self) -> float:
        """Seconds since a heartbeat was delivered to all targets."""
        return monotonic() - self._delivered_at

    @property
    def source_age(self) -> float:
        """Seconds since a heartbeat was received."""
        return monotonic() - self._received_at


log = logging.getLogger(__name__)

CHECK_INTERVAL: Final = 0.5  # seconds between two checks of all lanes and heartbeats
SEND_INTERVAL: Final = 0.1  # seconds between two checks for messages to send
MAX_QUEUED: Final = 1_000  # copies of dead letters that wait to be published
MAX_HEARTBEATS: Final = 1_000  # of a route, whose return is noticed
MAX_MISSED: Final = 3  # heartbeats in a row; without them a route counts as stuck


class ReceivingSide(Protocol):
    """The pump of a source, as the watchdog uses it."""

    @property
    def state(self) -> EndpointState:
        """The connection of the source."""

    def reconnect(self, reason: str) -> None:
        """Replace the connection of the source."""


class NoOrigin:
    """The origin of messages that nobody waits for: heartbeats, and copies of dead letters."""

    def answered(self, batch: OutboundBatch) -> None:
        """Ignore the answer; a heartbeat that does not arrive is noticed as missing."""

    def pending_rows(self, _: OutboundBatch) -> Sequence[PendingRow]:
        return ()


class Watchdog:
    """Checks every lane and heartbeat; sends heartbeats and copies of dead letters.

    Thread-safe: the queue of dead letters is a deque; other fields belong to the two threads.
    """

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        pumps: Mapping[str, ReceivingSide],
        heartbeats: Mapping[str, Heartbeat],
        interval: Callable[[], float],
        recount: Callable[[], None] = lambda: None,
    ) -> None:
        """`interval` gives the seconds between two heartbeats of a route.

        `recount` looks at what other processes have deleted.
        """
        self._lanes = lanes
        self._pumps = pumps
        self._heartbeats = heartbeats
        self._interval, self._recount = interval, recount
        self._stop = threading.Event()
        self._queue: deque[tuple[str, Message]] = deque(maxlen=MAX_QUEUED)
        # a driver may block a send, so sending has a thread of its own
        steps = {
            "watch": (CHECK_INTERVAL, self._check_all),
            "beat": (SEND_INTERVAL, self._send_due),
        }
        self._threads = [
            threading.Thread(target=self._run, args=step, name=name, daemon=True)
            for name, step in steps.items()
        ]
        self._next_heartbeat = 0.0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=2)

    def publish(self, endpoint: str, messages: Sequence[Message]) -> None:
        """Queue messages for `endpoint`; a full queue drops the oldest.

        A message is sent once, and dropped if the endpoint cannot take it at that moment.
        """
        self._queue.extend((endpoint, message) for message in messages)

    def _run(self, interval: float, step: Callable[[], None]) -> None:
        while not self._stop.wait(interval):
            try:
                step()
            except Exception:  # try again at the next interval
                log.exception("unexpected error in the watchdog")

    def _check_all(self) -> None:
        for lane in list(self._lanes.values()):
            lane.check_answers()
        for heartbeat in list(self._heartbeats.values()):
            self._check_heartbeat(heartbeat)
        self._recount()

    def _send_due(self) -> None:
        """Send the queued messages, and the heartbeats when they are due."""
        while self._queue:
            self._offer(*self._queue.popleft())
        if monotonic() >= self._next_heartbeat:
            self._next_heartbeat = monotonic() + self._interval()
            for heartbeat in list(self._heartbeats.values()):
                self._offer(heartbeat.endpoint, heartbeat.next_message())

    def _offer(self, endpoint: str, message: Message) -> None:
        lane = self._lanes.get(endpoint)
        if lane is not None:
            lane.offer(OutboundBatch(NoOrigin(), WhenFull.SLOW, [message]))

    def _check_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Reconnect the source or the targets of a route whose heartbeats are missing.

        The source is reconnected if no heartbeat was received, otherwise the targets.
        """
        timeout = MAX_MISSED * self._interval()
        pump = self._pumps.get(heartbeat.endpoint)
        if pump is None or min(heartbeat.age, monotonic() - heartbeat.acted_at) < timeout:
            return
        targets = heartbeat.target_lanes
        states = [pump.state, *(lane.state for lane in targets)]
        if any(state.connection is not ConnectionState.CONNECTED for state in states):
            return  # the lost connection is being reopened
        heartbeat.acted_at = monotonic()
        reason = f"no heartbeat of route {heartbeat.route!r} for {heartbeat.age:.0f} s"
        if heartbeat.source_age >= timeout:
            if (lane := self._lanes.get(heartbeat.endpoint)) is not None:
                lane.reconnect(reason)
            pump.reconnect(reason)
            return
        for lane in targets:
            lane.reconnect(reason)
