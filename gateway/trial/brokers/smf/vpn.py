"""Message VPNs: subscriptions, queues and publisher flows, which outlive their connections.

The receivers of a topic are clients, groups of clients with a shared subscription, and queues.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TypeAlias

from gateway.trial.brokers.smf.options import BrokerOptions, InjectedFaults, find_injected_refusal
from gateway.trial.brokers.smf.queues import MessageQueue
from gateway.trial.brokers.smf.store import BrokerStore, StoreChange
from gateway.trial.brokers.smf.subscription_table import SubscriptionTable
from gateway.trial.brokers.smf.write_buffer import WriteBuffer
from gateway.wire.smf.frames import GUARANTEED
from gateway.wire.smf.relayed_message import PublishedMessage, decode_direct, read_topic


class ShareGroup:
    """Clients that share one subscription and receive in turn.

    Mutable: owned by the broker's event loop.
    """

    def __init__(self) -> None:
        self.members: list[WriteBuffer] = []
        self._current = 0

    def relay(self, frame: bytes) -> None:
        self._current = (self._current + 1) % len(self.members)
        self.members[self._current].relay(frame)


Receiver: TypeAlias = "WriteBuffer | ShareGroup | MessageQueue"


@dataclass(slots=True, eq=False)
class PublisherFlow:
    """The last acknowledged message of a publisher flow, kept under its name.

    Mutable: owned by the broker's event loop.
    """

    name: bytes
    last_id: int = 0


@dataclass(slots=True)
class Vpn:
    """The state of one message VPN.

    Mutable: owned by the broker's event loop.
    """

    options: BrokerOptions
    faults: InjectedFaults
    ids: Callable[[], int]
    table: SubscriptionTable[Receiver] = field(default_factory=SubscriptionTable)
    queues: dict[bytes, MessageQueue] = field(default_factory=dict)
    publishers: OrderedDict[bytes, PublisherFlow] = field(default_factory=OrderedDict)
    groups: dict[tuple[bytes, bytes], ShareGroup] = field(default_factory=dict)
    clients: dict[str, object] = field(default_factory=dict)  # by name, while connected
    names: Iterator[int] = field(default_factory=lambda: count(1))
    spool_id: bytes = b""  # eight bytes that consumers get unless it is empty
    # called with each change that must survive a stop, and its values
    record: Callable[..., None] = lambda *_: None

    def add_queue(
        self, name: bytes, *, exclusive: bool = True, durable: bool = True
    ) -> MessageQueue:
        queue = self.queues[name] = MessageQueue(name, self, exclusive=exclusive, durable=durable)
        queue.record(StoreChange.QUEUE, exclusive)
        return queue

    def remove_queue(self, queue: MessageQueue) -> None:
        """Remove a queue; one that is removed already may have a successor of its name."""
        for topic in queue.topics:
            self.table.remove(topic, queue)
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
            queue.record(StoreChange.QUEUE_REMOVED)

    def remove_unused(self, queue: MessageQueue) -> None:
        """Remove a temporary queue without consumers."""
        if not queue.durable and not queue.flows:
            self.remove_queue(queue)

    def subscribe_queue(self, queue: MessageQueue, topic: bytes) -> None:
        queue.topics[topic] = None
        self.table.add(topic, queue)
        queue.record(StoreChange.TOPIC, topic)

    def unsubscribe_queue(self, queue: MessageQueue, topic: bytes) -> None:
        queue.topics.pop(topic, None)
        self.table.remove(topic, queue)
        queue.record(StoreChange.TOPIC_REMOVED, topic)

    def open_publisher(self, name: bytes) -> PublisherFlow | None:
        """Return a new flow for an empty name, or the named one; None for an unknown name."""
        if name:
            return self.publishers.get(name)
        publisher = PublisherFlow(b"flow-%d-%d" % (self.ids(), next(self.names)))
        self.remember(publisher)
        return publisher

    def remember(self, publisher: PublisherFlow) -> None:
        """Keep a publisher flow under its name; the oldest is dropped past the limit."""
        self.publishers[publisher.name] = publisher
        if len(self.publishers) > self.options.max_publishers:
            name, _ = self.publishers.popitem(last=False)
            self.record(StoreChange.PUBLISHER_REMOVED, name)

    def keep_in(self, store: BrokerStore, vpn: str) -> None:
        """Restore what `store` has of this VPN, named `vpn`, and record further changes there."""
        for name, exclusive, delivered in store.rows("name, exclusive, delivered", "queues", vpn):
            queue = self.queues.get(name) or self.add_queue(name, exclusive=bool(exclusive))
            for (topic,) in store.rows("topic", "topics", vpn, name):
                self.subscribe_queue(queue, topic)
            content = "number, topic, flags, parameters, body"
            for number, topic, *others in store.rows(content, "messages", vpn, name):
                queue.restore(number, PublishedMessage(topic, 0, 0, 0, *others))
            queue.mark_redelivered(delivered)
        for name, last_id in store.rows("name, last_id", "publishers", vpn):
            self.remember(PublisherFlow(name, last_id))
        self.record = partial(store.append, vpn)
        for queue in self.queues.values():
            queue.record(StoreChange.QUEUE, queue.exclusive)
            for topic in queue.topics:
                queue.record(StoreChange.TOPIC, topic)

    def relay_direct(self, frame: bytes) -> None:
        """Relay a direct message unchanged; without a receiver, or refused, it is dropped."""
        topic = read_topic(frame)
        if self.faults.publish and find_injected_refusal(self.faults.publish, topic):
            return
        for receiver in self.table.find(topic):
            if isinstance(receiver, MessageQueue):
                self._spool(receiver, frame)
            else:
                receiver.relay(frame)

    def _spool(self, queue: MessageQueue, frame: bytes) -> None:
        """Spool a direct message in a subscribed queue, or drop it past the quota."""
        message = decode_direct(frame)
        if not queue.is_shut and self.has_room(queue, message.size):
            queue.put(replace(message, flags=message.flags | GUARANTEED))

    def has_room(self, queue: MessageQueue, size: int) -> bool:
        """Return whether a queue, and the spool of all queues, takes a message of `size` bytes."""
        held = sum(each.size for each in self.queues.values())
        return queue.has_room(size) and held + size <= self.options.spool_bytes


class BrokerState:
    """The state of a broker without its connections; a new broker with it acts as a restarted one.

    Mutable: owned by the broker's event loop.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.options, self.faults = options, InjectedFaults()
        # Ids must increase across restarts: clients drop messages with lower ids.
        ids = count((time.time_ns() // 1_000_000_000) << 20)
        self.vpns = {name: Vpn(options, self.faults, ids.__next__) for name in options.vpns}
        for vpn in self.vpns.values():
            for declared in options.queues:
                queue = vpn.add_queue(declared.name.encode(), exclusive=declared.exclusive)
                for topic in declared.topics:
                    vpn.subscribe_queue(queue, topic.encode())
