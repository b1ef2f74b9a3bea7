"""Messages that a sink has sent and whose answers it awaits: by batch, and in a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter, itemgetter
from threading import Condition, Lock
from time import monotonic
from typing import Final, Generic, TypeVar

from gateway.endpoints.base import Settle, unwritable
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement

CHECK_INTERVAL: Final = 0.5  # seconds between looks at a full window
T = TypeVar("T")


def write_each(
    endpoint: str, messages: Sequence[Message], write: Callable[[Message], T]
) -> tuple[list[tuple[int, T]], dict[int, Settlement]]:
    """Return what `write` makes of the messages, and the refusals of the others, by position."""
    written: list[tuple[int, T]] = []
    refused: dict[int, Settlement] = {}
    for position, message in enumerate(messages):
        try:
            written.append((position, write(message)))
        except Exception as error:  # noqa: BLE001  # of this message; the others are sent
            refused[position] = unwritable(endpoint, error)
    return written, refused


class SentBatch:
    """One batch given to a sink, settled once all its messages have a settlement.

    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self, size: int, settled: Settle, refused: Mapping[int, Settlement] | None = None
    ) -> None:
        self._settlements: list[Settlement | None] = [None] * size
        for position, settlement in (refused or {}).items():
            self._settlements[position] = settlement
        self._unanswered = size - len(refused or ())
        self._settled = settled
        self._lock = Lock()

    def settle(self, positions: Sequence[int], settlement: Settlement) -> bool:
        """Settle the messages at `positions`; a second settlement of a message is ignored.

        Return whether this call settled the last message; the caller must then call `answer`.
        """
        with self._lock:
            unsettled = [each for each in positions if self._settlements[each] is None]
            for position in unsettled:
                self._settlements[position] = settlement
            if not unsettled or not self._unanswered:
                return False
            self._unanswered -= len(unsettled)
            return not self._unanswered

    @property
    def is_complete(self) -> bool:
        """Whether each message has a settlement."""
        with self._lock:
            return not self._unanswered

    def finish(self, positions: Sequence[int], settlement: Settlement) -> None:
        """Settle the messages at `positions`, and answer after the last one."""
        if self.settle(positions, settlement):
            self.answer()

    def abandon(self) -> bool:
        """Drop the batch without an answer; return False if a message has one already."""
        with self._lock:
            if any(self._settlements) or not self._unanswered:
                return False
            self._unanswered = 0
            return True

    def settle_rest(self, settlement: Settlement) -> None:
        """Settle all messages without an answer, and answer."""
        with self._lock:
            if not self._unanswered:
                return
            self._unanswered = 0
            self._settlements = [each or settlement for each in self._settlements]
        self.answer()

    def answer(self) -> None:
        """Report the settlements to the sender of the batch; call it once."""
        settlements: Sequence[Settlement] = [each or RETRY for each in self._settlements]
        self._settled(settlements)


def finish_runs(answers: Iterable[tuple[SentBatch, int, Settlement]]) -> None:
    """Settle messages by batch and position, and answer each batch with its last one."""
    for (batch, settlement), run in groupby(answers, itemgetter(0, 2)):
        batch.finish([position for _, position, _ in run], settlement)


@dataclass(slots=True)
class SentMessage(Generic[T]):
    """A message without an answer. Mutable: what it is settled as, and the start of its wait."""

    batch: SentBatch
    position: int
    content: T
    since: float
    settlement: Settlement = ACCEPTED


_ANSWER: Final = attrgetter("batch", "settlement")


class SendWindow(Generic[T]):
    """The messages without an answer of one connection, numbered from 1 in the order of sending.

    Batches are also answered in that order: a server takes messages in their order, and may confirm
    them in another one, by which a night would judge.
    Thread-safe: guarded by self._changed.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = Condition()
        self._sent: dict[int, SentMessage[T]] = {}
        self._batches: deque[SentBatch] = deque()  # that have not been answered
        self._next = 1

    def send(
        self,
        batch: SentBatch,
        written: Sequence[tuple[int, T]],
        check: Callable[[], None],
        publish: Callable[[range], None],
    ) -> None:
        """Wait for room, and call `publish` with the numbers of the messages, in their order.

        A batch larger than the window is sent alone; one without messages is answered at once.

        Raises:
            NotConnectedError: `check` or `publish` raises it: nothing was sent.
        """
        if not written:
            batch.answer()
            return
        with self._changed:
            check()
            while self._sent and len(self._sent) + len(written) > self._size:
                self._changed.wait(CHECK_INTERVAL)
                check()
            numbers = range(self._next, self._next + len(written))
            publish(numbers)  # an answer waits for the lock
            self._next, since = numbers.stop, monotonic()
            self._batches.append(batch)
            sent = [SentMessage(batch, position, content, since) for position, content in written]
            self._sent.update(zip(numbers, sent, strict=True))

    def settle(self, numbers: Iterable[int], settlement: Settlement | None = None) -> None:
        """Settle messages by their numbers; without `settlement`, each as it has noted."""
        with self._changed:
            found = [self._sent.pop(number) for number in numbers if number in self._sent]
            for (batch, noted), run in groupby(found, _ANSWER):
                batch.settle([each.position for each in run], settlement or noted)
            complete: list[SentBatch] = []
            while self._batches and self._batches[0].is_complete:
                complete.append(self._batches.popleft())
            self._changed.notify_all()
        for batch in complete:
            batch.answer()

    def fail(self, _failure: NotConnectedError | None = None) -> None:
        """Settle every message as `RETRY`: its connection is over."""
        self.settle([number for number, _ in self.messages()], RETRY)

    @property
    def last(self) -> int:
        """Number of the message that was sent last; 0 before the first."""
        with self._changed:
            return self._next - 1

    def up_to(self, number: int) -> list[int]:
        """Return the numbers of the messages up to this one."""
        with self._changed:
            return [*takewhile(number.__ge__, self._sent)]

    def content(self, number: int) -> T | None:
        """Return the content of a message; None for one that is settled."""
        with self._changed:
            sent = self._sent.get(number)
        return None if sent is None else sent.content

    def messages(self) -> list[tuple[int, SentMessage[T]]]:
        """Return all messages with their numbers, oldest first."""
        with self._changed:
            return [*self._sent.items()]

    def note(self, is_meant: Callable[[T], bool], after: int, settlement: Settlement) -> int:
        """Note how the first message behind `after` whose content is meant is to be settled.

        Return its number; `after` where there is none.
        """
        with self._changed:
            oldest = next(iter(self._sent), self._next)
            for number in range(max(after + 1, oldest), self._next):
                if (sent := self._sent.get(number)) is not None and is_meant(sent.content):
                    sent.settlement = settlement
                    return number
        return after

    def is_overdue(self, timeout: float) -> bool:
        """Return whether the oldest message has had no answer for `timeout` seconds."""
        with self._changed:
            oldest = next(iter(self._sent.values()), None)
        return oldest is not None and monotonic() - oldest.since > timeout

    def restart_wait(self) -> None:
        """Let all messages wait from now on: the server has not read them."""
        now = monotonic()
        for _, sent in self.messages():
            sent.since = now
