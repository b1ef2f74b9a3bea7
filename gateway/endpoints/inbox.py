"""Messages that arrived and wait to be received and settled, in order; it knows no broker.

Any thread may call any method. Retried messages come first and in their old order. What the
settlements have finished is confirmed strictly in the order of arrival (MQTT 5.0, 4.6), so a
message that is retried holds back the confirmation of all that came after it.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import monotonic

from gateway.endpoints.base import Batch
from gateway.errors import GatewayError
from gateway.model.message import Message, Payload
from gateway.model.outcome import ACCEPTED, Outcome, Settlement

OVERHEAD = 256  # bytes a message takes beside its payload, about


def measure(messages: Sequence[Message]) -> int:
    """Bytes that `messages` take in memory, about."""
    sizes = [
        len(payload) if (payload := message.payload).__class__ is bytes else _weigh(payload)
        for message in messages
    ]
    return sum(sizes) + OVERHEAD * len(sizes)


def _weigh(payload: Payload) -> int:
    if isinstance(payload, Mapping):
        return sum(len(str(key)) + len(str(value)) + 64 for key, value in payload.items())
    return len(payload)


def again(message: Message) -> Message:
    """`message`, marked as one that may have been seen before."""
    if message.headers.redelivered:
        return message
    return replace(message, headers=replace(message.headers, redelivered=True))


class Inbox:
    """Mutable, since it is the meeting point of a connection's thread and its receivers.

    `confirm` is told how many more messages, counted from the oldest unconfirmed one, are
    finished for good. It is called under the inbox's lock, one call at a time and in order.
    `retried` is called when there is something to take that did not come by `put`.
    """

    def __init__(
        self,
        capacity: int,
        confirm: Callable[[int], None] | None = None,
        retried: Callable[[], None] | None = None,
    ) -> None:
        self._capacity = capacity
        self._confirm = confirm
        self._retried = retried
        lock = threading.RLock()
        self._arrived = threading.Condition(lock)  # there is something to take
        self._settled = threading.Condition(lock)  # there may be room; wakes no receiver
        self._waiting: deque[Message] = deque()
        self._next = 0  # the number of the first waiting message; numbers count arrivals
        self._again: list[tuple[int, Message]] = []
        self._unsettled: dict[int, tuple[Sequence[int], Sequence[Message]]] = {}
        self._finished: dict[int, int] = {}  # first number of a run -> the number after it
        self._frontier = 0  # all numbers below are confirmed
        self._held = 0
        self._tickets = 0
        self._failure: GatewayError | None = None

    @property
    def held(self) -> int:
        """Bytes of all messages that are not settled, received or not."""
        return self._held

    @property
    def full(self) -> bool:
        return self._held >= self._capacity

    def put(self, messages: Sequence[Message]) -> None:
        """Add what has arrived; never refuses, the caller asks `full` or waits for room."""
        size = measure(messages)
        with self._arrived:
            self._waiting.extend(messages)
            self._held += size
            self._arrived.notify_all()

    def wait_for_room(self, timeout: float) -> bool:
        """True as soon as the inbox is not full."""
        with self._settled:
            return self._settled.wait_for(lambda: not self.full, timeout)

    def take(self, limit: int, timeout: float) -> Batch | None:
        """What is there, at most `limit` messages; None after `timeout` seconds without any.

        Raises:
            GatewayError: as given to `fail`, once nothing is left to receive.
        """
        with self._arrived:
            if not self._waiting and not self._again:
                self._wait(timeout)
            if self._again:
                return self._hand_out_again(limit)
            if self._waiting:
                return self._hand_out(limit)
            if self._failure is not None:
                raise self._failure
            return None

    def fail(self, failure: GatewayError, survives: Callable[[Message], bool]) -> None:
        """The connection is gone: late settlements do nothing, of what waits `survives` stays.

        What stays can still be taken; after it `take` raises `failure`.
        """
        with self._arrived:
            if self._failure is not None:
                return
            self._failure = failure
            self._confirm = None
            self._unsettled.clear()
            self._waiting = deque(filter(survives, self._waiting))
            self._again = [(number, m) for number, m in self._again if survives(m)]
            self._held = measure([*self._waiting, *(m for _, m in self._again)])
            self._arrived.notify_all()
            self._settled.notify_all()

    def recover(self) -> None:
        """All that was received and not settled comes again; its old batches do nothing."""
        with self._arrived:
            for numbers, messages in self._unsettled.values():
                for number, message in zip(numbers, messages, strict=True):
                    insort(self._again, (number, again(message)), key=_number)
            self._unsettled.clear()
            self._tell_of_retried()

    def _wait(self, timeout: float) -> None:
        until = monotonic() + timeout
        while not self._waiting and not self._again and self._failure is None:
            left = until - monotonic()
            if left <= 0 or not self._arrived.wait(left):
                return

    def _hand_out(self, limit: int) -> Batch:
        waiting = self._waiting
        if len(waiting) <= limit:
            messages = list(waiting)
            waiting.clear()
        else:
            messages = [waiting.popleft() for _ in range(limit)]
        first = self._next
        self._next += len(messages)
        return self._batch(range(first, self._next), messages)

    def _hand_out_again(self, limit: int) -> Batch:
        due = list(islice(self._again, limit))
        del self._again[: len(due)]
        return self._batch([number for number, _ in due], [message for _, message in due])

    def _batch(self, numbers: Sequence[int], messages: Sequence[Message]) -> Batch:
        self._tickets += 1
        self._unsettled[self._tickets] = (numbers, messages)
        return Batch(messages, partial(self._settle, self._tickets))

    def _settle(self, ticket: int, settlements: Sequence[Settlement]) -> None:
        with self._settled:
            entry = self._unsettled.pop(ticket, None)
            if entry is None:
                return
            numbers, messages = entry
            if settlements.count(ACCEPTED) == len(messages) and isinstance(numbers, range):
                self._finished[numbers.start] = numbers.stop
                self._held -= measure(messages)
            else:
                self._settle_each(numbers, messages, settlements)
            self._advance()
            self._settled.notify_all()

    def _settle_each(
        self, numbers: Sequence[int], messages: Sequence[Message], settlements: Sequence[Settlement]
    ) -> None:
        for number, message, settlement in zip(numbers, messages, settlements, strict=True):
            if settlement.outcome is Outcome.RETRY:
                insort(self._again, (number, again(message)), key=_number)
            else:
                self._finished[number] = number + 1
                self._held -= measure([message])
        if self._again:
            self._tell_of_retried()

    def _tell_of_retried(self) -> None:
        self._arrived.notify_all()
        if self._retried is not None:
            self._retried()

    def _advance(self) -> None:
        before = self._frontier
        while (after := self._finished.pop(self._frontier, None)) is not None:
            self._frontier = after
        if self._frontier > before and self._confirm is not None:
            self._confirm(self._frontier - before)


def _number(entry: tuple[int, Message]) -> int:
    return entry[0]
