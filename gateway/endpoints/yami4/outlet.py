"""What goes over one connection to a YAMI4 broker, and the answers that come back over it."""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Callable, Sequence
from math import inf
from threading import Condition, Lock

from gateway.endpoints.attention import Attention
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.link import Link
from gateway.endpoints.yami4.outgoing import Chunk, Delivery, Encoder, Request, settle_all
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected
from gateway.wire.yami4.frames import Packet
from gateway.wire.yami4.messages import HeaderReader, Heading, Kind

log = logging.getLogger(__name__)

_LATER = {b"Message queue overflow", b"Broker is warming up."}  # reasons that pass
_BURSTS = 20  # a second, when the rate is limited
_PATIENCE = 0.1  # seconds between looks while others take the answers
_LEAVE = 1.0  # seconds for the thread of a closed connection to end


class Outlet:
    """Mutable: it knows what has no answer yet, until the connection is over.

    Who sends writes. The answers are taken by who waits for them, by who waits for other messages
    after a send, or by a thread of its own (`Attention`).
    """

    def __init__(self, settings: Yami4Settings, link: Link) -> None:
        self._settings, self._link = settings, link
        self._glance = min(settings.heartbeat, settings.answer_timeout) / 4  # seconds
        self._encoder = Encoder(settings)
        self._writing = Lock()  # held to encode and write; taken before `_changed`
        self._headers = HeaderReader()
        self._changed = Condition()  # guards the next four
        self._closing = self._over = False
        self._pending: dict[int, Request] = {}
        self._under_way = 0  # messages of the window that are taken
        self._next_burst = 0.0
        self._heard = time.monotonic()
        self._attention = Attention(self)
        self._attention.attach(link.fileno)
        self._attention.start(f"{settings.name}-sink")

    def send(self, messages: Sequence[Message], delivery: Delivery) -> None:
        """As `Sink.send`."""
        place = 0
        while place < len(messages):
            try:
                room = self._await_room()
            except NotConnectedError:
                if not place:
                    raise
                delivery.settle(range(place, len(messages)), RETRY)
                return
            place = self._send_some(delivery, messages, place, room)

    def check(self) -> None:
        """Raise NotConnectedError when nothing can be sent any more."""
        if self._over or self._closing:
            raise NotConnectedError(f"{self._settings.name}: not connected")

    def close(self) -> None:
        """Take the answers that are due for a moment, then release everything."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if not self._over:
            self._drain()
        self._give_up()
        self._attention.finish(_LEAVE)

    def look_after(self, timeout: float) -> None:
        """Take what answers come."""
        timeout = min(timeout, self._glance)
        if not self._read() and self._attention.wait(select.POLLIN, timeout):
            self._read()

    def look(self, *, readable: bool) -> None:
        """As `look_after`, for who has waited for this socket and others."""
        del readable
        self._read()

    def needs_own_thread(self) -> bool:
        return self._over

    def is_over(self) -> bool:
        return self._over

    def end(self) -> None:
        """Report what has no answer."""
        self._give_up()
        with self._attention.turn:
            self._attention.detach()

    def _drain(self) -> None:
        """Wait for what is due: closing with unread answers loses messages on their way."""
        timeout = self._settings.drain_timeout
        if self._encoder.unasked:
            self._ask(timeout)
        self._attention.call()
        self._wait(lambda: not self._pending, timeout)

    def _await_room(self) -> int:
        """Wait until the window and the rate let something through, and say how much."""
        window, rate = self._settings.window, self._settings.rate
        self._attention.follow()
        self._wait(lambda: self._closing or self._under_way < window, inf)
        self.check()
        room = max(window - self._under_way, 1)  # another sender may have been faster
        if rate:
            room = min(room, max(1, int(rate / _BURSTS)))
            now = time.monotonic()
            self._pause(self._next_burst - now)
            self._next_burst = max(now, self._next_burst) + room / rate
        return room

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, max(seconds, 0.0))

    def _wait(self, done: Callable[[], bool], timeout: float) -> None:
        """Take answers until it is `done` or the connection is over, for so many seconds."""
        until = time.monotonic() + timeout
        while not (self._over or done()) and (left := until - time.monotonic()) > 0:
            left = min(left, _PATIENCE)
            if not self._attention.help(left):
                with self._changed:
                    self._changed.wait_for(lambda: self._over or done(), left)

    def _send_some(
        self, delivery: Delivery, messages: Sequence[Message], start: int, room: int
    ) -> int:
        """Write some messages from `start` on and return the first place not written."""
        deadline = time.monotonic() + self._settings.answer_timeout
        with self._writing:
            chunk = self._encoder.encode(messages, start, room, deadline, delivery)
            sent = self._write(chunk)
        for place, verdict in chunk.refused:
            delivery.settle((place,), verdict)
        if sent < 0:  # the connection went before anything was registered
            delivery.settle([request.place for request in _owned(chunk)], RETRY)
        whole = [place for place, end in chunk.plain if end <= sent]
        delivery.settle(whole, ACCEPTED)
        delivery.settle([place for place, end in chunk.plain if end > sent], RETRY)
        if sent < chunk.size:
            self._give_up()
        return chunk.following

    def _write(self, chunk: Chunk) -> int:
        """Register what is due, then write; returns bytes written, -1 when nothing was tried."""
        with self._changed:
            if self._over:
                return -1
            self._pending.update(chunk.requests)
            self._under_way += chunk.messages
        return self._link.write(b"".join(chunk.parts), self._settings.answer_timeout)

    def _ask(self, timeout: float) -> None:
        """Ask for statistics, unless a message is being written for longer than `timeout`."""
        if not self._writing.acquire(timeout=timeout):
            return
        try:
            chunk = Chunk()
            self._encoder.ask(chunk, time.monotonic() + self._settings.answer_timeout)
            sent = self._write(chunk)
        finally:
            self._writing.release()
        if sent < chunk.size:
            self._give_up()

    def _read(self) -> bool:
        """Take the answers that are there, and judge the broker by them; whether there were any."""
        try:
            packets = self._link.read(0)
            now = time.monotonic()
            self._judge(now, None if packets is None else self._take(packets))
        except NotConnectedError as error:
            if not self._closing:
                log.warning("%s", error)
            self._give_up()
            return True
        if packets is not None:
            self._heard = now
        elif now - self._heard >= self._settings.heartbeat:
            self._heard = now
            self._ask(0)
        return packets is not None

    def _take(self, packets: Sequence[Packet]) -> int:
        """Settle what is answered; returns the highest id among the answers."""
        answered: list[tuple[Request, Settlement]] = []
        found = [self._headers.read(header) for header, _ in packets]
        highest = 0
        with self._changed:
            for each in found:
                if each is None or each[0].kind is Kind.MESSAGE:
                    continue
                heading, message_id = each
                request = self._pending.pop(message_id, None)
                if request is not None:
                    highest = max(highest, message_id)
                    self._under_way -= request.weight
                    answered.append((request, self._verdict(heading)))
            if answered:
                self._changed.notify_all()
        settle_all(answered)
        return highest

    def _verdict(self, heading: Heading) -> Settlement:
        if heading.kind is Kind.REPLY:
            return ACCEPTED
        if heading.reason in _LATER:
            return RETRY
        reason = heading.reason.decode("utf-8", "replace")
        return rejected("broker-exception", f"{self._settings.name}: {reason}")

    def _judge(self, now: float, answered: int | None) -> None:
        """Raise when the oldest request is overdue and its answer cannot be on its way.

        That is so when nothing was there to read (`answered` is None) or a later one came first.
        """
        with self._changed:
            oldest = next(iter(self._pending.items()), None)
        if oldest is None or oldest[1].deadline > now:
            return
        if answered is None or answered > oldest[0]:
            raise NotConnectedError(f"{self._settings.name}: the broker does not answer")

    def _give_up(self) -> None:
        """Close the connection, once, and report what has no answer."""
        with self._changed:
            self._over = True
            pending, self._pending = self._pending, {}
            self._under_way = 0
            self._changed.notify_all()
        self._link.close()
        self._attention.call()
        settle_all([(request, RETRY) for request in pending.values()])


def _owned(chunk: Chunk) -> list[Request]:
    return [request for request in chunk.requests.values() if request.delivery is not None]
