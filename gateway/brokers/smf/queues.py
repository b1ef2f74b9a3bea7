"""Queues and the consumers bound to them: who holds which message until it is settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

from gateway.brokers.smf.outbox import Outbox
from gateway.wire.smf.assured import AppOutcome
from gateway.wire.smf.messages import Published, encode_delivery


@dataclass(slots=True, eq=False)
class Entry:
    """A message in a queue; `message_id` and `holder` are those of its last delivery."""

    number: int  # its place in the queue
    message: Published
    redelivered: bool = False
    message_id: int = 0
    holder: str = ""


class Flow:
    """One consumer of a queue. Mutable: what it holds, and what it may still be sent."""

    def __init__(self, flow_id: int, client: str, queue: Queue, outbox: Outbox) -> None:
        self.flow_id, self.client, self.queue, self.outbox = flow_id, client, queue, outbox
        self.window = 0
        self.wants_changes = False
        self.unacked: dict[int, Entry] = {}  # by message id, rising
        self._in_transit: deque[int] = deque()  # ids the client's library has not acknowledged
        self._last_id = 0

    @property
    def has_room(self) -> bool:
        return (
            len(self._in_transit) < self.window
            and len(self.unacked) < self.queue.max_unacked
            and not self.outbox.is_busy
        )

    def deliver(self, entry: Entry, message_id: int) -> None:
        """The first message of a flow has the previous id 0, or the client discards it."""
        entry.message_id, entry.holder = message_id, self.client
        self.unacked[message_id] = entry
        self._in_transit.append(message_id)
        self.outbox.post(
            encode_delivery(
                entry.message,
                self.flow_id,
                message_id,
                self._last_id,
                redelivered=entry.redelivered,
            )
        )
        self._last_id = message_id

    def acknowledge_transport(self, last_id: int) -> None:
        while self._in_transit and self._in_transit[0] <= last_id:
            self._in_transit.popleft()

    def settle(self, low: int, high: int, outcome: AppOutcome) -> list[Entry]:
        """Take `low` to `high` from the flow; ids it does not hold are passed over.

        Returns those that were rejected.
        """
        ids = [each for each in takewhile(lambda i: i <= high, self.unacked) if each >= low]
        entries = [self.unacked.pop(each) for each in ids]
        match outcome:
            case AppOutcome.ACCEPTED:
                self.queue.forget(entries)
            case AppOutcome.REJECTED:
                self.queue.forget(entries)
                return entries
            case AppOutcome.FAILED | AppOutcome.RELEASED:
                self.queue.give_back(entries)
        return []


class Queue:
    """Messages in order with the flows that take them; it outlives every connection."""

    def __init__(  # noqa: PLR0913  # the facts of a queue
        self,
        name: bytes,
        ids: Callable[[], int],
        *,
        exclusive: bool = True,
        durable: bool = True,
        quota: int,
        max_unacked: int,
    ) -> None:
        self.name, self.exclusive, self.durable = name, exclusive, durable
        self.quota, self.max_unacked = quota, max_unacked
        self.flows: list[Flow] = []
        self.topics: dict[bytes, None] = {}
        self.size = 0  # bytes of all messages, held ones included
        self.depth = 0
        self.is_shut = False
        self._waiting: deque[Entry] = deque()
        self._ids = ids
        self._numbers = count(1)

    def has_room(self, size: int) -> bool:
        return self.size + size <= self.quota

    def put(self, message: Published) -> None:
        self._waiting.append(Entry(next(self._numbers), message))
        self.size += message.size
        self.depth += 1

    def is_active(self, flow: Flow) -> bool:
        return not self.exclusive or self.flows[:1] == [flow]

    def pump(self) -> None:
        """Hand out what the flows have room for; several flows take turns."""
        waiting = self._waiting
        while waiting:
            candidates = self.flows[:1] if self.exclusive else self.flows
            flow = next((flow for flow in candidates if flow.has_room), None)
            if flow is None:
                return
            flow.deliver(waiting.popleft(), self._ids())
            if not self.exclusive:
                self.flows.remove(flow)
                self.flows.append(flow)

    def reclaim(self, flow: Flow, last_id: int) -> None:
        """Messages that a client got before it came back are still in its hands."""
        kept: deque[Entry] = deque()
        for entry in self._waiting:
            if entry.holder == flow.client and 0 < entry.message_id <= last_id:
                flow.unacked[entry.message_id] = entry
            else:
                kept.append(entry)
        flow.unacked = dict(sorted(flow.unacked.items()))
        self._waiting = kept

    def release(self, flow: Flow) -> Flow | None:
        """Take `flow` away; returns the one that becomes active because of it."""
        was_active = self.is_active(flow)
        self.flows.remove(flow)
        self.give_back(list(flow.unacked.values()))
        flow.unacked.clear()
        return self.flows[0] if self.exclusive and was_active and self.flows else None

    def give_back(self, entries: Sequence[Entry]) -> None:
        """Put messages back in their old order, to be delivered again."""
        later: list[Entry] = []
        for entry in sorted(entries, key=lambda each: each.number, reverse=True):
            entry.redelivered = True
            while self._waiting and self._waiting[0].number < entry.number:
                later.append(self._waiting.popleft())
            while later and later[-1].number > entry.number:
                self._waiting.appendleft(later.pop())
            self._waiting.appendleft(entry)
        while later:
            self._waiting.appendleft(later.pop())

    def forget(self, entries: Iterable[Entry]) -> None:
        """These are settled for good."""
        for entry in entries:
            self.size -= entry.message.size
            self.depth -= 1
