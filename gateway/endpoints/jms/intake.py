"""One connection of a JMS source: one session, and a consumer for each subscription.

`receive` drains the session in one call to Java, which first acknowledges what is settled. A
failure that the provider repairs by itself still ends the connection: messages acknowledged near it
may be delivered again, marked as redelivered. A killed server forgets its deliveries. The source
knows the ids of its last messages (`jms.wanted`), and a later process that messages were unsettled:
it marks as many as that may have been.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Final, Protocol

from gateway.endpoints.base import Batch, Settle, Settlements
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.connection import ACK_EACH, JmsConnection, acknowledgement_modes, connect
from gateway.endpoints.jms.consumers import make_consumer
from gateway.endpoints.jms.discard_advisories import DiscardAdvisories, discard_advisories
from gateway.endpoints.jms.jvm import JavaError, describe, open_library
from gateway.endpoints.jms.wanted import WantedConsumers
from gateway.endpoints.received_queue import message_queue
from gateway.endpoints.source_shell import not_open
from gateway.errors import NotConnectedError, SubscriptionRefusedError

log = logging.getLogger(__name__)

CHECK_INTERVAL: Final = 0.05  # seconds between checks of the connection while the window is full
DISCARDED: Final = (
    "the server discarded messages of a topic, because the gateway received too slowly"
)


class JavaReceiver(Protocol):
    """Receiver.java."""

    def drain(self, most: int, size: int, millis: int) -> bytes | None: ...
    def discard(self, positions: Sequence[int], count: int) -> None: ...
    def settled(self, total: int) -> None: ...
    def finish(self, millis: int) -> bool: ...
    def release(self) -> None: ...
    def largest(self) -> int: ...


class JmsIntake:
    """An intake (`endpoints.source_shell`) of the consumers `wanted`, and its unsettled messages.

    With `together` an acknowledgement covers everything received, so that none is possible while a
    message is unsettled, and the library and the server keep all messages until then. After a
    window of them, nothing more is received before all are settled.
    Mutable: `_reported` is guarded by self._lock; any thread may settle and close; all else is
    owned by the receiving thread.
    """

    ended = True  # nothing ends it before `close`

    def __init__(
        self,
        wanted: WantedConsumers,
        connection: JmsConnection,
        receiver: JavaReceiver,
        *,
        together: bool,
        advisories: DiscardAdvisories | None = None,
    ) -> None:
        self._wanted, self._settings = wanted, wanted.settings
        self._connection, self._receiver, self._advisories = connection, receiver, advisories
        self._queue = message_queue(self._settings.receive_window_bytes, self._confirm)
        self._progress = threading.Event()  # set whenever something was settled
        self._ids_before_break = frozenset(wanted.recent_ids) - {None}
        self._together = together
        self._drained = self._drained_bytes = 0  # together: since the last full acknowledgement
        self._received = self._confirmed = 0
        self._reported = 0  # confirmed messages that Java knows of
        self._signs = 0  # `JmsConnection.received` at the last look
        self._closed = False
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty where the library hides it."""
        return self._connection.address

    def receive(self, timeout: float) -> Batch | None:
        queue, progress, continuity = self._queue, self._progress, self._wanted.continuity
        deadline = monotonic() + timeout
        while True:
            progress.clear()
            must_wait = self._must_wait()
            batch = queue.take(self._settings.batch, 0)
            if (signs := self._connection.received) != self._signs:
                self._signs, continuity.heard = signs, continuity.clock()
            left = max(0.0, deadline - monotonic())
            if batch is None and must_wait:
                progress.wait(min(left, CHECK_INTERVAL))
                self._check_connection()
            elif batch is None:
                batch = self._drain(left)
            if batch is not None:
                return Batch(batch.messages, partial(self._settle, batch.settle))
            if monotonic() >= deadline:
                return None

    def end(self) -> None:
        """Do nothing: either the server keeps what is not taken in, or nothing marks the end."""

    def close(self) -> None:
        """Acknowledge the settled messages if possible, then close the connection."""
        if self._closed:
            return
        self._closed = True
        connection, receiver = self._connection, self._receiver
        timeout = self._settings.close_timeout
        try:
            if connection.monitor.failure() is None and receiver.finish(int(timeout * 1000)):
                self._wanted.all_settled()
        except JavaError as error:
            log.debug("closing: %s", describe(error))
        self._queue.fail(not_open(self._settings.name))
        receiver.release()
        self._wanted.largest = max(self._wanted.largest, int(receiver.largest()))
        connection.close(timeout)

    def _must_wait(self) -> bool:
        """Return whether messages must be settled before more are received."""
        window, size = self._settings.receive_window, self._settings.receive_window_bytes
        if self._queue.full or self._received - self._confirmed >= window:
            return True
        if self._drained < window and self._drained_bytes < size:
            return False
        if self._reported < self._received:
            return True
        self._drained = self._drained_bytes = 0  # the next drain begins with the acknowledgement
        return False

    def _check_connection(self) -> None:
        failure = self._connection.monitor.failure()
        if failure is not None:
            self.close()
            raise NotConnectedError(f"{self._settings.name}: {failure}")

    def _drain(self, timeout: float) -> Batch | None:
        wanted, settings, receiver = self._wanted, self._settings, self._receiver
        try:
            if self._advisories is not None and (discarded := self._advisories.take()):
                wanted.counts["discarded"] += discarded
                wanted.continuity.report_loss(DISCARDED, discarded, self._advisories.since)
            size = settings.receive_window_bytes // 4
            all_reported = self._reported == self._received  # Java acknowledges it now
            data = receiver.drain(settings.batch, size, int(timeout * 1000))
            if data is None:
                if self._closed:
                    raise not_open(settings.name)
                if all_reported:
                    wanted.fell_quiet()
                return None
            drained = wanted.reader.read(bytes(data))
            if self._together:  # unwanted messages count, too
                self._drained += drained.count
                self._drained_bytes += len(data)
            if drained.unwanted:
                receiver.discard(drained.unwanted, drained.count)
        except JavaError as error:
            self.close()
            raise NotConnectedError(f"{settings.name}: {describe(error)}") from error
        messages = wanted.note(drained, self._ids_before_break)
        if not messages:
            return None
        wanted.receiving()
        self._received += len(messages)
        self._queue.put(messages)
        return self._queue.take(settings.batch, 0)

    def _confirm(self, count: int) -> None:
        self._confirmed += count

    def _settle(self, settle: Settle, settlements: Settlements) -> None:
        """Settle a batch here, and acknowledge it in Java."""
        settle(settlements)
        confirmed = self._confirmed
        if confirmed > self._reported:
            self._receiver.settled(confirmed)
            with self._lock:
                self._reported = max(self._reported, confirmed)
        self._progress.set()


