"""One message VPN: subscriptions, queues and publisher names; what `State` keeps survives a stop.

A topic's receivers are clients, groups of clients that share a subscription, and queues.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, TypeAlias

from gateway.brokers.smf.journal import Step
from gateway.brokers.smf.matching import SubscriptionTable, is_topic
from gateway.brokers.smf.options import (
    NO_MATCH,
    OVER_QUOTA,
    QUEUE_NOT_FOUND,
    QUEUE_SHUTDOWN,
    TOO_LONG,
    TOPIC_PARSE_ERROR,
    BrokerOptions,
    Faults,
)
from gateway.brokers.smf.outbox import Outbox
from gateway.brokers.smf.queues import Note, Queue, note_nothing
from gateway.wire.smf.frames import GUARANTEED
from gateway.wire.smf.messages import Published, decode_relayed, encode_direct, read_topic
from gateway.wire.smf.parameters import OK, Response

DEAD_MESSAGES: Final = b"#DEAD_MSG_QUEUE"
_TO_QUEUE: Final = b"#P2P/QUE/"


class Group:
    """Clients that share one subscription and take turns. Mutable."""

    def __init__(self) -> None:
        self.members: list[Outbox] = []
        self._turn = 0

    def next(self) -> Outbox:
        self._turn = (self._turn + 1) % len(self.members)
        return self.members[self._turn]


Target: TypeAlias = "Outbox | Group | Queue"


@dataclass(slots=True, eq=False)
class Publisher:
    """What is remembered of a publisher flow under its name."""

    name: bytes
    last_id: int = 0


@dataclass(slots=True)
class Vpn:
    """Mutable: the state of one VPN."""

    options: BrokerOptions
    faults: Faults
    ids: Callable[[], int]
    table: SubscriptionTable[Target] = field(default_factory=SubscriptionTable)
    queues: dict[bytes, Queue] = field(default_factory=dict)
    publishers: OrderedDict[bytes, Publisher] = field(default_factory=OrderedDict)
    groups: dict[tuple[bytes, bytes], Group] = field(default_factory=dict)
    clients: dict[str, object] = field(default_factory=dict)  # by name, while connected
    names: Iterator[int] = field(default_factory=lambda: count(1))
    note: Note = note_nothing  # what has to survive is told to it

    def relay(self, frame: bytes) -> None:
        """Pass a direct message on as it is; nobody is told when nobody wants it."""
        topic = read_topic(frame)
        for target in self.table.find(topic):
            if target.__class__ is Outbox:
                target.relay(frame)
            elif isinstance(target, Group):
                target.next().relay(frame)
            elif isinstance(target, Queue):
                self._spool_direct(target, frame)

    def publish(self, message: Published) -> Response:
        """Spool a guaranteed message for every queue that wants it, or for none of them."""
        if not is_topic(message.topic):
            return TOPIC_PARSE_ERROR
        if len(message.body) > self.options.max_message:
            return TOO_LONG
        targets = self.table.find(message.topic)
        queues = [target for target in targets if isinstance(target, Queue)]
        if message.topic.startswith(_TO_QUEUE):
            named = self.queues.get(message.topic.removeprefix(_TO_QUEUE))
            if named is None:
                return QUEUE_NOT_FOUND
            queues.append(named)
        for queue in queues:
            if (refusal := self._refuse(queue, message.size)) is not None:
                return refusal
        for queue in queues:
            queue.put(message)
            queue.pump()
        self._pass_on(message, targets)
        if not targets and not queues and self.options.reject_unmatched:
            return NO_MATCH
        return OK

    def add_queue(self, name: bytes, *, exclusive: bool = True, durable: bool = True) -> Queue:
        queue = self.queues[name] = Queue(
            name,
            self.ids,
            exclusive=exclusive,
            durable=durable,
            quota=self.options.queue_bytes,
            max_unacked=self.options.max_unacked,
            note=self.note if durable else note_nothing,
        )
        queue.note(Step.QUEUE, name, exclusive)
        return queue

    def remove_queue(self, queue: Queue) -> None:
        for topic in queue.topics:
            self.table.remove(topic, queue)
        if self.queues.pop(queue.name, None) is not None:
            queue.note(Step.QUEUE_GONE, queue.name)

    def subscribe_queue(self, queue: Queue, topic: bytes) -> None:
        queue.topics[topic] = None
        self.table.add(topic, queue)
        queue.note(Step.TOPIC, queue.name, topic)

    def unsubscribe_queue(self, queue: Queue, topic: bytes) -> None:
        queue.topics.pop(topic, None)
        self.table.remove(topic, queue)
        queue.note(Step.TOPIC_GONE, queue.name, topic)

    def open_publisher(self, name: bytes) -> Publisher | None:
        """A new one for an empty name; None when the name is not known here."""
        if name:
            return self.publishers.get(name)
        publisher = Publisher(b"flow-%d-%d" % (self.ids(), next(self.names)))
        self.remember(publisher)
        return publisher

    def remember(self, publisher: Publisher) -> None:
        """Know a publisher under its name, for as long as there is room."""
        self.publishers[publisher.name] = publisher
        if len(self.publishers) > self.options.max_publishers:
            self.publishers.popitem(last=False)

    def set_aside(self, message: Published) -> None:
        """Keep a rejected message when there is a queue for it."""
        queue = self.queues.get(DEAD_MESSAGES)
        if queue is not None and self._has_room(queue, message.size):
            queue.put(message)
            queue.pump()

    def _spool_direct(self, queue: Queue, frame: bytes) -> None:
        """A direct message that a queue attracts; past a quota it is dropped."""
        message = decode_relayed(frame)
        if not queue.is_shut and self._has_room(queue, message.size):
            queue.put(replace(message, flags=message.flags | GUARANTEED))
            queue.pump()

    def _pass_on(self, message: Published, targets: tuple[Target, ...]) -> None:
        outboxes = [
            target.next() if isinstance(target, Group) else target
            for target in targets
            if not isinstance(target, Queue)
        ]
        if outboxes:
            frame = encode_direct(message)
            for outbox in outboxes:
                outbox.relay(frame)

    def _refuse(self, queue: Queue, size: int) -> Response | None:
        if queue.is_shut:
            return QUEUE_SHUTDOWN
        return None if self._has_room(queue, size) else OVER_QUOTA

    def _has_room(self, queue: Queue, size: int) -> bool:
        held = sum(each.size for each in self.queues.values())
        return queue.has_room(size) and held + size <= self.options.spool_bytes


class State:
    """What a broker knows beyond its connections; hand it to the next one to restart it.

    Mutable: it is what the connections work on.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.options, self.faults = options, Faults()
        # Ids must rise over restarts too, or clients that are still alive drop what they get.
        ids = count((time.time_ns() // 1_000_000_000) << 20)
        self.vpns = {name: Vpn(options, self.faults, ids.__next__) for name in options.vpns}
        for vpn in self.vpns.values():
            for declared in options.queues:
                queue = vpn.add_queue(declared.name.encode(), exclusive=declared.exclusive)
                for topic in declared.topics:
                    vpn.subscribe_queue(queue, topic.encode())
