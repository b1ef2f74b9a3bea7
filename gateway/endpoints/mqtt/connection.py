"""One MQTT connection: its socket, its log-in and log-out, and the thread that reads it.

It never reconnects: a lost connection stays lost, and the next `open` of its owner makes a new
one. So nothing is sent twice without the owner's knowledge.
"""

from __future__ import annotations

import logging
import select
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from gateway.clock import now
from gateway.endpoints.leader_followers import CHECK_INTERVAL, Leadership
from gateway.endpoints.mqtt.client_id import ClosedConnections
from gateway.endpoints.mqtt.connection_errors import ConnectionErrors
from gateway.endpoints.mqtt.keep_alive import KeepAlive
from gateway.endpoints.mqtt.read_rate import GATHER_PAUSE, ReadRate
from gateway.endpoints.mqtt.session import MqttSession
from gateway.endpoints.mqtt.subscription_state import RequestedSubscription
from gateway.endpoints.mqtt.transport import connect
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_shell import not_open
from gateway.errors import GatewayError, NotConnectedError, WireError
from gateway.wire.mqtt.packets import PINGREQ, DecodedPackets, PacketDecoder
from gateway.wire.mqtt.session_packets import DISCONNECT_PACKET

log = logging.getLogger(__name__)

PAUSED_INTERVAL = 0.02  # seconds between checks for room while reading is paused
LARGE_BLOCK = 262_144  # bytes after which nothing is gained by a pause
MAX_ANSWERS = 4_194_304  # bytes of answers that wait to be written; above it reading is paused
COUNT_TIMEOUT = 2.0  # seconds for the answer about the count of dropped messages
CLOSE_TIMEOUT = 1.0  # seconds to write the last acknowledgements and the DISCONNECT


class ConnectionOwner(Protocol):
    """The owner of a connection; it gets one call at a time, from the current leader."""

    def packets_received(self, packets: DecodedPackets) -> None:
        """Handle the packets of one block."""

    def wants_more(self) -> bool:
        """Return False to pause reading; pings are still sent."""
        return True

    def tick(self, now: float) -> GatewayError | None:  # noqa: ARG002  # for owners with clocks
        """Check the clock, a few times a second; an error ends the connection."""
        return None

    def connection_lost(self, failure: GatewayError) -> None:
        """Handle the end of the connection; called once, also after `close`."""


