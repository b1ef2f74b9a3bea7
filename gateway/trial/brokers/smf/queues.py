"""Queues, the consumer flows bound to them, and the unsettled messages of each flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from gateway.trial.brokers.smf.store import StoreChange
from gateway.trial.brokers.smf.write_buffer import WriteBuffer
from gateway.wire.smf.assured_control import AckOutcome
from gateway.wire.smf.relayed_message import PublishedMessage, encode_delivery

if TYPE_CHECKING:
    from gateway.trial.brokers.smf.vpn import Vpn


@dataclass(slots=True, eq=False)
class QueuedMessage:
    """A message in a queue; `message_id` and `holder` are from its last delivery.

    Mutable: owned by the broker's event loop.
    """

    number: int  # position in the order of arrival
    message: PublishedMessage
    redelivered: bool = False
    message_id: int = 0
    holder: str = ""


class ConsumerFlow:
    """One consumer of a queue: its unsettled messages and its window.

    Mutable: owned by the broker's event loop.
    """

    def __init__(self, flow_id: int, client: str, queue: MessageQueue, output: WriteBuffer) -> None:
        self.flow_id, self.client, self.queue, self.output = flow_id, client, queue, output
        self.window = 0
        self.reports_activity = False
        self.unacked: dict[int, QueuedMessage] = {}  # by ascending message id
        self._in_transit: deque[int] = deque()  # ids that the client's library has not acknowledged
        self._last_id = 0

    @property
    def has_room(self) -> bool:
        return (
            len(self._in_transit) < self.window
            and len(self.unacked) < self.queue.vpn.options.max_unacked
            and not self.output.is_busy
        )

    def deliver(self, queued: QueuedMessage, message_id: int) -> None:
        """Send a message; the previous id of the first is 0, otherwise the client discards it."""
        queued.message_id, queued.holder = message_id, self.client
        self.queue.note_delivered(queued.number)
        self.unacked[message_id] = queued
        self._in_transit.append(message_id)
        delivery = encode_delivery(
            queued.message, self.flow_id, message_id, self._last_id, redelivered=queued.redelivered
        )
        self.output.post(delivery)
        self._last_id = message_id

    def acknowledge_transport(self, last_id: int) -> None:
        while self._in_transit and self._in_transit[0] <= last_id:
            self._in_transit.popleft()

    def settle(self, low: int, high: int, outcome: AckOutcome) -> list[QueuedMessage]:
        """Settle the ids `low` to `high` that the flow holds.

        Returns:
            The rejected messages.
        """
        ids = [each for each in takewhile(lambda i: i <= high, self.unacked) if each >= low]
        messages = [self.unacked.pop(each) for each in ids]
        if outcome in {AckOutcome.ACCEPTED, AckOutcome.REJECTED}:
            self.queue.discard(messages)
        else:
            self.queue.requeue(messages)
        return messages if outcome is AckOutcome.REJECTED else []


@dataclass(slots=True, eq=False)
class MessageQueue:
    """Messages in order, and the flows that consume them; a durable queue outlives connections.

    Mutable: owned by the broker's event loop.
    """

    name: bytes
    vpn: Vpn
    exclusive: bool
    durable: bool
    last_delivered: int = 0  # the highest number sent to a consumer
    flows: list[ConsumerFlow] = field(default_factory=list)
    topics: dict[bytes, None] = field(default_factory=dict)
    size: int = 0  # bytes of all messages, unsettled ones included
    is_shut: bool = False
    _waiting: deque[QueuedMessage] = field(default_factory=deque)
    _last: int = 0  # the number of the latest message

    def has_room(self, size: int) -> bool:
        return self.size + size <= self.vpn.options.queue_bytes

    def record(self, change: StoreChange, *values: object) -> None:
        """Record a change that must survive a stop."""
        if self.durable:
            self.vpn.record(change, self.name, *values)

    def put(self, message: PublishedMessage) -> None:
        """Add a message, and deliver it when a flow has room."""
        self._last += 1
        self._add(self._last, message)
        content = message.topic, message.flags, message.shared_parameters, message.body
        self.record(StoreChange.MESSAGE, self._last, *content)
        self.deliver_waiting()

    def restore(self, number: int, message: PublishedMessage) -> None:
        """Add a stored message; call this before the first consumer binds."""
        self._last = max(self._last, number)
        self._add(number, message)

    def mark_redelivered(self, last_delivered: int) -> None:
        """Mark stored messages up to that number as redelivered; before a bind."""
        self.last_delivered = last_delivered
        self._last = max(self._last, last_delivered)
        for queued in takewhile(lambda each: each.number <= last_delivered, self._waiting):
            queued.redelivered = True

    def note_delivered(self, number: int) -> None:
        if number > self.last_delivered:
            self.last_delivered = number
            self.record(StoreChange.DELIVERED, number)

    def _add(self, number: int, message: PublishedMessage) -> None:
        self._waiting.append(QueuedMessage(number, message))
        self.size += message.size

    def is_active(self, flow: ConsumerFlow) -> bool:
        return not self.exclusive or self.flows[:1] == [flow]

    def deliver_waiting(self) -> None:
        """Deliver as many messages as the flows have room for, round-robin among several flows."""
        waiting = self._waiting
        while waiting:
            candidates = self.flows[:1] if self.exclusive else self.flows
            flow = next((flow for flow in candidates if flow.has_room), None)
            if flow is None:
                return
            flow.deliver(waiting.popleft(), self.vpn.ids())
            if not self.exclusive:
                self.flows.remove(flow)
                self.flows.append(flow)

    def reclaim(self, flow: ConsumerFlow, last_id: int) -> None:
        """Assign messages that the client received before it reconnected to its new flow."""
        kept: deque[QueuedMessage] = deque()
        for queued in self._waiting:
            if queued.holder == flow.client and 0 < queued.message_id <= last_id:
                flow.unacked[queued.message_id] = queued
            else:
                kept.append(queued)
        flow.unacked = dict(sorted(flow.unacked.items()))
        self._waiting = kept

    def release(self, flow: ConsumerFlow) -> ConsumerFlow | None:
        """Remove `flow`, and return the flow that becomes active instead, if any."""
        was_active = self.is_active(flow)
        self.flows.remove(flow)
        self.requeue(list(flow.unacked.values()))
        flow.unacked.clear()
        return self.flows[0] if self.exclusive and was_active and self.flows else None

    def requeue(self, messages: Sequence[QueuedMessage]) -> None:
        """Put messages back in their old order, marked as redelivered."""
        for queued in messages:
            queued.redelivered = True
        if messages:
            everything = (*messages, *self._waiting)
            self._waiting = deque(sorted(everything, key=lambda each: each.number))

    def discard(self, messages: Iterable[QueuedMessage]) -> None:
        """Remove messages that are settled."""
        for queued in messages:
            self.size -= queued.message.size
            self.record(StoreChange.SETTLED, queued.number)
