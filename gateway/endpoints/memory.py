"""A broker inside this process, with the naming rules of the dialect it is given.

It keeps every message until each subscriber has settled it, but only in memory: nothing
survives the process. It does not translate: every address is in its own dialect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias

from gateway.dialects.base import Dialect, check_name, read_pattern, read_tags
from gateway.dialects.registry import find_dialect
from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.inbox import Inbox
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import EndpointError, NotConnectedError, SubjectError
from gateway.model.matching import matches
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement, rejected
from gateway.model.pattern import Pattern

BATCH = 1_000  # messages a receive returns at most
KNOWN = 100_000  # addresses whose receivers are remembered
PATIENCE = 0.1  # seconds between looks at a sink that was closed while it waits for room

Route: TypeAlias = "tuple[Inbox, ...] | Settlement"
Selects: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Queue:
    """What one subscriber has coming."""

    selects: Selects
    inbox: Inbox


class MemoryBroker:
    """Mutable, since it is a broker: the queues of its subscribers and the retained messages."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.lock = threading.Lock()
        self._queues: dict[str, Queue] = {}
        self._open: set[str] = set()
        self._routes: dict[str, Route] = {}
        self._retained: dict[str, Message] = {}

    def attach(
        self, name: str, capacity: int, subscriptions: Sequence[Subscription]
    ) -> tuple[str, Inbox]:
        """The queue `name`, as it was left or new, now selecting `subscriptions`.

        Raises:
            EndpointError: another source has it open.
            SubjectError: a pattern is not legal here.
        """
        wanted = [(self._selector(item.pattern), item.exclude_retained) for item in subscriptions]
        with self.lock:
            if name in self._open:
                raise EndpointError(f"{name}: another source has this queue open")
            old = self._queues.get(name)
            inbox = old.inbox if old else Inbox(capacity)
            self._queues[name] = Queue(_any([selects for selects, _ in wanted]), inbox)
            self._open.add(name)
            self._routes.clear()
            kept = _any([selects for selects, excluded in wanted if not excluded])
            if not old:
                inbox.put([m for address, m in self._retained.items() if kept(address)])
        inbox.recover()
        return name, inbox

    def detach(self, name: str, *, durable: bool) -> None:
        """Close the queue; all it has not settled comes again when it is durable."""
        with self.lock:
            self._open.discard(name)
            queue = self._queues.get(name)
            if queue and not durable:
                del self._queues[name]
                self._routes.clear()
        if queue:
            queue.inbox.recover()

    def distribute(
        self, messages: Sequence[Message]
    ) -> tuple[list[Settlement], dict[Inbox, list[Message]]]:
        """Who gets what; a message whose address is not legal is rejected in its place."""
        settlements: list[Settlement] = []
        shares: dict[Inbox, list[Message]] = {}
        with self.lock:
            routes = self._routes
            for message in messages:
                route = routes.get(message.address)
                if route is None:
                    route = self._remember(message.address)
                if isinstance(route, Settlement):
                    settlements.append(route)
                    continue
                settlements.append(ACCEPTED)
                if message.headers.retained:
                    message = self._retain(message)  # noqa: PLW2901  # a live copy goes out
                for inbox in route:
                    share = shares.get(inbox)
                    if share is None:
                        shares[inbox] = [message]
                    else:
                        share.append(message)
        return settlements, shares

    def _remember(self, address: str) -> Route:
        if len(self._routes) >= KNOWN:
            self._routes.clear()
        route = self._routes[address] = self._route(address)
        return route

    def _route(self, address: str) -> Route:
        try:
            check_name(address, self.dialect)
        except SubjectError as error:
            return rejected(error.rule, str(error))
        return tuple(queue.inbox for queue in self._queues.values() if queue.selects(address))

    def _retain(self, message: Message) -> Message:
        if message.payload:
            self._retained[message.address] = message
        else:
            self._retained.pop(message.address, None)
        return replace(message, headers=replace(message.headers, retained=False))

    def _selector(self, pattern: str) -> Selects:
        return _selector(read_pattern(pattern, self.dialect), self.dialect)


