"""Queues and the consumers bound to them: who holds which message until it is settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeAlias

from gateway.brokers.smf.journal import Step
from gateway.brokers.smf.outbox import Outbox
from gateway.wire.smf.assured import AppOutcome
from gateway.wire.smf.messages import Published, encode_delivery

Note: TypeAlias = Callable[..., None]  # a step of the journal and what it takes


def note_nothing(step: Step, *facts: object) -> None:
    """What a broker without a store writes down."""
    del step, facts


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
        self.queue.hands_out(entry.number)
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
        note: Note = note_nothing,
    ) -> None:
        self.name, self.exclusive, self.durable = name, exclusive, durable
        self.quota, self.max_unacked = quota, max_unacked
        self.note = note
        self.handed_out = 0  # the highest number that a consumer was sent
        self.flows: list[Flow] = []
        self.topics: dict[bytes, None] = {}
        self.size = 0  # bytes of all messages, held ones included
        self.depth = 0
        self.is_shut = False
        self._waiting: deque[Entry] = deque()
        self._ids = ids
        self._last = 0  # the number of the latest message

    def has_room(self, size: int) -> bool:
        return self.size + size <= self.quota

    def put(self, message: Published) -> None:
        self._last += 1
        self._add(self._last, message)
        self.note(
            Step.MESSAGE,
            self.name,
            self._last,
            message.topic,
            message.flags,
            message.kept,
            message.body,
        )

    def contents(self) -> Iterator[tuple[int, Published]]:
        """Every message with its number, in order; those that consumers hold are among them."""
        held = (entry for flow in self.flows for entry in flow.unacked.values())
        entries = sorted((*held, *self._waiting), key=lambda entry: entry.number)
        return ((entry.number, entry.message) for entry in entries)

    def restore(self, number: int, message: Published) -> None:
        """Put back what was stored; to be done before anybody binds, as all that follows."""
        self._last = max(self._last, number)
        self._add(number, message)

    def remove(self, numbers: Collection[int]) -> None:
        """Take out messages that were stored and then settled; most of them stand in front."""
        gone, kept, settled = set(numbers), deque[Entry](), list[Entry]()
        while gone and self._waiting:
            entry = self._waiting.popleft()
            (settled if entry.number in gone else kept).append(entry)
            gone.discard(entry.number)
        self._waiting.extendleft(reversed(kept))
        self.forget(settled)

    def mark_redelivered(self, handed_out: int) -> None:
        """A consumer has seen what is stored up to that number; it is told when it comes again."""
        self.handed_out = handed_out
        for entry in takewhile(lambda each: each.number <= handed_out, self._waiting):
            entry.redelivered = True

    def hands_out(self, number: int) -> None:
        if number > self.handed_out:
            self.handed_out = number
            self.note(Step.HANDED_OUT, self.name, number)

    def _add(self, number: int, message: Published) -> None:
        self._waiting.append(Entry(number, message))
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
        numbers: list[int] = []
        for entry in entries:
            self.size -= entry.message.size
            self.depth -= 1
            numbers.append(entry.number)
        if numbers:
            self.note(Step.SETTLED, self.name, numbers)