class MqttConnection:
    """A connection to a broker with its session.

    Mutable: owned by the current leader (`Leadership`); any thread may write, wake and close.
    """

    def __init__(  # the parameters of the log-in, and its owner's two sides
        self,
        settings: MqttSettings,
        client_id: str,
        *,
        clean: bool,
        owner: ConnectionOwner,
        closed: ClosedConnections | None = None,
        will: tuple[str, bytes] | None = None,
    ) -> None:
        self._settings, self._owner = settings, owner
        self._closed = closed or ClosedConnections()
        self._errors = ConnectionErrors(settings, client_id, self._closed)
        self._client_id = client_id
        label = self._errors.label
        self.session = MqttSession(settings, client_id, clean=clean, label=label, will=will)
        self._decoder = PacketDecoder(settings.version, now, max_packet=settings.max_packet_in)
        self.failure: GatewayError | None = None
        self._closed_for = not_open(self._errors.label)
        self._closing = self._write_failed = False
        self._ping_lock = threading.Lock()  # from the number of a ping to its bytes
        self.pings = 0  # PINGREQs that were sent; the broker answers them in order
        self._reading = True
        self._last_block = 0  # bytes
        self._answers = 0  # bytes of answers since nothing waited to be written
        self._rate = ReadRate()
        self._clock_checked = 0.0
        self._answer_awaited_since = 0.0  # when the last SUBACK could have been read
        leadership = self._leadership = Leadership(self)
        self.lead, self.await_answer = leadership.lead, leadership.await_answer
        self.follow, self.wake = leadership.follow, leadership.wake

    def open(
        self,
        wanted: Callable[[bool], Sequence[RequestedSubscription]],
        changed: Callable[[], Sequence[str]] = tuple,
        unwanted: Callable[[], Sequence[str]] = tuple,
        count_topic: str = "",
    ) -> None:
        """Connect, log in, subscribe to `wanted(session_present)` and unsubscribe `unwanted()`.

        Filters of `changed()` are unsubscribed before: mosquitto 2.0.11 keeps the options of a
        subscription that is repeated, against MQTT 5.0, 3.8.4.
        A broker may refuse `count_topic`, which is subscribed last, or not answer for it.

        A kept session sends its backlog before it answers. If the owner wants no more of that, or
        it takes longer than `connect_timeout`, return while subscriptions have no answer; `failure`
        is set if it is a refusal.

        Raises:
            NotConnectedError: the broker is unreachable, or does not answer in time.
            EndpointError: the broker refuses permanently; the text names the reason.
        """
        deadline = monotonic() + self._settings.connect_timeout
        self.socket = connect(self._settings, self._errors, deadline)
        self._leadership.attach(self.socket.fileno)
        self._alive = KeepAlive(monotonic())
        try:
            self._log_in(deadline)
            subscriptions = self.session.subscriptions
            requested = wanted(self.session.present)
            packets = subscriptions.unsubscribe(changed()) + subscriptions.subscribe(requested)
            counts = subscriptions.subscribe_count(count_topic) if count_topic else []
            self.write(*packets, *subscriptions.unsubscribe(unwanted()), *counts)
            self._await_subscriptions(deadline)
            self._await_count(monotonic() + COUNT_TIMEOUT)
        except BaseException:
            self._release()
            raise
        self._leadership.start(f"mqtt {self._client_id}")

    def write(self, *pieces: bytes) -> None:
        """Write bytes, or keep them until the socket takes them.

        Raises:
            NotConnectedError: the connection is over.
        """
        if self.failure is not None:
            raise self.failure
        self._alive.last_write = monotonic()
        try:
            done = self.socket.write(pieces)
        except OSError as error:
            self._write_failed = True  # the own thread ends the connection
            self.wake()
            raise self._errors.not_connected(error) from error
        if not done:
            self.wake()

    def ping(self, *pieces: bytes) -> int:
        """Write `pieces` and a PINGREQ; return its number, from 1 on.

        Raises:
            NotConnectedError: the connection is over.
        """
        with self._ping_lock:
            self.pings += 1
            self.write(*pieces, PINGREQ)
            return self.pings

    def answer(self, data: bytes) -> None:
        """Write an answer to received packets; too many that wait pause the reading.

        Raises:
            NotConnectedError: the connection is over.
        """
        self._answers = self._answers + len(data) if self.socket.backlog else 0
        self.write(data)

    @property
    def silence(self) -> float:
        """Seconds since the last bytes of the broker."""
        return monotonic() - self._alive.last_read

    def needs_own_thread(self) -> bool:
        """Return whether the traffic is heavy, bytes wait to be written, or it is over."""
        return self.is_over() or self._rate.heavy or self.socket.backlog > 0

    def is_over(self) -> bool:
        return self._closing or self.failure is not None

    def resume_reading(self) -> None:
        """Wake the own thread if reading is paused."""
        if not self._reading:
            self.wake()

    def close(self, reason: NotConnectedError | None = None) -> None:
        """Log out and release everything; `reason` is the failure for later calls.

        Never raises; may be called twice.
        """
        self._closed_for = reason or self._closed_for
        self._closing = True
        self._leadership.join(CLOSE_TIMEOUT + 4 * CHECK_INTERVAL)

    def _log_in(self, deadline: float) -> None:
        try:
            self.write(self.session.log_in())
        except NotConnectedError as error:  # the broker's last packets give a better reason
            self._serve_socket(0.0)
            raise self.failure or error from error
        if not self._serve_until(lambda: self.session.connected, deadline):
            raise self._errors.no_answer("the log-in")
        self._closed.logged_in()

    def _await_subscriptions(self, deadline: float) -> None:
        """Serve until the last SUBACK, or until the rest of the backlog has to be received."""
        self._answer_awaited_since = monotonic()
        if not self._serve_until(
            lambda: (
                self.session.subscriptions.answered
                or not self._owner.wants_more()
                or (monotonic() >= deadline and self._alive.last_read > self._answer_awaited_since)
            ),
            deadline,
        ):
            raise self._errors.no_answer("the subscriptions")

    def _await_count(self, deadline: float) -> None:
        """Serve until the broker has answered for the count: one that hangs up does so now."""
        asked, owner = self.session.subscriptions, self._owner
        self._serve_until(
            lambda: not (asked.count_unanswered and asked.answered and owner.wants_more()), deadline
        )

    def _serve_until(self, is_done: Callable[[], bool], deadline: float) -> bool:
        """Serve until `is_done`; return False at the deadline, and raise why it is over."""
        while not is_done():
            left = deadline - monotonic()
            if left <= 0:
                return False
            self._serve_socket(min(left, CHECK_INTERVAL))
            if self.failure is not None:
                raise self.failure
        return True

    def finish(self) -> None:
        """Log out unless the connection broke, release everything, and call the owner."""
        try:
            if self._closing and self.failure is None:
                with self._leadership.leader_lock:
                    self._log_out()
        finally:
            with self._leadership.leader_lock:
                failure = self.failure = self.failure or self._closed_for
                self._release()
            self._owner.connection_lost(failure)

    def serve(self, timeout: float) -> None:
        """Wait for an event on the socket and handle it; check the clock when that is due."""
        self._serve_socket(timeout)
        self._tick()

    def poll(self, *, readable: bool) -> None:
        """Read when `readable`; check the clock when that is due."""
        if readable:
            self._reading = self._wants_more()
            self._handle(select.POLLIN)
        self._tick()

    def _tick(self) -> None:
        now = monotonic()
        if self.failure is None and now - self._clock_checked >= CHECK_INTERVAL:
            self._clock_checked = now
            try:
                self._check_clock(now)
            except GatewayError as error:
                self._fail(error)

    def _serve_socket(self, timeout: float) -> None:
        socket = self.socket
        reading = self._reading = self._wants_more()
        if not reading:
            timeout = PAUSED_INTERVAL
        elif socket.more:
            timeout = 0.0
        gather = self._may_gather() and self._last_block < LARGE_BLOCK and not socket.backlog
        events = self._leadership.wait(
            (select.POLLIN if reading else 0) | (select.POLLOUT if socket.backlog else 0),
            timeout,
            pause=GATHER_PAUSE if gather else 0.0,
        )
        self._handle(events)

    def _wants_more(self) -> bool:
        answers_wait = self._answers > MAX_ANSWERS and self.socket.backlog > 0
        return not answers_wait and self._owner.wants_more()

    def _may_gather(self) -> bool:
        """Return whether packets arrive fast and no thread waits for one of them."""
        return self._rate.fast and not self._leadership.answer_awaited

    def _handle(self, events: int) -> None:
        """Write and read after these events on the socket."""
        socket = self.socket
        broken = bool(events & (select.POLLERR | select.POLLHUP))
        try:
            if events & select.POLLOUT and not broken:
                socket.flush()
            # the broker's last packets tell why it is over, also while reading is paused
            if broken or (self._reading and (events or socket.more)):
                self._read()
            elif self._write_failed:
                self._fail(self._errors.not_connected("the connection broke"))
        except OSError as error:
            self._fail(self._errors.of_socket(error, connected=self.session.connected))
        except WireError as error:
            self._fail(self._errors.broken(error, connected=self.session.connected))
        except GatewayError as error:
            self._fail(error)

    def _read(self) -> None:
        """Read at most one block from the socket, and count its packets and bytes."""
        data = self.socket.read()
        packets = self._take_in(data) if data else 0
        if data == b"":
            said, connected = self.socket.end_reason, self.session.connected
            self._fail(self._errors.closed_by_broker(said, connected=connected))
        self._last_block = len(data or b"")
        self._rate.count(packets, self._last_block, self._alive.last_read)
        if not self._rate.fast:  # else a pause, or our next messages, come before the answers
            self.socket.acknowledge()

    def _take_in(self, data: bytes) -> int:
        """Handle the packets of a block; return the number of messages and of answers."""
        self._alive.received(monotonic())
        packets = self._decoder.feed(data)
        for packet in packets.session:
            over = self.session.receive(packet)
            if over is not None:
                self._fail(over)
            while warnings := self.session.subscriptions.warnings:
                log.warning("%s: %s", self._settings.name, warnings.pop(0))
        self._owner.packets_received(packets)
        return len(packets.messages) + len(packets.acked_ids)

    def _check_clock(self, now: float) -> None:
        """Raise why the connection is over, if it is."""
        alive, keepalive, socket = self._alive, self.session.keepalive, self.socket
        waiting = socket.backlog > 0
        if lost := alive.lost(now, keepalive, socket.written, waiting=waiting, reads=self._reading):
            raise self._errors.not_connected(lost)
        if alive.asks(now, keepalive):
            self.ping()
        if failure := self._owner.tick(now) or self._check_subscriptions(now):
            raise failure

    def _check_subscriptions(self, now: float) -> GatewayError | None:
        """Return an error if a SUBACK is missing and nothing has arrived for a while."""
        if self.session.subscriptions.answered:
            return None
        if not self._reading:  # the SUBACK may wait in the socket
            self._answer_awaited_since = now
        since = max(self._answer_awaited_since, self._alive.last_read)
        late = now - since >= self._settings.connect_timeout
        return self._errors.no_answer("the subscriptions") if late else None

    def _fail(self, failure: GatewayError) -> None:
        if self.failure is None:
            self.failure = failure
            self._errors.note(failure)

    def _log_out(self) -> None:
        """Write what is left and the DISCONNECT, then wait until the broker closes.

        A socket that is closed with unread bytes resets the connection, and a reset can drop the
        last acknowledgements.
        """
        deadline = monotonic() + CLOSE_TIMEOUT
        try:
            self.write(DISCONNECT_PACKET)
            while monotonic() < deadline and self.socket.read() != b"":
                self.socket.flush()
                writing = select.POLLOUT if self.socket.backlog else 0
                self._leadership.wait(select.POLLIN | writing, CHECK_INTERVAL)
        except (OSError, GatewayError):
            return

    def _release(self) -> None:
        self.socket.close()
        self._leadership.detach()
