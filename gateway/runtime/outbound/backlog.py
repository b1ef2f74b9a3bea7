"""The backlog of one target: batches in order. This one is in memory; the spool is on disk."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from gateway.routing.route import WhenFull
from gateway.runtime.outbound.spool_codec import PendingRow

Done: TypeAlias = Callable[[Sequence[Settlement], int], None]


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """Messages for one target.

    `done` is called once, with a final settlement for each message and the number of attempts.
    `pending_rows` is called only if the batch is spooled.
    Units: `size` in bytes.
    """

    messages: Sequence[Message]
    size: int  # counts towards the limit of the lane
    done: Done
    pending_rows: Callable[[], Sequence[PendingRow]]
    when_full: WhenFull = WhenFull.SLOW


class QueuedBatch:
    """A batch in a lane, with the settlements of its attempts.

    `number` is its place in the order of the lane. `stored` is true when the spool has it on disk,
    `resend` when it is sent again after a lost connection.
    Mutable: guarded by the lane's lock while it is in flight.
    """

    __slots__ = (
        "attempts", "batch", "number", "resend", "settlements", "solo_losses", "stored",
        "unsettled",
    )  # fmt: skip

    def __init__(
        self,
        batch: OutboundBatch,
        number: int,
        *,
        stored: bool = False,
        resend: bool = True,
        attempts: int = 0,
    ) -> None:
        self.batch = batch
        self.number = number
        self.stored = stored
        self.resend = resend
        self.attempts = attempts
        self.unsettled = list(range(len(batch.messages)))  # positions
        self.settlements: list[Settlement | None] = [None] * len(batch.messages)  # final ones
        self.solo_losses: Counter[int] = Counter()  # lost connections with only this position sent

    def messages(self, positions: Sequence[int]) -> Sequence[Message]:
        every = self.batch.messages
        if len(positions) == len(every):
            return every
        return [every[position] for position in positions]

    def settle(self, positions: Sequence[int], settlements: Sequence[Settlement]) -> bool:
        """Store the final settlements; return whether all of `settlements` are final."""
        count = len(self.settlements)
        if len(positions) == count and settlements.count(ACCEPTED) == count:
            self.settlements[:] = settlements
            self.unsettled = []
            return True
        for position, settlement in zip(positions, settlements, strict=True):
            if settlement.outcome is not Outcome.RETRY:
                self.settlements[position] = settlement
        self.unsettled = [each for each in self.unsettled if self.settlements[each] is None]
        return all(self.settlements[position] is not None for position in positions)

    def finish(self) -> None:
        """Call `done` of the batch; every message must have its final settlement."""
        self.batch.done([each for each in self.settlements if each is not None], self.attempts)


class Backlog(Protocol):
    """Batches that wait for a target, in order.

    Thread-safe: for one thread that numbers and puts, and one that takes and puts back.
    """

    on_disk: bool  # whether a batch in it counts as settled for its source

    def next_number(self) -> int:
        """The place of the next batch in the order."""

    def admit(self, batch: OutboundBatch) -> bool:
        """Wait for room, or apply the batch's `when_full`; return whether to put it now."""

    def put(self, queued: QueuedBatch) -> None:
        """Append the batch."""

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        """Put batches that were taken back at the front, in their order."""

    def take(self) -> QueuedBatch | None:
        """Remove and return the first batch; None if no batch is ready."""

    def expire(self) -> None:
        """Reject the batches that are too old; called by the thread that takes."""

    def empty(self) -> bool:
        """Return whether no batch is ready or about to be."""

    def stop(self) -> None:
        """End every waiting `admit`."""


class MemoryBacklog:
    """The backlog of a target without a spool; its lane limits the bytes.

    Thread-safe: by the atomic operations of its deque.
    """

    on_disk = False

    def __init__(self) -> None:
        self._batches: deque[QueuedBatch] = deque()

    def next_number(self) -> int:
        return 0  # the order of the calls suffices

    def admit(self, batch: OutboundBatch) -> bool:
        del batch  # its lane has waited for room
        return True

    def put(self, queued: QueuedBatch) -> None:
        self._batches.append(queued)

    def put_back(self, batches: Iterable[QueuedBatch]) -> None:
        self._batches.extendleft(reversed(list(batches)))

    def take(self) -> QueuedBatch | None:
        return self._batches.popleft() if self._batches else None

    def empty(self) -> bool:
        return not self._batches

    def expire(self) -> None:
        """Do nothing: batches in memory have no maximum age."""

    def stop(self) -> None:
        """Do nothing: `admit` never waits."""
