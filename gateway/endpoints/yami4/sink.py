"""A YAMI4 sink: `publish` and `publish_confirm` with a window; it never waits for one answer.

A message that asks for at least once is confirmed by the broker. For the others nobody answers;
they count as taken once the system has their last byte, and a question for statistics every few
of them keeps the broker from being flooded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from threading import Condition, Event, Lock, Thread, current_thread

from gateway.endpoints.base import Settle
from gateway.endpoints.yami4.link import Link, connect
from gateway.endpoints.yami4.outgoing import Chunk, Delivery, Encoder, Request, settle_all
from gateway.endpoints.yami4_settings import Yami4Settings
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected
from gateway.wire.yami4.frames import Packet
from gateway.wire.yami4.messages import HeaderReader, Heading, Kind

log = logging.getLogger(__name__)

_LATER = {b"Message queue overflow", b"Broker is warming up."}  # reasons that pass
_BURSTS = 20  # a second, when the rate is limited


class Yami4Sink:
    """Publishes; the caller's thread writes, another reads the answers and watches the clock."""

    def __init__(self, settings: Yami4Settings) -> None:
        self._settings = settings
        self._patience = min(settings.heartbeat, settings.answer_timeout) / 4
        self._encoder = Encoder(settings)
        self._writing = Lock()  # held to encode and write; taken before `_state`
        self._headers = HeaderReader()
        self._state = Condition()  # guards the next four
        self._link: Link | None = None
        self._closing = False
        self._pending: dict[int, Request] = {}
        self._under_way = 0  # messages of the window that are taken
        self._stopped = Event()
        self._next_burst = 0.0
        self._thread: Thread | None = None

    def open(self) -> None:
        self.close()
        link = connect(self._settings)
        with self._writing, self._state:
            self._encoder.unasked = self._under_way = 0
            self._link, self._closing = link, False
            self._stopped.clear()
        self._thread = Thread(
            target=self._read, args=(link,), name=f"{self._settings.name}-sink", daemon=True
        )
        self._thread.start()

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        if not messages:
            if self._link is None:
                raise NotConnectedError(f"{self._settings.name}: not connected")
            settled(())
            return
        delivery = Delivery(len(messages), settled)
        place = 0
        while place < len(messages):
            try:
                link, room = self._await_room()
            except NotConnectedError:
                if not place:
                    raise
                delivery.settle(range(place, len(messages)), RETRY)
                return
            place = self._send_some(link, delivery, messages, place, room)

    def close(self) -> None:
        """Read the answers that are due for a moment, then release everything."""
        with self._state:
            link, thread = self._link, self._thread
            self._closing = True
            self._state.notify_all()
        self._stopped.set()
        outside = thread is not current_thread()
        if link is not None:
            if outside:
                self._drain(link)
            self._give_up(link)
        if thread is not None and outside:
            thread.join()

    def _drain(self, link: Link) -> None:
        """Wait for what is due: closing with unread answers loses messages on their way."""
        timeout = self._settings.drain_timeout
        if self._encoder.unasked:
            self._ask(link, timeout)
        with self._state:
            self._state.wait_for(lambda: not self._pending or self._link is not link, timeout)

    def _await_room(self) -> tuple[Link, int]:
        """Wait until the window and the rate let something through, and say how much."""
        window, rate = self._settings.window, self._settings.rate
        with self._state:
            self._state.wait_for(
                lambda: self._link is None or self._closing or self._under_way < window
            )
            link, room = self._link, window - self._under_way
            if link is None or self._closing:
                raise NotConnectedError(f"{self._settings.name}: not connected")
        if rate:
            room = min(room, max(1, int(rate / _BURSTS)))
            now = time.monotonic()
            self._stopped.wait(max(0.0, self._next_burst - now))
            self._next_burst = max(now, self._next_burst) + room / rate
        return link, room

    def _send_some(
        self, link: Link, delivery: Delivery, messages: Sequence[Message], start: int, room: int
    ) -> int:
        """Write some messages from `start` on and return the first place not written."""
        deadline = time.monotonic() + self._settings.answer_timeout
        with self._writing:
            chunk = self._encoder.encode(messages, start, room, deadline, delivery)
            sent = self._write(link, chunk)
        for place, verdict in chunk.refused:
            delivery.settle((place,), verdict)
        if sent < 0:  # the connection went before anything was registered
            delivery.settle([request.place for request in _owned(chunk)], RETRY)
        whole = [place for place, end in chunk.plain if end <= sent]
        delivery.settle(whole, ACCEPTED)
        delivery.settle([place for place, end in chunk.plain if end > sent], RETRY)
        if sent < chunk.size:
            self._give_up(link)
        return chunk.following

    def _write(self, link: Link, chunk: Chunk) -> int:
        """Register what is due, then write; returns bytes written, -1 when nothing was tried."""
        with self._state:
            if self._link is not link:
                return -1
            self._pending.update(chunk.requests)
            self._under_way += chunk.messages
        return link.write(b"".join(chunk.parts), self._settings.answer_timeout)

    def _ask(self, link: Link, timeout: float) -> None:
        """Ask for statistics, unless a message is being written for longer than `timeout`."""
        if not self._writing.acquire(timeout=timeout):
            return
        try:
            chunk = Chunk()
            self._encoder.ask(chunk, time.monotonic() + self._settings.answer_timeout)
            sent = self._write(link, chunk)
        finally:
            self._writing.release()
        if sent < chunk.size:
            self._give_up(link)

    def _read(self, link: Link) -> None:
        """Take answers until the connection is gone or stuck; the thread's whole life."""
        asked_at = time.monotonic()
        try:
            while True:
                packets = link.read(self._patience)
                now = time.monotonic()
                answered = self._take(packets or ())
                self._judge(now, answered if packets is not None else None)
                if packets is not None:
                    asked_at = now
                elif now - asked_at >= self._settings.heartbeat:
                    asked_at = now
                    self._ask(link, 0)
        except NotConnectedError as error:
            if not self._closing:
                log.warning("%s", error)
        finally:
            self._give_up(link)

    def _take(self, packets: Sequence[Packet]) -> int:
        """Settle what is answered; returns the highest id among the answers."""
        answered: list[tuple[Request, Settlement]] = []
        found = [self._headers.read(header) for header, _ in packets]
        highest = 0
        with self._state:
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
                self._state.notify_all()
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
        with self._state:
            oldest = next(iter(self._pending.items()), None)
        if oldest is None or oldest[1].deadline > now:
            return
        if answered is None or answered > oldest[0]:
            raise NotConnectedError(f"{self._settings.name}: the broker does not answer")

    def _give_up(self, link: Link) -> None:
        """Close the connection, once, and report what has no answer."""
        pending: dict[int, Request] = {}
        with self._state:
            if self._link is link:
                self._link = None
                pending, self._pending = self._pending, {}
                self._under_way = 0
                self._state.notify_all()
        link.close()
        settle_all([(request, RETRY) for request in pending.values()])


def _owned(chunk: Chunk) -> list[Request]:
    return [request for request in chunk.requests.values() if request.delivery is not None]
