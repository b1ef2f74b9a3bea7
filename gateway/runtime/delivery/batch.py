"""Batches for one target, and the settlements that they collect over their attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from gateway.routing.route import WhenFull

Done: TypeAlias = Callable[[Sequence[Settlement], int], None]


@dataclass(frozen=True, slots=True)
class PendingRow:
    """The delivered rows of the messages at `positions`, before their outcome is known.

    Time and attempt in `rows` are placeholders until then.
    """

    positions: tuple[int, ...]
    rows: Rows
    source: str  # the endpoint the messages were received from

    def completed(self, wanted: Sequence[int], **facts: Cell) -> Rows:
        """The rows of the messages at `wanted`, a subset of `positions`, with `facts` set."""
        index = {position: at for at, position in enumerate(self.positions)}
        chosen = [index[position] for position in wanted]
        columns = {
            name: [values[at] for at in chosen] for name, values in self.rows.columns.items()
        }
        return Rows(len(chosen), {**self.rows.common, **facts}, columns)

    def spooled(self, wanted: Sequence[int], at: int) -> Rows:
        """Spooled rows of the messages at `wanted`, with the time `at` in microseconds."""
        facts: dict[str, Cell] = {"leg": Leg.SPOOLED.value, "outcome": RowOutcome.SPOOLED.value}
        facts |= {"time": at, "attempt": 1}
        return self.completed(wanted, **facts)


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
    `resend` when it is sent again after a lost connection. `attempts` has those of an earlier run.
    Mutable: owned by the lane.
    """

    __slots__ = (
        "attempts", "batch", "number", "parts", "resend", "settlements", "solo_losses", "stored",
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
        self.parts: list[Sequence[int]] = []  # positions that a search sends together, in order
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

    def settle_rest(self, settlement: Settlement) -> None:
        """Give every message without a final settlement this one."""
        self.settle(self.unsettled, [settlement] * len(self.unsettled))

    def report(self) -> None:
        """Call `done` of the batch; every message must have its final settlement.

        Only a shell calls this, when it performs `Finish`.
        """
        self.batch.done([each for each in self.settlements if each is not None], self.attempts)