def _selector(patterns: tuple[Pattern, ...], dialect: Dialect) -> Selects:
    def selects(address: str) -> bool:
        names = read_tags(address, dialect)  # a tag list is many names, elsewhere it is one
        return any(matches(pattern, levels) for pattern in patterns for levels in names)

    return selects


def _any(selectors: Sequence[Selects]) -> Selects:
    return lambda address: any(selects(address) for selects in selectors)


_brokers: dict[str, MemoryBroker] = {}  # the process's brokers: sources and sinks meet by name
_brokers_lock = threading.Lock()


def find_broker(settings: MemorySettings) -> MemoryBroker:
    """The broker `settings` names, made when it is the first to ask.

    Raises:
        EndpointError: it exists and follows another dialect.
    """
    dialect = find_dialect(settings.dialect)
    with _brokers_lock:
        broker = _brokers.setdefault(settings.broker, MemoryBroker(dialect))
    if broker.dialect != dialect:
        raise EndpointError(
            f"{settings.name}: the broker {settings.broker!r} follows the rules of"
            f" {broker.dialect.name}, not of {dialect.name}; name another broker"
        )
    return broker


def drop_broker(name: str) -> None:
    """Forget a broker and all it holds; sources and sinks that are open keep the old one."""
    with _brokers_lock:
        _brokers.pop(name, None)


class MemorySource:
    """Mutable: it is open or closed."""

    def __init__(
        self, settings: MemorySettings, subscriptions: Sequence[Subscription], name: str
    ) -> None:
        self._settings, self._subscriptions, self._name = settings, subscriptions, name
        self._broker: MemoryBroker | None = None
        self._inbox: Inbox | None = None

    def open(self) -> None:
        if self._inbox is not None:
            return
        broker = find_broker(self._settings)
        try:
            _, inbox = broker.attach(self._name, self._settings.capacity, self._subscriptions)
        except SubjectError as error:
            raise EndpointError(f"{self._settings.name}: {error}") from error
        self._broker, self._inbox = broker, inbox

    def receive(self, timeout: float) -> Batch | None:
        inbox = self._inbox
        if inbox is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        return inbox.take(BATCH, timeout)

    def close(self) -> None:
        broker, self._broker, self._inbox = self._broker, None, None
        if broker is not None:
            broker.detach(self._name, durable=self._settings.durable)


class MemorySink:
    """Mutable: it is open or closed."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._broker: MemoryBroker | None = None

    def open(self) -> None:
        self._broker = find_broker(self._settings)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        broker = self._broker
        if broker is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        if not self._settings.headers:
            messages = [_bare(message) for message in messages]
        settlements, shares = broker.distribute(messages)
        for inbox, share in shares.items():
            while not inbox.wait_for_room(PATIENCE):
                if self._broker is None:
                    raise NotConnectedError(f"{self._settings.name}: closed while a queue was full")
            inbox.put(share)
        settled(settlements)

    def close(self) -> None:
        self._broker = None


def _bare(message: Message) -> Message:
    """The message with the few headers that a plain broker carries."""
    headers = Headers(mode=message.headers.mode, retained=message.headers.retained)
    return replace(message, headers=headers)


_numbers = count(1)


def open_source(
    settings: MemorySettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> MemorySource:
    """A closed source; its queue is known by the endpoint's name and `instance`."""
    name = (
        f"{settings.name}/{instance}" if settings.durable else f"{settings.name}/{next(_numbers)}"
    )
    return MemorySource(settings, subscriptions, name)


def open_sink(settings: MemorySettings, *, instance: str = "") -> MemorySink:
    """A closed sink; `instance` makes no difference here."""
    del instance
    return MemorySink(settings)
