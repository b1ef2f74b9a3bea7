"""One connection to a broker: session by paho, traffic by blocks.

It neither knows what a source or a sink is nor connects again by itself; a link that was lost
stays lost, and the next `open` of its owner makes a new one. So nothing is ever sent twice
behind the owner's back.
"""

from __future__ import annotations

import select
import ssl
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from gateway.clock import now
from gateway.endpoints.attention import TICK, Attention
from gateway.endpoints.mqtt.pace import GATHER, Pace
from gateway.endpoints.mqtt.packets import PING, Arrived, Decoder
from gateway.endpoints.mqtt.paho_client import Pipe
from gateway.endpoints.mqtt.session import Session, Wanted
from gateway.endpoints.mqtt.sockets import Stream, connect, port
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, GatewayError, NotConnectedError, WireError

PAUSED_TICK = 0.02  # seconds between looks while reading is paused, to see soon that there is room
BLOCK = 65_536  # bytes that are large enough at once
LINGER = 1.0  # seconds to get the last acknowledgements and the DISCONNECT out


class Traffic(Protocol):
    """Whoever owns a link. One call at a time, by its thread or by one that opens or drives it."""

    def arrived(self, arrived: Arrived) -> None:
        """A block of packets."""

    def wants_more(self) -> bool:
        """False stops reading; pings go on."""

    def tick(self, now: float) -> GatewayError | None:
        """A look at the clock, a few times a second; an answer ends the link with it."""

    def lost(self, failure: GatewayError) -> None:
        """The link is over; called once, also after a `close` of our own."""


