"""A JMS source: one connection, one session, a consumer for each subscription.

`receive` drains the session in one call of Java. What is settled is acknowledged in Java too, by
the thread that holds the session then. A failure the provider repairs by itself ends the
connection all the same: what was acknowledged around it may come again, marked as redelivered.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Protocol

from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.inbox import Inbox, again
from gateway.endpoints.jms import jvm, names
from gateway.endpoints.jms.jvm import JavaError, Library
from gateway.endpoints.jms.patterns import Screen
from gateway.endpoints.jms.provider import (
    EACH,
    Link,
    acknowledgement,
    as_failure,
    connect,
    describe,
    open_library,
)
from gateway.endpoints.jms.reader import BatchReader, Drained
from gateway.endpoints.jms.subscriptions import Wanted, make_consumer, read_subscriptions
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import Settlement

log = logging.getLogger(__name__)

TICK = 0.05  # seconds between looks at the connection while the window is full
COUNTED = (
    "unwanted",  # delivered by a server whose wildcards are wider, and not passed on
    "dropped_replies",  # temporary reply addresses
    "unreadable",  # bodies the library could not read
    "imported",  # came from Rendezvous or SmartSockets by way of the server
    "seen_before",  # received before the last break, and marked as redelivered
)


class JavaReceiver(Protocol):
    """Receiver.java."""

    def drain(self, most: int, size: int, millis: int) -> bytes | None: ...
    def discard(self, positions: Sequence[int], count: int) -> None: ...
    def settled(self, total: int) -> None: ...
    def finish(self, millis: int) -> None: ...
    def acknowledged(self) -> int: ...


class Session:
    """One connection's traffic; mutable. A settlement after its end does nothing.

    With `together` an acknowledgement is for all that was received, so none can be made while
    something is under way. Until then the library and the server keep everything: past a window
    of it nothing more is received before all of it is settled.
    """

    def __init__(
        self, link: Link, receiver: JavaReceiver, settings: JmsSettings, *, together: bool
    ) -> None:
        self.link, self.receiver = link, receiver
        self.inbox = Inbox(settings.window_bytes, self._confirm)
        self.progress = threading.Event()  # set whenever something was settled
        self._window, self._bytes = settings.window, settings.window_bytes
        self._together = together
        self._taken = self._taken_bytes = 0  # together: since nothing was under way
        self._due = 0
        self._told = 0
        self._out = 0
        self._lock = threading.Lock()

    def must_wait(self) -> bool:
        """Whether settlements have to come before more is received; for the receiving thread."""
        if self.inbox.full or self._out - self._due >= self._window:
            return True
        if self._taken < self._window and self._taken_bytes < self._bytes:
            return False
        if self._told < self._out:
            return True
        self._taken = self._taken_bytes = 0  # the next drain begins with the acknowledgement
        return False

    def took(self, messages: int, size: int) -> None:
        """Count a drain, with what nobody wants."""
        if self._together:
            self._taken += messages
            self._taken_bytes += size

    def put(self, messages: Sequence[Message]) -> None:
        self._out += len(messages)
        self.inbox.put(messages)

    def wrap(self, batch: Batch) -> Batch:
        return Batch(batch.messages, partial(self._settle, batch.settle))

    def _confirm(self, count: int) -> None:
        self._due += count

    def _settle(self, settle: Settle, settlements: Sequence[Settlement]) -> None:
        settle(settlements)
        due = self._due
        if due > self._told:
            try:
                self.receiver.settled(due)
            except JavaError as error:
                log.warning("not acknowledged: %s", describe(error))  # the next drain says it too
            with self._lock:
                self._told = max(self._told, due)
        self.progress.set()


class JmsSource:
    """Receives what its subscriptions select; mutable: it is open or closed."""

    def __init__(
        self, settings: JmsSettings, subscriptions: Sequence[Subscription], instance: str
    ) -> None:
        self._settings = settings
        self._default = names.KINDS[settings.destination]
        self._wanted: tuple[Wanted, ...] = read_subscriptions(settings, subscriptions)
        self._client_id = settings.client_id
        if self._client_id and instance:
            self._client_id += f"-{instance}"
        self._library: Library | None = None
        self._session: Session | None = None
        self._closed = False
        self._recent: deque[list[str | None]] = deque()  # ids, by drain
        self._kept = 0
        self._before: frozenset[str] = frozenset()  # ids from before the last break
        self.counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
        pairs = [(each.kind, each.name) for each in self._wanted]
        screen = Screen(pairs, dotted=settings.dialect in ("ems", "rv"))
        self._reader = BatchReader(
            screen,
            self._default,
            keep_temporary=settings.temporary_reply == "map",
            broker=settings.broker_key,
        )

    def open(self) -> None:
        self.close()
        self._closed = False
        self._remember()
        if self._library is None:
            self._library = open_library(self._settings)
        link = connect(self._settings, self._library, self._client_id)
        try:
            session = self._library.run(partial(self._subscribe, link))
        except JavaError as error:
            link.close(self._settings.close_timeout)
            raise as_failure(self._settings.name, error) from error
        except BaseException:
            link.close(self._settings.close_timeout)
            raise
        self._session = session

    def _subscribe(self, link: Link) -> Session:
        settings, library = self._settings, link.library
        mode, session_mode = acknowledgement(settings, link)
        transacted = session_mode == 0
        session = link.connection.createSession(transacted, session_mode)
        consumers = [make_consumer(settings, session, each) for each in self._wanted]
        trusting = settings.objects == "deserialize"
        receiver: JavaReceiver = library.helper("Receiver")(
            session,
            jvm.java_list(consumers),
            mode,
            link.watch,
            trusting,
        )
        link.connection.start()
        return Session(link, receiver, settings, together=mode != EACH)

    def receive(self, timeout: float) -> Batch | None:
        deadline = monotonic() + timeout
        while True:
            session = self._session
            if session is None:
                raise NotConnectedError(f"{self._settings.name}: not open")
            left = max(0.0, deadline - monotonic())
            session.progress.clear()
            waits = session.must_wait()
            batch = session.inbox.take(self._settings.batch, 0)
            if batch is None and waits:
                session.progress.wait(min(left, TICK))
                self._check(session)
            elif batch is None:
                batch = self._drain(session, left)
            if batch is not None:
                return session.wrap(batch)
            if monotonic() >= deadline:
                return None

    def _drain(self, session: Session, timeout: float) -> Batch | None:
        settings = self._settings
        try:
            size = settings.window_bytes // 4
            data = session.receiver.drain(settings.batch, size, int(timeout * 1000))
            if data is None:
                if self._closed:
                    raise NotConnectedError(f"{settings.name}: is closed; open it first")
                return None
            drained = self._reader.read(bytes(data))
            session.took(drained.count, len(data))
            if drained.unwanted:
                session.receiver.discard(jvm.ints(drained.unwanted), drained.count)
        except JavaError as error:
            self._end(session)
            raise NotConnectedError(f"{settings.name}: {describe(error)}") from error
        self._count(drained)
        messages = self._mark(drained.messages)
        if not messages:
            return None
        self._keep(messages)
        session.put(messages)
        return session.inbox.take(settings.batch, 0)

    def close(self) -> None:
        self._closed = True
        session = self._session
        if session is not None:
            self._end(session)

    def _check(self, session: Session) -> None:
        failure = session.link.watch.failure()
        if failure is not None:
            self._end(session)
            raise NotConnectedError(f"{self._settings.name}: {failure}")

    def _end(self, session: Session) -> None:
        """Acknowledge what can be, then let go of the connection."""
        if self._session is session:
            self._session = None
        closed = NotConnectedError(f"{self._settings.name}: is closed; open it first")
        try:
            if session.link.watch.failure() is None:
                session.receiver.finish(int(self._settings.close_timeout * 1000))
        except JavaError as error:
            log.debug("closing: %s", describe(error))
        session.inbox.fail(closed, lambda _message: False)
        session.link.close(self._settings.close_timeout)

    def _count(self, drained: Drained) -> None:
        counts = self.counts
        counts["unwanted"] += len(drained.unwanted)
        counts["dropped_replies"] += drained.dropped_replies
        counts["imported"] += drained.imported
        if drained.unreadable:
            counts["unreadable"] += drained.unreadable
            log.warning(
                "%s: %d bodies could not be read; the property jms.error says why",
                self._settings.name,
                drained.unreadable,
            )

    def _keep(self, messages: Sequence[Message]) -> None:
        """Note what may come again after a break, though it was acknowledged."""
        self._recent.append([message.headers.source_id for message in messages])
        self._kept += len(messages)
        # of `client` the last acknowledgement, which a break may swallow, and what came after it
        rounds = 2 * (self._settings.window + self._settings.batch)
        while self._kept - len(self._recent[0]) > rounds:
            self._kept -= len(self._recent.popleft())

    def _remember(self) -> None:
        self._before = frozenset(each for ids in self._recent for each in ids if each is not None)

    def _mark(self, messages: list[Message]) -> list[Message]:
        before = self._before
        if not before:
            return messages
        seen = [m.headers.source_id in before for m in messages]
        self.counts["seen_before"] += sum(seen)
        return [again(m) if old else m for m, old in zip(messages, seen, strict=True)]
