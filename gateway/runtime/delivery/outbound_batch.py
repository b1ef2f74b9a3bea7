"""A batch for one target: its messages, and the settlements of their attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, RowOutcome
from gateway.model.memory_size import messages_size
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, Settlement
from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery
from gateway.runtime.delivery.dead_letter import DeadLetter


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
class SpoolRow:
    """`count` messages on disk, written at `time` and read at `read`, with their `size` there.

    A damaged row has no messages, and a dead `letter` of its bytes.
    Units: bytes, and microseconds since 1970-01-01 UTC.
    """

    number: int
    time: int
    size: int
    count: int
    messages: Sequence[Message]
    pending: Sequence[PendingRow] = ()
    read: int = 0
    letter: DeadLetter | None = None


class Origin(Protocol):
    """The place that a batch comes from, which gets its answers."""

    def answered(self, batch: OutboundBatch) -> None:
        """Take the final settlements of the batch; called once."""

    def pending_rows(self, batch: OutboundBatch) -> Sequence[PendingRow]:
        """The delivered rows of the batch, to be written later; called if it goes to the disk."""


class OutboundBatch:
    """Messages for one target, from the pump to the answer.

    `positions` are those in the received batch. The lane gives the batch its `number`, its place in
    the order of the lane; without `resend` it is not sent again after a lost connection. `rows` are
    those of the spool that hold it. `attempts` has those of an earlier run. `spooled_at` is the
    time at which the spool took it. `times` are those of the answers by position, of a batch that
    is not answered at once. `expires` says whether one of the messages has an expiry.
    Mutable: owned by the lane.
    Units: `size` in bytes, which count towards the limit of the lane; `times` in seconds of a
    monotonic clock.
    """

    __slots__ = (
        "attempts",
        "deliveries",
        "expires",
        "messages",
        "number",
        "origin",
        "parts",
        "positions",
        "resend",
        "rows",
        "settlements",
        "size",
        "solo_losses",
        "spooled_at",
        "times",
        "unsettled",
        "when_full",
    )

    def __init__(
        self,
        origin: Origin,
        when_full: WhenFull,
        messages: Sequence[Message],
        positions: Sequence[int] = (),
        deliveries: Sequence[Delivery] = (),
    ) -> None:
        self.origin = origin
        self.when_full = when_full
        self.messages = messages
        self.positions = positions
        self.deliveries = deliveries
        self.size = messages_size(messages)
        ends = [each.headers.expiry for each in messages]
        self.expires = ends.count(None) < len(ends)
        self.number = self.attempts = self.spooled_at = 0
        self.resend = True
        self.rows: Sequence[SpoolRow] = ()
        self.unsettled: Sequence[int] = range(len(messages))  # without a final settlement
        self.settlements = [RETRY] * len(messages)
        self.parts: list[Sequence[int]] = []  # positions that a search sends together, in order
        self.times: dict[int, float] = {}
        self.solo_losses: Counter[int] = Counter()  # lost connections with only this position sent

    def halves(self) -> Iterator[OutboundBatch]:
        """The first and the second half of the messages."""
        middle = len(self.messages) // 2
        for part in (slice(middle), slice(middle, None)):
            yield OutboundBatch(
                self.origin,
                self.when_full,
                self.messages[part],
                self.positions[part],
                self.deliveries[part],
            )

    def messages_at(self, positions: Sequence[int]) -> Sequence[Message]:
        every = self.messages
        return every if len(positions) == len(every) else [every[at] for at in positions]

    def settle(
        self, positions: Sequence[int], settlements: Sequence[Settlement], now: float | None = None
    ) -> bool:
        """Store the final settlements; return whether all of `settlements` are final.

        `now` is the time of an answer of the target.
        """
        count = len(self.settlements)
        if len(positions) == count and settlements.count(ACCEPTED) == count:
            self.settlements[:] = settlements
            self.unsettled = ()
            return True
        for position, settlement in zip(positions, settlements, strict=True):
            if settlement.outcome is not Outcome.RETRY:
                self.settlements[position] = settlement
                if now is not None:
                    self.times[position] = now
        self.unsettled = [each for each in self.unsettled if self.settlements[each] is RETRY]
        return all(self.settlements[position] is not RETRY for position in positions)

    def answered_at(self, positions: Sequence[int], at: int) -> Sequence[int]:
        """Return when the target answered for each of `positions`; `at` is the last answer.

        Units: microseconds.
        """
        last = max(self.times.values(), default=0.0)
        ages = (last - self.times.get(each, last) for each in positions)
        return [at - round(age * 1_000_000) for age in ages]

    def settle_rest(self, settlement: Settlement) -> None:
        """Give every message without a final settlement this one."""
        self.settle(self.unsettled, [settlement] * len(self.unsettled))