def open_intake(wanted: WantedConsumers) -> JmsIntake:
    """Connect and subscribe. Raises as `Source.open` does."""
    wanted.library = wanted.library or open_library(wanted.settings)
    connection = connect(wanted.fitting_settings(), wanted.library, wanted.client_id)
    wanted.subscribing()
    intake = connection.set_up(partial(_subscribe, wanted), SubscriptionRefusedError)
    wanted.subscribed()
    return intake


def _subscribe(wanted: WantedConsumers, connection: JmsConnection) -> JmsIntake:
    settings = wanted.settings
    mode, session_mode = acknowledgement_modes(settings, connection)
    session = connection.connection.createSession(session_mode == 0, session_mode)  # 0: transacted
    advisories = discard_advisories(connection, wanted.consumers, wanted.continuity.clock)
    consumers = [make_consumer(settings, session, each) for each in wanted.consumers]
    if advisories is not None:
        advisories.watch(wanted.consumers, consumers)
    receiver: JavaReceiver = connection.library.helper("Receiver")(
        session,
        jvm.java_list(consumers),
        mode,
        connection.monitor,
        settings.objects == "deserialize",
        settings.receive_window_bytes,
    )
    connection.connection.start()
    return JmsIntake(wanted, connection, receiver, together=mode != ACK_EACH, advisories=advisories)
