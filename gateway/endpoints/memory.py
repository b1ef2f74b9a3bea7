"""A broker inside this process, with the naming rules of a chosen dialect.

It keeps every message in memory until each subscriber has settled it. Sources and sinks of one
broker use addresses in its own dialect.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TypeAlias

from gateway.dialects.base import Dialect, check_name, read_pattern, read_tags
from gateway.dialects.registry import find_dialect
from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.received_queue import MAX_BATCH, ReceivedQueue, message_queue
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import EndpointError, IllegalNameError, NotConnectedError, SubjectError
from gateway.model.limited_cache import LimitedCache
from gateway.model.matching import matches
from gateway.model.memory_size import text_size
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement, rejected

MAX_CACHED_ADDRESSES = 32 << 20  # bytes
CLOSE_CHECK_INTERVAL = 0.1  # seconds, while a sink waits for room

InboundQueue: TypeAlias = ReceivedQueue[Message]
Recipients: TypeAlias = "tuple[InboundQueue, ...] | Settlement"  # or why an address is rejected
Selects: TypeAlias = Callable[[str], bool]
Arrived: TypeAlias = Callable[[str, Sequence[Message]], None]  # an endpoint, and what it sent


@dataclass(frozen=True, slots=True)
class SubscriberQueue:
    """The messages of one subscriber, and the addresses that it selects."""

    selects: Selects
    messages: InboundQueue


class MemoryBroker:
    """The queues of the subscribers, and the retained messages.

    Thread-safe: guarded by self.lock.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.lock = threading.Lock()
        self._queues: dict[str, SubscriberQueue] = {}
        self._open: set[str] = set()
        # by address, for the present queues
        self._recipients: LimitedCache[str, Recipients] = LimitedCache(MAX_CACHED_ADDRESSES)
        self._retained: dict[str, Message] = {}
        self.arrived: Arrived = lambda _endpoint, _messages: None  # once the queues have them

    @property
    def is_quiet(self) -> bool:
        """Whether no subscriber has a message that it has not settled."""
        with self.lock:
            return not any(each.messages.held for each in self._queues.values())

    def attach(
        self, name: str, capacity: int, subscriptions: Sequence[Subscription]
    ) -> InboundQueue:
        """Open the queue `name`, kept or new, and have it select `subscriptions`.

        Raises:
            EndpointError: another source has it open.
            SubjectError: a pattern is not legal here.
        """
        selects = self._selector(subscriptions)
        wants_retained = self._selector([s for s in subscriptions if not s.exclude_retained])
        with self.lock:
            if name in self._open:
                raise EndpointError(f"{name}: another source has this queue open")
            old = self._queues.get(name)
            messages = old.messages if old else message_queue(capacity)
            self._queues[name] = SubscriberQueue(selects, messages)
            self._open.add(name)
            self._recipients.clear()
            if not old:
                retained = self._retained.items()
                messages.put([message for address, message in retained if wants_retained(address)])
        messages.recover()
        return messages

    def detach(self, name: str, *, durable: bool) -> None:
        """Close the queue; a durable one redelivers its unsettled messages when opened again."""
        with self.lock:
            self._open.discard(name)
            queue = self._queues.get(name)
            if queue and not durable:
                del self._queues[name]
                self._recipients.clear()
        if queue:
            queue.messages.recover()

    def distribute(
        self, messages: Sequence[Message]
    ) -> tuple[list[Settlement], dict[InboundQueue, list[Message]]]:
        """Return a settlement per message, and the messages that each queue is to receive.

        A message whose address is not legal is rejected.
        """
        settlements: list[Settlement] = []
        shares: defaultdict[InboundQueue, list[Message]] = defaultdict(list)
        with self.lock:
            known = self._recipients
            for message in messages:
                recipients = known.get(message.address)
                if recipients is None:
                    recipients = self._find_recipients(message.address)
                if isinstance(recipients, Settlement):
                    settlements.append(recipients)
                    continue
                settlements.append(ACCEPTED)
                if message.headers.retained:
                    message = self._retain(message)  # noqa: PLW2901  # a live copy goes out
                for queue in recipients:
                    shares[queue].append(message)
        return settlements, shares

    def _find_recipients(self, address: str) -> Recipients:
        recipients: Recipients
        try:
            check_name(address, self.dialect)
            recipients = tuple(q.messages for q in self._queues.values() if q.selects(address))
        except IllegalNameError as error:
            recipients = rejected(error.rule, str(error))
        return self._recipients.add(address, recipients, text_size(address))

    def _retain(self, message: Message) -> Message:
        if message.payload:
            self._retained[message.address] = message
        else:
            self._retained.pop(message.address, None)
        return replace(message, headers=replace(message.headers, retained=False))

    def _selector(self, subscriptions: Sequence[Subscription]) -> Selects:
        read = [read_pattern(each.pattern, self.dialect) for each in subscriptions]
        patterns = [*chain.from_iterable(read)]

        def selects(address: str) -> bool:
            names = read_tags(address, self.dialect)  # several names for a tag list, else one
            return any(matches(pattern, levels) for pattern in patterns for levels in names)

        return selects


