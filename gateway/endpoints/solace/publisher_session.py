"""One connection of a Solace sink: sends messages, matches receipts to them, and ends once.

Messages go directly to the C library. The Python publishers copy each message into an object that
only the cyclic collector frees, and pass each receipt through two threads, which takes nine tenths
of the time. The library's thread only records a receipt; a thread of this session answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Final

from gateway.endpoints.sent_messages import SentBatch
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.connection import SolaceConnection
from gateway.endpoints.solace.error_codes import library_refusal, publish_refusal
from gateway.endpoints.solace.message_writer import SolaceMessageWriter
from gateway.endpoints.solace.native_library import NativeLibrary, NativeTopic, Pointer, SendResult
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.outcome import ACCEPTED, RETRY, Settlement

log = logging.getLogger(__name__)

_PUBLISHER_KEY: Final = b"gateway\0"  # eight bytes: the key in the library's table of publishers
_ASYNCHRONOUS: Final = b"\2"  # the type of receipt that the library passes to that table
_INBOX: Final = b"#P2P/"  # begins the topics of single clients and queues
_ROOM_CHECK_INTERVAL: Final = 0.05  # seconds, for a library that never reports room
_LAST_ANSWER: Final = 1.0  # seconds for the answer to the last question
_RECEIPT_CHECK_INTERVAL: Final = 0.25  # seconds at most


class _PendingReceipts:
    """The messages that wait for receipts, and the time of the last receipt.

    Tags stay here after the connection ends: the library holds their addresses until it is closed.
    Thread-safe: each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._pending: dict[bytes, tuple[SentBatch, int]] = {}  # by tag
        self._last_sign = 0.0  # time of the last receipt, or of the first message after a pause

    def expect(self, batch: SentBatch, position: int) -> bytes:
        """Return the tag of the receipt for the message at `position`."""
        if not self._pending:
            self._last_sign = time.monotonic()
        tag = _ASYNCHRONOUS + _PUBLISHER_KEY + next(self._numbers).to_bytes(8, "little")
        self._pending[tag] = batch, position
        return tag

    def take(self, tag: bytes) -> tuple[SentBatch, int] | None:
        """Return the batch and the position of a receipt, or None for a repeated receipt."""
        self._last_sign = time.monotonic()
        return self._pending.pop(tag, None)

    def silent_for(self) -> float:
        """Return the seconds without a receipt, or 0 when no message waits for one."""
        return time.monotonic() - self._last_sign if self._pending else 0.0

    def batches(self) -> list[SentBatch]:
        """Return the batches that wait, oldest first."""
        return list(dict.fromkeys(batch for batch, _ in list(self._pending.values())))


