"""One connection of a YAMI4 sink: the requests written to it and the answers read from it."""

from __future__ import annotations

import logging
import select
import time
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from threading import Condition, Lock

from gateway.endpoints.leader_followers import Leadership
from gateway.endpoints.sent_messages import SentBatch
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.connection import Yami4Connection
from gateway.endpoints.yami4.request_encoder import (
    EncodedChunk,
    PendingAnswer,
    RequestEncoder,
    settle_all,
)
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.dead_letter_rule import BROKER_EXCEPTION
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, NO_ROOM, RETRY, Settlement, rejected
from gateway.wire.yami4.frames import Packet
from gateway.wire.yami4.messages import HeaderReader, MessageHeading, MessageKind

log = logging.getLogger(__name__)

_TEMPORARY = {b"Message queue overflow", b"Broker is warming up."}  # reasons to retry
_BURSTS = 20  # a second, when the rate is limited
_CHECK_INTERVAL = 0.1  # seconds, while another thread reads the answers
_CLOSE_TIMEOUT = 1.0  # seconds for the thread of a closed connection to end


class RequestState:
    """The messages without an answer of one connection.

    A thread that sends writes. The answers are read by a thread that waits for them, by one that
    waits for other messages after a send, or by the connection's own thread (`Leadership`).
    Thread-safe: `_writing` guards the encoder, `_changed` guards the pending answers.
    """

    def __init__(self, settings: Yami4Settings, connection: Yami4Connection) -> None:
        self._settings, self._connection = settings, connection
        self._read_interval = min(settings.heartbeat, settings.answer_timeout) / 4  # seconds
        self._encoder = RequestEncoder(settings)
        self._writing = Lock()  # held to encode and write; taken before `_changed`
        self._headers = HeaderReader()
        self._changed = Condition()  # guards the next six
        self._closing = self._over = False
        self._failure: EndpointError | None = None  # why it is over
        self._pending: dict[int, PendingAnswer] = {}  # by message id
        self._unconfirmed: deque[tuple[int, PendingAnswer]] = deque()  # the next answer is theirs
        self._in_flight = 0  # messages that occupy the window
        self._is_known = False  # the broker has answered
        self._next_burst = 0.0
        self._last_read = time.monotonic()
        self._leadership = Leadership(self)
        self._leadership.attach(connection.fileno)
        self._leadership.start(f"{settings.name}-sink")

    def await_broker(self) -> None:
        """Wait for an answer: a load balancer accepts connections without a broker behind it.

        Raises:
            NotConnectedError: none came in time.
        """
        timeout = self._settings.answer_timeout
        self._ask(timeout)
        self._wait(lambda: not self._pending, timeout)
        if self._pending:
            self._give_up(NotConnectedError(f"{self._settings.name}: the broker does not answer"))
        self.check()
        self._is_known = True

    def send(self, messages: Sequence[Message], batch: SentBatch) -> None:
        """Send as `Sink.send` does."""
        position = 0
        while position < len(messages):
            try:
                room = self._await_room()
            except NotConnectedError:
                if not position:
                    raise
                batch.finish(range(position, len(messages)), RETRY)
                return
            position = self._send_chunk(batch, messages, position, room)
        self._ask_if_due()

    def check(self) -> None:
        """Raise NotConnectedError when nothing can be sent any more."""
        if self._over or self._closing:
            failure = self._failure
            kind = NotConnectedError if failure is None else type(failure)
            raise kind(str(failure or f"{self._settings.name}: not connected"))

    def close(self) -> None:
        """Read the pending answers for a moment, then release everything."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if not self._over:
            self._drain()
        self._give_up()
        self._leadership.join(_CLOSE_TIMEOUT)

    def serve(self, timeout: float) -> None:
        """Wait for answers and settle their messages."""
        timeout = min(timeout, self._read_interval)
        if not self._read() and self._leadership.wait(select.POLLIN, timeout):
            self._read()

    def poll(self, *, readable: bool) -> None:
        """Settle the messages whose answers have arrived."""
        del readable
        self._read()

    def needs_own_thread(self) -> bool:
        return self._over

    def is_over(self) -> bool:
        return self._over

    def finish(self) -> None:
        """Settle every message without an answer and release the connection."""
        self._give_up()
        with self._leadership.leader_lock:
            self._leadership.detach()

    def _drain(self) -> None:
        """Wait for pending answers: a close with unread answers loses messages under way."""
        timeout = self._settings.drain_timeout
        if self._encoder.unasked:
            self._ask(timeout)
        self._leadership.call_own_thread()
        self._wait(lambda: not self._pending, timeout)

    def _await_room(self) -> int:
        """Wait until window and rate allow messages; return how many they allow.

        Half a window is written at once, and only when it is free as a whole. Written as a whole, a
        window makes sink and broker wait for each other: one of them sleeps at any time, and the
        rate is a window for each two waits for a processor. Written as it becomes free, it falls
        into ever smaller parts.
        """
        window, rate = self._settings.send_window, self._settings.rate
        half = max(1, window // 2)
        self._leadership.follow()
        self._wait(lambda: self._closing or self._in_flight <= window - half, inf)
        self.check()
        room = min(half, max(window - self._in_flight, 1))  # another sender may have been faster
        if rate:
            room = min(room, max(1, int(rate / _BURSTS)))
            now = time.monotonic()
            with self._changed:
                self._changed.wait_for(lambda: self._closing, max(self._next_burst - now, 0.0))
            self._next_burst = max(now, self._next_burst) + room / rate
        return room

    def _wait(self, is_done: Callable[[], bool], timeout: float) -> None:
        """Read answers until `is_done`, the end of the connection, or `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not (self._over or is_done()) and (left := deadline - time.monotonic()) > 0:
            left = min(left, _CHECK_INTERVAL)
            self._leadership.await_answer(self._changed, lambda: self._over or is_done(), left)

    def _send_chunk(
        self, batch: SentBatch, messages: Sequence[Message], start: int, room: int
    ) -> int:
        """Write messages from `start` on; return the first position that was not written."""
        with self._writing:
            chunk = self._encoder.encode(messages, start, room, batch)
            sent = self._write(chunk)
        for position, settlement in chunk.refused:
            batch.finish((position,), settlement)
        if sent < 0:  # the connection was lost before anything was registered
            batch.finish([each.position for each in chunk.answers.values() if each.batch], RETRY)
            batch.finish([each.position for _, each in chunk.unconfirmed], RETRY)
        if sent < chunk.size:
            self._give_up()
        return chunk.next_position

    def _write(self, chunk: EncodedChunk) -> int:
        """Register the pending answers, then write.

        Return the bytes written; -1 when the connection was over already.
        """
        with self._changed:
            if self._over:
                return -1
            self._pending.update(chunk.answers)
            self._unconfirmed += chunk.unconfirmed
            self._in_flight += chunk.messages
        timeout = self._settings.answer_timeout
        sent = self._connection.write(b"".join(chunk.parts), timeout)
        deadline = time.monotonic() + timeout
        for answer in chunk.answers.values():
            answer.deadline = deadline
        return sent

    def _ask_if_due(self) -> None:
        """Ask when messages wait for the next answer and none is under way.

        A thread that writes asks when it has written, so no other waits for it.
        """
        if self._unconfirmed and not self._pending:
            self._ask(0)

    def _ask(self, timeout: float) -> None:
        """Ask for statistics, unless another thread keeps writing for `timeout` seconds."""
        if not self._writing.acquire(timeout=timeout):
            return
        try:
            chunk = EncodedChunk()
            self._encoder.ask(chunk)
            sent = self._write(chunk)
        finally:
            self._writing.release()
        if sent < chunk.size:
            self._give_up(self._connection.lost("the broker closed the connection"))

    def _read(self) -> bool:
        """Settle the answers that have arrived and check the broker; return whether any had."""
        try:
            packets = self._connection.read(0)
            now = time.monotonic()
            answered = self._settle_answered(packets) if packets is not None else None
            # A sink gets nothing but answers: others' are not a sign that ours is under way.
            self._check_overdue(now, None if packets and not answered else answered)
            self._ask_if_due()
        except EndpointError as error:
            if self._is_known and not self._closing:
                log.warning("%s", error)
            self._give_up(error)
            return True
        if packets is not None:
            self._last_read = now
        elif now - self._last_read >= self._settings.heartbeat:
            self._last_read = now
            self._ask(0)
        return packets is not None

    def _settle_answered(self, packets: Sequence[Packet]) -> int:
        """Settle the answered messages, and those before them without an answer of their own.

        Return the highest id among the answers.
        """
        answered: list[tuple[PendingAnswer, Settlement]] = []
        found = [self._headers.read(header) for header, _ in packets]
        highest = 0
        with self._changed:
            for each in found:
                if each is None or each[0].kind is MessageKind.MESSAGE:
                    continue
                heading, message_id = each
                answer = self._pending.pop(message_id, None)
                if answer is not None:
                    highest = max(highest, message_id)
                    self._in_flight -= answer.weight
                    answered.append((answer, self._settlement(heading)))
            while self._unconfirmed and self._unconfirmed[0][0] < highest:
                answered.append((self._unconfirmed.popleft()[1], ACCEPTED))
            if answered:
                self._changed.notify_all()
        settle_all(answered)
        return highest

    def _settlement(self, heading: MessageHeading) -> Settlement:
        if heading.kind is MessageKind.REPLY:
            return ACCEPTED
        if heading.reason in _TEMPORARY:
            return NO_ROOM
        reason = heading.reason.decode("utf-8", "replace")
        return rejected(BROKER_EXCEPTION, f"{self._settings.name}: {reason}")

    def _check_overdue(self, now: float, answered: int | None) -> None:
        """Raise when the oldest pending answer is overdue and cannot be under way.

        It cannot be when nothing was there to read (`answered` is None), or when a later one came
        first (`answered` is a higher id).
        """
        with self._changed:
            oldest = next(iter(self._pending.items()), None)
        if oldest is None or oldest[1].deadline > now:
            return
        if answered is None or answered > oldest[0]:
            raise NotConnectedError(f"{self._settings.name}: the broker does not answer")

    def _give_up(self, failure: EndpointError | None = None) -> None:
        """Close the connection, once, and settle every message without an answer as RETRY."""
        with self._changed:
            self._over = True
            self._failure = self._failure or failure
            pending = [*self._pending.values(), *(each for _, each in self._unconfirmed)]
            self._pending.clear()
            self._unconfirmed.clear()
            self._in_flight = 0
            self._changed.notify_all()
        self._connection.close()
        self._leadership.call_own_thread()
        settle_all([(answer, RETRY) for answer in pending])
