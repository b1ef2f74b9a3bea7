"""Receipts: received messages with what their broker settles them by, until each has its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from gateway.endpoints.base import Batch, Settle, Settlements
from gateway.endpoints.received_queue import MAX_BATCH, Form, ReceivedQueue, mark_redelivered
from gateway.model.memory_size import messages_size
from gateway.model.message import Message

OVERHEAD: Final = 300  # bytes of memory of an entry beside its message
T = TypeVar("T")


@dataclass(slots=True)
class ReceivedMessage(Generic[T]):
    """A message, and the `receipt` by which its broker settles it.

    Mutable: the message becomes one that is marked as redelivered.
    """

    message: Message
    receipt: T
    number: int = -1  # in a stream
    identity: str = ""


# Answers messages that were handed out together, and returns their settlements in the queue.
AnswerEach: TypeAlias = Callable[[Sequence[ReceivedMessage[T]], Settlements], Settlements]


class ReceiptQueue(ReceivedQueue[ReceivedMessage[T]]):
    """The messages of one connection with their receipts; functions are called with the lock held.

    `answer` gets those that are settled, in the order of arrival. `answer_each` gets each batch as
    it is settled, and returns what becomes of its messages here.
    """

    def __init__(
        self,
        capacity: int,
        answer: Callable[[list[ReceivedMessage[T]]], None] | None = None,
        answer_each: AnswerEach[T] | None = None,
    ) -> None:
        awaited = answer is not None or answer_each is not None
        form = Form[ReceivedMessage[T]](_measure, _mark, partial(_batch, awaited=awaited))
        super().__init__(capacity, form, self._pass_on)
        self._settling = answer_each
        self.unanswered: deque[ReceivedMessage[T]] = deque()
        self._answer = answer

    def put(self, items: Sequence[ReceivedMessage[T]]) -> None:
        """Add messages as `ReceivedQueue.put` does."""
        if self._answer is not None:
            self.unanswered.extend(items)
        super().put(items)

    def receive(self, timeout: float) -> Batch | None:
        """Return messages as `Source.receive` does."""
        return self.take(MAX_BATCH, timeout)

    def wait_for_answers(self, most: int, timeout: float) -> bool:
        """Wait until at most `most` messages are unanswered, and there is room.

        Return whether that came within `timeout` seconds; `fail` ends the wait.
        """

        def answered() -> bool:
            return len(self.unanswered) <= most and not self.full

        with self._room:
            self._room.wait_for(lambda: answered() or self.failure is not None, timeout)
            return answered() and self.failure is None

    def _pass_on(self, count: int) -> None:
        if self._answer is not None:
            self._answer([self.unanswered.popleft() for _ in range(count)])


def _batch(
    received: Sequence[ReceivedMessage[T]], settle: Settle, *, awaited: bool = True
) -> Batch:
    identities = [each.identity for each in received]
    messages = [each.message for each in received]
    return Batch(messages, settle, identities if any(identities) else (), awaited)


def _measure(received: Sequence[ReceivedMessage[T]], *, opaque: bool = True) -> int:
    messages = [each.message for each in received]
    return messages_size(messages, opaque=opaque) + OVERHEAD * len(received)


def _mark(received: ReceivedMessage[T]) -> ReceivedMessage[T]:
    received.message = mark_redelivered(received.message)
    return received