class PublisherSession:
    """A connection and its unanswered messages; its end settles all of them.

    Thread-safe: guarded by self._send_lock and by the locks of the batches; one thread sends.
    """

    def __init__(self, settings: SolaceSettings, native: NativeLibrary) -> None:
        """Connect.

        Raises:
            NotConnectedError: the broker does not answer.
            EndpointError: the broker refused permanently, or the settings are impossible.
        """
        self._settings, self._native = settings, native
        self._receipts = _PendingReceipts()
        self._failure: GatewayError | None = None
        self._send_lock = Lock()  # held while the library sends, so that `close` waits
        self._answered: SimpleQueue[SentBatch | None] = SimpleQueue()
        # direct, oldest first, with the connection that they were sent over
        self._unconfirmed: list[tuple[SentBatch, Sequence[int], int]] = []
        self._question = Event()  # direct messages wait for an answer, or the session is over
        self._asked = 0.0  # time of the question that has no answer; 0 without one
        self._room = Event()
        self._connection = SolaceConnection(settings, "sink", self._end)
        driver = self._connection.service.session
        self._pointer: Pointer = driver.session_pointer
        self._room = driver.can_send_received  # the library sets it when it has room
        # Never unregistered: that keeps the tags alive as long as the library refers to them.
        driver.register_acknowledgement_handler(self._on_receipt, _PUBLISHER_KEY)
        builder = self._connection.service.message_builder()
        self.writer = SolaceMessageWriter(builder, native, settings)
        self._thread = Thread(
            target=self._run_answers, name=f"{settings.name}-receipts", daemon=True
        )
        self._thread.start()
        self._asking = Thread(
            target=self._run_questions, name=f"{settings.name}-questions", daemon=True
        )
        self._asking.start()

    @property
    def is_over(self) -> bool:
        return self._failure is not None

    def publish_guaranteed(
        self, message: Pointer, topic: NativeTopic, batch: SentBatch, position: int
    ) -> Settlement | None:
        """Publish; the receipt settles the message at `position` of `batch`.

        Returns:
            The settlement, if the library refuses the message and no receipt will follow.

        Raises:
            NotConnectedError: it is unknown whether the message was sent.
        """
        tag = self._receipts.expect(batch, position)
        try:
            self._native.set_correlation_tag(message, tag)
            refusal = self._publish(message, topic)
        except GatewayError:
            self._receipts.take(tag)
            raise
        if refusal is not None:
            self._receipts.take(tag)
        return refusal

    def publish_direct(self, message: Pointer, topic: NativeTopic) -> Settlement:
        """Publish a direct message; return ACCEPTED, or the refusal of the library.

        The broker does not answer for it: `confirm` asks.

        Raises:
            NotConnectedError: the connection is interrupted; direct messages are not kept.
        """
        if self._connection.interrupted:
            raise NotConnectedError(f"{self._settings.name}: the connection is interrupted")
        return self._publish(message, topic) or ACCEPTED

    def connection_number(self) -> int:
        """Return the number of the present connection, for `confirm`."""
        return self._native.connections(self._pointer)

    def confirm(self, batch: SentBatch, positions: Sequence[int], connection: int) -> None:
        """Accept published direct messages when the broker has answered a question after them.

        `connection` is the number of the connection before the first of them was published.
        """
        self._unconfirmed.append((batch, positions, connection))
        if self.is_over:
            batch.settle_rest(RETRY)
        self._question.set()

    def close(self) -> None:
        self._end(NotConnectedError(f"{self._settings.name}: is closed; open it first"))
        self._answered.put(None)
        if self._asking is not current_thread():
            self._asking.join(_LAST_ANSWER)
        with self._send_lock:
            self._connection.drop()
        if self._thread is not current_thread():  # a callback of an answer may call `close`
            self._thread.join()

    def _publish(self, message: Pointer, topic: NativeTopic) -> Settlement | None:
        """Publish as soon as there is room, within `answer_timeout`."""
        self._native.set_topic(message, topic)
        if not topic.name.startswith(_INBOX):
            return self._hand_over(message)
        self._native.mark_reply(message, is_reply=True)  # its requester waits for such a message
        try:
            return self._hand_over(message)
        finally:
            self._native.mark_reply(message, is_reply=False)  # it is used again

    def _hand_over(self, message: Pointer) -> Settlement | None:
        deadline = 0.0  # set when there is no room at first
        while (result := self._send(message)) == SendResult.WOULD_BLOCK:
            deadline = deadline or time.monotonic() + self._settings.answer_timeout
            if time.monotonic() >= deadline:
                self._end(self._timeout_error())
            self._room.wait(_ROOM_CHECK_INTERVAL)
            self._room.clear()  # before the next attempt, so that no signal is missed
        if result == SendResult.OK:
            return None
        error = self._native.last_error()
        refusal = library_refusal(error)
        if refusal is None:
            raise NotConnectedError(f"{self._settings.name}: cannot publish: {error}")
        return refusal

    def _send(self, message: Pointer) -> int:
        with self._send_lock:
            if self._failure is not None:
                raise NotConnectedError(str(self._failure))
            return self._native.send(self._pointer, message)

    def _on_receipt(self, tag: bytes, event: object, error: Exception | None = None) -> None:
        """Record a receipt; the library's thread calls this and swallows exceptions."""
        del event
        found = self._receipts.take(tag)
        if found is not None:
            batch, position = found
            settlement = ACCEPTED if error is None else publish_refusal(error)
            if batch.settle((position,), settlement):
                self._answered.put(batch)

    def _run_answers(self) -> None:
        """Report answered batches, and end the session when the broker stops answering."""
        timeout = self._settings.answer_timeout
        while True:
            try:
                batch = self._answered.get(timeout=min(_RECEIPT_CHECK_INTERVAL, timeout))
                if batch is None:
                    return
                self._guard(batch.answer)
            except Empty:
                pass
            if max(self._receipts.silent_for(), self._unanswered_for()) > timeout:
                self._guard(lambda: self._end(self._timeout_error()))

    def _run_questions(self) -> None:
        """Ask for the direct messages that wait, one question at a time, until the session ends."""
        while self._question.wait() and not self.is_over:
            self._question.clear()
            waiting = len(self._unconfirmed)
            self._asked = time.monotonic() if waiting else 0.0
            answers = not waiting or self._connection.ask(self._native)
            self._asked = 0.0
            if not answers:
                self._end(NotConnectedError(f"{self._settings.name}: no answer to a question"))
                return
            # the library asks again over a connection that it has restored: no sign of them
            current = self.connection_number()
            for batch, positions, connection in self._unconfirmed[:waiting]:
                if batch.settle(positions, ACCEPTED if connection == current else RETRY):
                    self._answered.put(batch)
            del self._unconfirmed[:waiting]

    def _unanswered_for(self) -> float:
        """Return the seconds since a question without an answer; the library gives up after ten."""
        asked = self._asked
        return time.monotonic() - asked if asked else 0.0

    def _guard(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # an error in one batch must not stop the others
            log.exception("%s: an answer could not be passed on", self._settings.name)

    def _timeout_error(self) -> NotConnectedError:
        timeout = self._settings.answer_timeout
        return NotConnectedError(f"{self._settings.name}: no answer for {timeout} s")

    def _end(self, failure: GatewayError) -> None:
        """Stop sending; settle every message without an answer as `RETRY`."""
        if self._failure is None:
            self._failure = failure
        self._room.set()
        self._question.set()
        for batch in (*self._receipts.batches(), *(each[0] for each in [*self._unconfirmed])):
            batch.settle_rest(RETRY)