class Link:
    """Mutable: a connection has a state."""

    def __init__(
        self, settings: MqttSettings, client_id: str, *, clean: bool, traffic: Traffic
    ) -> None:
        self._settings, self._traffic = settings, traffic
        self._client_id, self._clean = client_id, clean
        self._where = f"{settings.name}: {settings.host}:{port(settings)}"
        self._decoder = Decoder(settings.version, now=now)
        self._failure: GatewayError | None = None
        self._closing = self._overheard = False
        self._pinged = 0.0
        self._reading = True
        self._last_size = 0  # bytes of the last block
        self._pace = Pace()
        self.hurried = False  # the owner has to wait for an answer
        self._looked = 0.0  # at the clock
        self._attention = Attention(self)

    def open(self, wanted: Callable[[bool], Sequence[Wanted]]) -> None:
        """Connect, log in, subscribe to `wanted(session present)`, and only then return.

        Raises:
            NotConnectedError: not reachable or not answering in time.
            EndpointError: refused for good; the text says by what.
        """
        deadline = monotonic() + self._settings.connect_timeout
        self._stream = Stream(connect(self._settings))
        self._attention.attach(self._stream.fileno)
        self._last_in = self._last_out = monotonic()
        self.session = Session(
            self._settings,
            self._client_id,
            clean=self._clean,
            pipe=Pipe(self.write, self._stream.fileno),
            where=self._where,
        )
        try:
            self._log_in(deadline)
            self.session.subscribe(wanted(self.session.present))
            self._turn_until(lambda: self.session.subscribed, deadline, "the subscriptions")
            self.session.check_subscriptions()
        except BaseException:
            self._release()
            raise
        self._attention.start(f"mqtt {self._client_id}")

    def write(self, *pieces: bytes) -> None:
        """Send bytes, or keep them till the socket takes them; any thread.

        Raises:
            NotConnectedError: the link is over.
        """
        failure = self._failure
        if failure is not None:
            raise failure
        self._last_out = monotonic()
        try:
            done = self._stream.write(pieces)
        except OSError as error:
            self._overheard = True  # the link's own thread ends it
            self.wake()
            raise NotConnectedError(f"{self._where}: {error}") from error
        if not done:
            self.wake()

    @property
    def backlog(self) -> int:
        """Bytes the socket has not taken yet."""
        return self._stream.backlog

    @property
    def written(self) -> int:
        """Bytes the socket has taken."""
        return self._stream.written

    @property
    def failure(self) -> GatewayError | None:
        return self._failure

    def drive(self, timeout: float) -> bool:
        """As `Attention.drive`, for a thread that waits for messages."""
        return self._attention.drive(timeout)

    def help(self, timeout: float) -> bool:
        """As `Attention.help`, for a thread that waits for answers."""
        return self._attention.help(timeout)

    def follow(self) -> None:
        """Have the calling thread look for answers here while it drives another link."""
        self._attention.follow()

    def needs_own_thread(self) -> bool:
        """Whether the line is heavy, or jammed, or over."""
        return self.is_over() or self._pace.heavy or self._stream.backlog > 0

    def is_over(self) -> bool:
        return self._closing or self._failure is not None

    def wake(self) -> None:
        """Make the link's thread look around, and who drives it instead; any thread."""
        self._attention.wake()

    def nudge(self) -> None:
        """Wake the link's thread if it has stopped reading."""
        if not self._reading:
            self.wake()

    def close(self) -> None:
        """Say good-bye and release everything; any thread, never raises, twice is fine."""
        self._closing = True
        self._attention.finish(LINGER + 4 * TICK)

    def _log_in(self, deadline: float) -> None:
        try:
            self.session.log_in()
        except NotConnectedError as error:  # what the broker said before it hung up tells more
            self._turn(0.0)
            raise self._failure or error from error
        self._turn_until(lambda: self.session.connected, deadline, "the log-in")

    def _turn_until(self, done: Callable[[], bool], deadline: float, what: str) -> None:
        while not done():
            left = deadline - monotonic()
            if left <= 0:
                raise NotConnectedError(f"{self._where}: no answer to {what} in time")
            self._turn(min(left, TICK))
            if self._failure is not None:
                raise self._failure

    def end(self) -> None:
        """Say good-bye unless it broke, release everything and tell the owner."""
        try:
            if self._closing and self._failure is None:
                with self._attention.turn:
                    self._say_goodbye()
        finally:
            with self._attention.turn:
                failure = self._failure = self._failure or NotConnectedError(
                    f"{self._where}: is closed; open it first"
                )
                self._release()
            self._traffic.lost(failure)

    def look_after(self, timeout: float) -> None:
        """One turn, and now and then a look at the clock."""
        self._turn(timeout)
        self._tick()

    def look(self, *, readable: bool) -> None:
        """As `look_after`, for who has waited for this socket and others."""
        if readable:
            self._reading = self._traffic.wants_more()
            self._work(select.POLLIN)
        self._tick()

    def _tick(self) -> None:
        now = monotonic()
        if self._failure is None and now - self._looked >= TICK:
            self._looked = now
            self._look_at_clock(now)

    def _turn(self, timeout: float) -> None:
        """Wait for something to happen on the socket and do it."""
        stream = self._stream
        reading = self._reading = self._traffic.wants_more()
        if not reading:
            timeout = PAUSED_TICK
        elif stream.more:
            timeout = 0.0
        gather = self._has_time() and self._last_size < BLOCK and not stream.backlog
        happened = self._attention.wait(
            (select.POLLIN if reading else 0) | (select.POLLOUT if stream.backlog else 0),
            timeout,
            pause=GATHER if gather else 0.0,
        )
        self._work(happened)

    def _has_time(self) -> bool:
        """Whether more may gather: the line is fast, and nobody waits."""
        return self._pace.fast and not self.hurried

    def _work(self, happened: int) -> None:
        """Do what there is to do after this has happened on the socket."""
        stream = self._stream
        try:
            if happened & select.POLLOUT:
                stream.flush()
            if self._reading and (happened or stream.more):
                self._measure(*self._read())
            elif self._overheard or happened & (select.POLLERR | select.POLLHUP):
                self._fail(NotConnectedError(f"{self._where}: the connection broke"))
        except OSError as error:
            self._fail(self._broken(error))
        except WireError as error:
            self._fail(NotConnectedError(f"{self._where}: {error}"))
        except GatewayError as error:
            self._fail(error)

    def _measure(self, packets: int, size: int) -> None:
        """After a block of so many packets and bytes."""
        self._pace.count(packets, size, self._last_in)
        self._last_size = size
        if not self._has_time():
            self._stream.acknowledge()

    def _read(self) -> tuple[int, int]:
        """Take what the socket has, at most a block; its packets and bytes."""
        data = self._stream.read()
        if data is None:
            return 0, 0
        if not data:
            text = f"the broker closed the connection of client {self._client_id!r}"
            self._fail(NotConnectedError(f"{self._where}: {text}"))
            return 0, 0
        self._last_in = monotonic()
        self._pinged = 0.0
        arrived = self._decoder.feed(data)
        for packet in arrived.session:
            over = self.session.take(packet)
            if over is not None:
                self._fail(over)
        self._traffic.arrived(arrived)
        return len(arrived.messages) + len(arrived.acked), len(data)

    def _broken(self, error: OSError) -> GatewayError:
        if isinstance(error, ssl.SSLError) and not self.session.connected:
            text = f"{self._where}: TLS: {error}; check the certificates"
            # An end without a reason may be a passing one.
            passing = isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
            return NotConnectedError(text) if passing else EndpointError(text)
        return NotConnectedError(f"{self._where}: {error}")

    def _look_at_clock(self, now: float) -> None:
        keepalive = self.session.keepalive
        if not self._reading:  # an answer may wait where we do not look
            self._pinged = self._pinged and now
        if self._pinged and now - self._pinged >= keepalive:
            self._fail(NotConnectedError(f"{self._where}: no answer to a ping for {keepalive} s"))
            return
        if keepalive and now - min(self._last_in, self._last_out) >= keepalive * 0.75:
            self._ping(now, keepalive)
        failure = self._traffic.tick(now)
        if failure is not None:
            self._fail(failure)

    def _ping(self, now: float, keepalive: int) -> None:
        if self._pinged and now - self._last_out < keepalive * 0.75:
            return
        self._pinged = self._pinged or now
        try:
            self.write(PING)
        except GatewayError as error:
            self._fail(error)

    def _fail(self, failure: GatewayError) -> None:
        if self._failure is None:
            self._failure = failure

    def _say_goodbye(self) -> None:
        """Get out what is left and the DISCONNECT, then wait till the broker hangs up.

        A socket closed with unread bytes resets the connection, and a reset can take the last
        acknowledgements with it.
        """
        deadline = monotonic() + LINGER
        try:
            self.session.log_out()
            while monotonic() < deadline and self._stream.read() != b"":
                self._stream.flush()
                writing = select.POLLOUT if self._stream.backlog else 0
                self._attention.wait(select.POLLIN | writing, TICK)
        except (OSError, GatewayError):
            return

    def _release(self) -> None:
        self._stream.close()
        self._attention.detach()
