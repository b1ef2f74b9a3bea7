"""Received messages that wait to be handed out and settled: in order, and bounded in bytes.

Retried messages are handed out first and in their old order. Finished messages are confirmed
strictly in the order of arrival (MQTT 5.0, 4.6), so a retried message holds back the confirmation
of every later one.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from gateway.endpoints.base import Batch, Settle, Settlements
from gateway.errors import GatewayError
from gateway.model.memory_size import messages_size
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome

MAX_BATCH = 1_000  # messages that a source hands out at once
# Several messages have at most this; payloads of bytes do not count, they take little work.
MAX_BATCH_PARSED = 1 << 20

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)


class Measure(Protocol[Item_contra]):
    """Gives the bytes of items; the same items always give the same number."""

    def __call__(self, items: Sequence[Item_contra], /, *, opaque: bool = True) -> int:
        """Return the bytes; without `opaque`, those without payloads of bytes."""


class Form(NamedTuple, Generic[Item]):
    """How a queue treats its items.

    `measure` gives their bytes, and `mark` returns an item marked as redelivered. `batch` makes a
    batch for the runtime of items, with the function that settles all of them once.
    """

    measure: Measure[Item]
    mark: Callable[[Item], Item]
    batch: Callable[[Sequence[Item], Settle], Batch]


def mark_redelivered(message: Message) -> Message:
    """Return `message`, marked as one that may have been received before."""
    if message.headers.redelivered:
        return message
    return replace(message, headers=replace(message.headers, redelivered=True))


class _Unsettled(NamedTuple, Generic[Item]):
    """Items handed out; `numbers` count arrivals, `size` is in bytes."""

    numbers: Sequence[int]
    items: Sequence[Item]
    size: int


class ReceivedQueue(Generic[Item]):
    """Items between the thread that reads a connection and the threads that receive and settle.

    `confirm` gets how many more items, counted from the oldest unconfirmed one, are finished; it is
    called with the lock held, one call at a time and in order. `on_retry` is called when a retried
    item can be taken. `_settling` of a subclass is called once for what was handed out together,
    with the lock held.
    Thread-safe: guarded by one lock, which both conditions share.
    """

    def __init__(
        self,
        capacity: int,
        form: Form[Item],
        confirm: Callable[[int], None] | None = None,
        on_retry: Callable[[], None] | None = None,
    ) -> None:
        self._capacity = capacity
        self._measure, self._mark, self._batch = form
        self._confirm, self._on_retry = confirm, on_retry
        self._settling: Callable[[Sequence[Item], Settlements], Settlements] | None = None
        lock = threading.RLock()
        self._available = threading.Condition(lock)  # an item can be taken
        self._room = threading.Condition(lock)  # items were settled; wakes no receiver
        self._receivers = 0  # threads that wait for `_available`
        self._waiting: deque[Item] = deque()
        self._waiting_size = 0
        self._next = 0  # number of the first waiting item
        self._retried: list[tuple[int, Item]] = []
        self._unsettled: dict[int, _Unsettled[Item]] = {}  # by ticket
        self._tickets = 0
        self._finished: dict[int, int] = {}  # first number of a run -> the number after it
        self._unconfirmed = 0  # the lowest number that is not confirmed
        self.held = 0  # bytes of all unsettled items, handed out or not
        self.failure: GatewayError | None = None
        self.ended = False  # nothing more is added
        self._survives: Callable[[Item], bool] = lambda _item: False

    @property
    def full(self) -> bool:
        return self.held >= self._capacity

    def unsettled(self) -> list[Item]:
        """Return the items that wait, also to be retried, or are handed out and not settled."""
        with self._available:
            handed_out = [item for batch in self._unsettled.values() for item in batch.items]
            return [*self._waiting, *(item for _, item in self._retried), *handed_out]

    def end(self) -> None:
        """Add nothing from now on; what is there can be taken."""
        self.ended = True

    def put(self, items: Sequence[Item]) -> None:
        """Add items without a look at the capacity; the caller asks `full` or waits for room.

        After `fail` only those are added that survive it: the others would pass older ones.
        """
        if self.ended:
            return
        size = self._measure(items)
        with self._available:
            if self.failure is not None:
                items = [*filter(self._survives, items)]
                size = self._measure(items)
            self._waiting.extend(items)
            self._waiting_size += size
            self.held += size
            if self._receivers:
                self._available.notify_all()

    def put_when_room(self, items: Sequence[Item]) -> bool:
        """Wait for room, then add items; return False, without them, after `fail`."""
        with self._room:
            self._room.wait_for(lambda: self.failure is not None or not self.full)
            if self.failure is None:
                self.put(items)
            return self.failure is None

    def wait_for_room(self, timeout: float, *, or_retried: bool = False) -> bool:
        """Wait until the queue is not full, or until a retried item can be taken if asked for.

        Return whether that came within `timeout` seconds.
        """
        with self._room:
            return self._room.wait_for(
                lambda: self.held < self._capacity or (or_retried and bool(self._retried)), timeout
            )

    def take(self, limit: int, timeout: float) -> Batch | None:
        """Return a batch of at most `limit` items.

        None after `timeout` seconds without any.

        Several items have at most `MAX_BATCH_PARSED` bytes in their names and headers, so that what
        follows long ones does not wait for all of them.

        Raises:
            GatewayError: as given to `fail`, once nothing is left to take.
        """
        with self._available:
            if timeout > 0 and not self._waiting and not self._retried:
                self._receivers += 1
                self._available.wait_for(
                    lambda: self._waiting or self._retried or self.failure is not None, timeout
                )
                self._receivers -= 1
            if self._retried:
                taken = self._take_retried(limit)
            elif self._waiting:
                taken = self._take_waiting(limit)
            elif self.failure is not None:
                raise self.failure
            else:
                return None
            self._tickets += 1
            self._unsettled[self._tickets] = taken
            return self._batch(taken.items, partial(self._settle, self._tickets))

    def fail(
        self, failure: GatewayError, survives: Callable[[Item], bool] = lambda _item: False
    ) -> None:
        """Drop what the broker delivers again; later settlements have no effect.

        Items for which `survives` is true can still be taken; after them `take` raises `failure`.
        """
        with self._available:
            if self.failure is not None:
                return
            self.failure, self._survives = failure, survives
            self._confirm = None
            self._unsettled.clear()
            self._waiting = deque(filter(survives, self._waiting))
            self._retried = [each for each in self._retried if survives(each[1])]
            self._waiting_size = self._measure(self._waiting)
            self.held = self._waiting_size + self._measure([item for _, item in self._retried])
            self._available.notify_all()
            self._room.notify_all()

    def recover(self) -> None:
        """Retry everything that was handed out; settling it later has no effect."""
        with self._available:
            for batch in self._unsettled.values():
                for number, item in zip(batch.numbers, batch.items, strict=True):
                    self._retry(number, item)
            self._unsettled.clear()
            self._announce_retried()

    def _take_waiting(self, limit: int) -> _Unsettled[Item]:
        """Take the first waiting items: at most `limit`, and `MAX_BATCH_PARSED`."""
        waiting, size = self._waiting, self._waiting_size
        items = [*islice(waiting, limit)]
        if len(items) < len(waiting):
            size = self._measure(items)
        while size > MAX_BATCH_PARSED and len(items) > 1:
            if self._measure(items, opaque=False) <= MAX_BATCH_PARSED:
                break
            items = items[: len(items) // 2]
            size = self._measure(items)
        for _ in items:
            waiting.popleft()
        self._waiting_size -= size
        first = self._next
        self._next += len(items)
        return _Unsettled(range(first, self._next), items, size)

    def _take_retried(self, limit: int) -> _Unsettled[Item]:
        due = self._retried[:limit]
        del self._retried[:limit]
        items = [item for _, item in due]
        return _Unsettled([number for number, _ in due], items, self._measure(items))

    def _settle(self, ticket: int, settlements: Settlements) -> None:
        with self._room:
            batch = self._unsettled.pop(ticket, None)
            if batch is None:
                return
            if self._settling is not None:
                settlements = self._settling(batch.items, settlements)
            numbers = batch.numbers
            if settlements.count(ACCEPTED) == len(numbers) and isinstance(numbers, range):
                self._finished[numbers.start] = numbers.stop
                self.held -= batch.size
            else:
                self._settle_each(batch, settlements)
            before = self._unconfirmed
            while (after := self._finished.pop(self._unconfirmed, None)) is not None:
                self._unconfirmed = after
            if self._unconfirmed > before and self._confirm is not None:
                self._confirm(self._unconfirmed - before)
            self._room.notify_all()

    def _settle_each(self, batch: _Unsettled[Item], settlements: Settlements) -> None:
        finished: list[Item] = []
        for number, item, settlement in zip(batch.numbers, batch.items, settlements, strict=True):
            if settlement.outcome is Outcome.RETRY:
                self._retry(number, item)
            else:
                self._finished[number] = number + 1
                finished.append(item)
        self.held -= self._measure(finished)
        if self._retried:
            self._announce_retried()

    def _retry(self, number: int, item: Item) -> None:
        insort(self._retried, (number, self._mark(item)), key=itemgetter(0))

    def _announce_retried(self) -> None:
        self._available.notify_all()
        if self._on_retry is not None:
            self._on_retry()


def message_queue(
    capacity: int,
    confirm: Callable[[int], None] | None = None,
    on_retry: Callable[[], None] | None = None,
    *,
    awaited: bool = True,
) -> ReceivedQueue[Message]:
    """Return a queue of messages that holds about `capacity` bytes.

    Without `awaited` its broker does not learn of settlements.
    """
    form = Form(messages_size, mark_redelivered, partial(Batch, awaited=awaited))
    return ReceivedQueue(capacity, form, confirm, on_retry)