_brokers: dict[tuple[str, str], MemoryBroker] = {}  # by name and dialect; this process shares them


def find_broker(settings: MemorySettings) -> MemoryBroker:
    """Return the broker that `settings` names; the first call makes it."""
    dialect = find_dialect(settings.dialect)
    return _brokers.setdefault((settings.broker, dialect.name), MemoryBroker(dialect))


def drop_brokers() -> None:
    """Remove the brokers and their messages; open sources and sinks keep the removed ones."""
    _brokers.clear()


_source_numbers = count(1)


class MemorySource:
    """Receives the messages of one queue of the broker, named after the endpoint and `instance`.

    Mutable: open or closed.
    """

    def __init__(
        self, settings: MemorySettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        self._settings, self._subscriptions = settings, subscriptions
        suffix = instance if settings.durable else str(next(_source_numbers))
        self._name = f"{settings.name}/{suffix}"
        self._broker: MemoryBroker | None = None
        self._queue: InboundQueue | None = None

    def open(self) -> None:
        if self._queue is not None:
            return
        broker = find_broker(self._settings)
        try:
            queue = broker.attach(self._name, self._settings.capacity, self._subscriptions)
        except SubjectError as error:
            raise EndpointError(f"{self._settings.name}: {error}") from error
        self._broker, self._queue = broker, queue

    def receive(self, timeout: float) -> Batch | None:
        queue = self._queue
        if queue is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        return queue.take(MAX_BATCH, timeout)

    def close(self) -> None:
        broker, self._broker, self._queue = self._broker, None, None
        if broker is not None:
            broker.detach(self._name, durable=self._settings.durable)


class MemorySink:
    """Publishes to the broker.

    Mutable: open or closed.
    """

    def __init__(self, settings: MemorySettings, instance: str = "") -> None:
        del instance  # there is one connection
        self._settings = settings
        self._broker: MemoryBroker | None = None

    def open(self) -> None:
        self._broker = find_broker(self._settings)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        broker = self._broker
        if broker is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        if not self._settings.headers:
            messages = [_drop_headers(message) for message in messages]
        settlements, shares = broker.distribute(messages)
        for queue, share in shares.items():
            while not queue.wait_for_room(CLOSE_CHECK_INTERVAL):
                if self._broker is None:
                    raise NotConnectedError(f"{self._settings.name}: closed while a queue was full")
            queue.put(share)
        broker.arrived(
            self._settings.name,
            [
                each
                for each, answer in zip(messages, settlements, strict=True)
                if answer is ACCEPTED
            ],
        )
        settled(settlements)

    def close(self) -> None:
        self._broker = None


def _drop_headers(message: Message) -> Message:
    """Return the message with the two headers that every broker carries, and no proof."""
    headers = Headers(mode=message.headers.mode, retained=message.headers.retained)
    return replace(message, headers=headers, proof="")


open_source, open_sink = MemorySource, MemorySink
