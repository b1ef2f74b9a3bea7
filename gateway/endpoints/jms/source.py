"""A JMS source: one connection, one session, and a consumer for each subscription.

`receive` drains the session in one call to Java, which first acknowledges what is settled. A
failure that the provider repairs by itself still ends the connection: messages acknowledged near it
may be delivered again, marked as redelivered. A killed server forgets its deliveries. The source
knows the ids of its last messages, and a later process that messages were unsettled: it marks as
many as that may have been.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Protocol

from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.addresses import QUEUE
from gateway.endpoints.jms.connection import ACK_EACH, JmsConnection, acknowledgement_modes, connect
from gateway.endpoints.jms.consumers import ConsumerSpec, make_consumer, read_subscriptions
from gateway.endpoints.jms.discard_advisories import DiscardAdvisories, discard_advisories
from gateway.endpoints.jms.jvm import JavaError, JmsLibrary, describe, open_library
from gateway.endpoints.jms.message_reader import BatchReader
from gateway.endpoints.redelivery_queue import mark_redelivered, message_queue
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_count, read_texts
from gateway.errors import NotConnectedError, SubscriptionRefusedError
from gateway.model.message import Message
from gateway.model.outcome import Settlement

log = logging.getLogger(__name__)

UNSETTLED = "unsettled"  # a fact of the memory: messages that may have been received
CHECK_INTERVAL = 0.05  # seconds between checks of the connection while the window is full
DISCARDED = "the server discarded messages of a topic, because the gateway received too slowly"
COUNTER_NAMES = (
    "unwanted",  # delivered by a server whose wildcards select more, and dropped
    "dropped_replies",  # temporary reply addresses
    "unreadable",  # bodies the library could not read
    "imported",  # from Rendezvous or SmartSockets through the server
    "seen_before",  # perhaps received before the last break, and marked as redelivered
    "discarded",  # by ActiveMQ, for a slow consumer of a topic
)


class JavaReceiver(Protocol):
    """Receiver.java."""

    def drain(self, most: int, size: int, millis: int) -> bytes | None: ...
    def discard(self, positions: Sequence[int], count: int) -> None: ...
    def settled(self, total: int) -> None: ...
    def finish(self, millis: int) -> bool: ...
    def release(self) -> None: ...
    def largest(self) -> int: ...
    def acknowledged(self) -> int: ...


class ReceivingSession:
    """The unsettled messages of one connection; settling them later has no effect.

    With `together` an acknowledgement covers everything received, so that none is possible while a
    message is unsettled, and the library and the server keep all messages until then. After a
    window of them, nothing more is received before all are settled.
    Mutable: `_reported` is guarded by self._lock, all else is owned by the receiving thread.
    """

    def __init__(
        self,
        connection: JmsConnection,
        receiver: JavaReceiver,
        settings: JmsSettings,
        *,
        together: bool,
    ) -> None:
        self.connection, self.receiver = connection, receiver
        self.queue = message_queue(settings.receive_window_bytes, self._confirm)
        self.progress = threading.Event()  # set whenever something was settled
        self._window, self._bytes = settings.receive_window, settings.receive_window_bytes
        self._together = together
        self._drained = self._drained_bytes = 0  # together: since the last full acknowledgement
        self._confirmed = 0
        self._reported = 0  # confirmed messages that Java knows of
        self._received = 0
        self._lock = threading.Lock()

    def must_wait(self) -> bool:
        """Return whether messages must be settled before more are received."""
        if self.queue.full or self._received - self._confirmed >= self._window:
            return True
        if self._drained < self._window and self._drained_bytes < self._bytes:
            return False
        if self._reported < self._received:
            return True
        self._drained = self._drained_bytes = 0  # the next drain begins with the acknowledgement
        return False

    def count_drained(self, messages: int, size: int) -> None:
        """Count a drain, unwanted messages included."""
        if self._together:
            self._drained += messages
            self._drained_bytes += size

    def put(self, messages: Sequence[Message]) -> None:
        self._received += len(messages)
        self.queue.put(messages)

    def wrap(self, batch: Batch) -> Batch:
        """Return the batch with a `settle` that also acknowledges in Java."""
        return Batch(batch.messages, partial(self._settle, batch.settle))

    def _confirm(self, count: int) -> None:
        self._confirmed += count

    def _settle(self, settle: Settle, settlements: Sequence[Settlement]) -> None:
        settle(settlements)
        confirmed = self._confirmed
        if confirmed > self._reported:
            self.receiver.settled(confirmed)
            with self._lock:
                self._reported = max(self._reported, confirmed)
        self.progress.set()


class JmsSource:
    """Receives the messages that its subscriptions select.

    Mutable: owned by the receiving thread; any thread may call `close`.
    """

    def __init__(
        self, settings: JmsSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        self._settings = settings
        self._consumers: tuple[ConsumerSpec, ...] = read_subscriptions(settings, subscriptions)
        kept = all(each.kind == QUEUE or each.durable for each in self._consumers)
        self.continuity = Continuity(Retention.KEPT if kept else Retention.NOTHING)
        self._client_id = settings.client_id
        if self._client_id and instance:
            self._client_id += f"-{instance}"
        self._advisories: DiscardAdvisories | None = None
        self._library: JmsLibrary | None = None
        self._session: ReceivingSession | None = None
        self._closed = False
        # A server may deliver these again after a break, though acknowledged. With `client` a break
        # can lose the last acknowledgement, and later messages come after it. The drain in which
        # these two windows begin counts whole.
        most = 2 * (settings.receive_window + settings.batch) + settings.batch
        self._recent_ids: deque[str | None] = deque(maxlen=min(most, sys.maxsize))
        self._largest = 0  # bytes of a message that ActiveMQ sent
        self._received = 0  # `JmsConnection.received` at the last look
        self._ids_before_break: frozenset[str] = frozenset()
        self.memory = SourceMemory()
        self._doubtful: int | None = None  # messages that an earlier process may have had
        self.counts: dict[str, int] = dict.fromkeys(COUNTER_NAMES, 0)
        destinations = [(each.kind, each.name) for each in self._consumers]
        self._reader = BatchReader(settings, destinations)

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection, or where the library hides it."""
        session = self._session
        return "" if session is None else session.connection.address

    def open(self) -> None:
        self.close()
        self._closed = False
        self._ids_before_break = frozenset(each for each in self._recent_ids if each is not None)
        if self._library is None:
            self._library = open_library(self._settings)
        connection = connect(self._fitting_settings(), self._library, self._client_id)
        session = connection.set_up(self._subscribe, SubscriptionRefusedError)
        self._find_remade()
        self._find_doubtful()
        self._session = session

    def _find_remade(self) -> None:
        """Find durable subscriptions that this connection has changed.

        A server then deletes the old one of that name, with its messages (JMS 2.0, 8.3.3).
        """
        memory, settings = self.memory, self._settings
        wanted = {each.durable: each.definition for each in self._consumers if each.durable}
        if not wanted:
            return
        fact = f"durable {self._client_id} {settings.broker_key}"
        saved = memory.get(fact, read_texts, NO_TEXTS) or NO_TEXTS
        known = {text.partition("\n")[0]: text for text in saved}
        changed = [name for name, text in wanted.items() if known.get(name, text) != text]
        for name in changed:
            log.warning(
                "%s: the durable subscription %s has another pattern or selector: the server has"
                " deleted the messages that it kept for the old one", settings.name, name,
            )  # fmt: skip
        if self.continuity.retention is not Retention.NOTHING:
            self.continuity.retention = Retention.NEW if changed else Retention.KEPT
        memory.put(fact, sorted({**known, **wanted}.values()))

    def _find_doubtful(self) -> None:
        """Find how many messages an earlier process may have left, and save it of this one."""
        memory, settings = self.memory, self._settings
        window = settings.receive_window + settings.batch
        most = len(self._consumers) * window  # they take turns
        if self._doubtful is None:
            kept = memory.get(UNSETTLED, read_count, 0)
            self._doubtful = most if kept is None else kept
        if self.continuity.retention is not Retention.NOTHING:
            memory.put(UNSETTLED, most)

    def _fitting_settings(self) -> JmsSettings:
        """Return the settings with a prefetch whose bytes fit, where the bound ends a connection.

        In a transacted session the thread that reads must not wait: it also reads the answer to
        the commit. Other sessions let it wait (ReceiveWindow.java).
        """
        settings = self._settings
        fitting = max(1, settings.receive_window_bytes // max(1, self._largest))
        if settings.acknowledge != "transacted" or fitting >= (settings.prefetch or settings.batch):
            return settings
        return replace(settings, prefetch=fitting)

    def _subscribe(self, connection: JmsConnection) -> ReceivingSession:
        settings, library = self._settings, connection.library
        mode, session_mode = acknowledgement_modes(settings, connection)
        transacted = session_mode == 0
        session = connection.connection.createSession(transacted, session_mode)
        consumers = [make_consumer(settings, session, each) for each in self._consumers]
        deserialize = settings.objects == "deserialize"
        receiver: JavaReceiver = library.helper("Receiver")(
            session,
            jvm.java_list(consumers),
            mode,
            connection.monitor,
            deserialize,
            settings.receive_window_bytes,
        )
        self._advisories = discard_advisories(
            connection, self._consumers, consumers, self.continuity.clock
        )
        connection.connection.start()
        return ReceivingSession(connection, receiver, settings, together=mode != ACK_EACH)

    def removes(self, address: str) -> bool:
        """Return whether a queue or a shared subscription had the message.

        A bridge may bring the messages of a topic into a queue, which keep the topic's name.
        """
        queues_only = all(each.kind == QUEUE for each in self._consumers)
        return queues_only or self._settings.removes(address)

    def receive(self, timeout: float) -> Batch | None:
        deadline = monotonic() + timeout
        while True:
            session = self._session
            if session is None:
                raise NotConnectedError(f"{self._settings.name}: not open")
            if (received := session.connection.received) != self._received:
                self._received, self.continuity.heard = received, self.continuity.clock()
            left = max(0.0, deadline - monotonic())
            session.progress.clear()
            must_wait = session.must_wait()
            batch = session.queue.take_batch(self._settings.batch, 0)
            if batch is None and must_wait:
                session.progress.wait(min(left, CHECK_INTERVAL))
                self._check_connection(session)
            elif batch is None:
                batch = self._drain(session, left)
            if batch is not None:
                return session.wrap(batch)
            if monotonic() >= deadline:
                return None

    def _drain(self, session: ReceivingSession, timeout: float) -> Batch | None:
        settings, counts = self._settings, self.counts
        try:
            if self._advisories is not None and (discarded := self._advisories.take()):
                counts["discarded"] += discarded
                self.continuity.report_loss(DISCARDED, discarded, self._advisories.since)
            size = settings.receive_window_bytes // 4
            data = session.receiver.drain(settings.batch, size, int(timeout * 1000))
            if data is None:
                if self._closed:
                    raise NotConnectedError(f"{settings.name}: is closed; open it first")
                return None
            drained = self._reader.read(bytes(data))
            session.count_drained(drained.count, len(data))
            if drained.unwanted:
                session.receiver.discard(drained.unwanted, drained.count)
        except JavaError as error:
            self._disconnect(session)
            raise NotConnectedError(f"{settings.name}: {describe(error)}") from error
        counts["unwanted"] += len(drained.unwanted)
        for name, number in drained.counts.items():
            counts[name] += number
        if unreadable := drained.counts["unreadable"]:
            text = "%s: %d bodies could not be read; the property jms.error says why"
            log.warning(text, settings.name, unreadable)
        messages = self._mark_seen(drained.messages)
        if not messages:
            return None
        self._recent_ids.extend([message.headers.source_id for message in messages])
        session.put(messages)
        return session.queue.take_batch(settings.batch, 0)

    def close(self) -> None:
        self._closed = True
        session = self._session
        if session is not None:
            self._disconnect(session)

    def _check_connection(self, session: ReceivingSession) -> None:
        failure = session.connection.monitor.failure()
        if failure is not None:
            self._disconnect(session)
            raise NotConnectedError(f"{self._settings.name}: {failure}")

    def _disconnect(self, session: ReceivingSession) -> None:
        """Acknowledge the settled messages if possible, then close the connection."""
        if self._session is session:
            self._session = None
        closed = NotConnectedError(f"{self._settings.name}: is closed; open it first")
        try:
            if session.connection.monitor.failure() is None:
                finished = session.receiver.finish(int(self._settings.close_timeout * 1000))
                if finished:
                    self.memory.put(UNSETTLED, self._doubtful or 0)
        except JavaError as error:
            log.debug("closing: %s", describe(error))
        session.queue.fail(closed)
        session.receiver.release()
        self._largest = max(self._largest, int(session.receiver.largest()))
        session.connection.close(self._settings.close_timeout)

    def _mark_seen(self, messages: list[Message]) -> list[Message]:
        """Mark as redelivered what was received before the last break, or may have been."""
        earlier, doubtful = self._ids_before_break, self._doubtful or 0
        if not earlier and not doubtful:
            return messages
        self._doubtful = max(0, doubtful - len(messages))
        seen = [at < doubtful or m.headers.source_id in earlier for at, m in enumerate(messages)]
        self.counts["seen_before"] += sum(seen)
        return [mark_redelivered(m) if old else m for m, old in zip(messages, seen, strict=True)]
