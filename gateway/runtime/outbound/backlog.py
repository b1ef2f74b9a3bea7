"""What waits for a target: parcels in order, in memory; the disk's form of it is the spool."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from gateway.routing.route import WhenFull
from gateway.runtime.outbound.spool_codec import End

Done: TypeAlias = Callable[[Sequence[Settlement], int], None]


@dataclass(frozen=True, slots=True)
class Parcel:
    """Messages for one target; `done` is called once with a final settlement for each.

    `attempts` tells `done` how often the parcel was handed over; `ends` is asked for only when the
    parcel goes to disk.
    """

    messages: Sequence[Message]
    size: int  # bytes it counts for in the lane's bound
    done: Done
    ends: Callable[[], Sequence[End]]
    when_full: WhenFull = WhenFull.SLOW


class Item:
    """A parcel that a lane has; mutable because answers come in several attempts.

    `number` is its place among all of them; `stored` says that the spool has it on disk, `kept`
    that it is sent again after a break.
    """

    __slots__ = ("alone", "attempts", "final", "kept", "number", "open_", "parcel", "stored")

    def __init__(
        self,
        parcel: Parcel,
        number: int,
        *,
        stored: bool = False,
        kept: bool = True,
        attempts: int = 0,
    ) -> None:
        self.parcel = parcel
        self.number = number
        self.stored = stored
        self.kept = kept
        self.attempts = attempts
        self.open_ = list(range(len(parcel.messages)))  # positions without a final settlement
        self.final: list[Settlement | None] = [None] * len(parcel.messages)
        self.alone: Counter[int] = Counter()  # breaks while only this position was under way

    def messages(self, positions: Sequence[int]) -> Sequence[Message]:
        every = self.parcel.messages
        if len(positions) == len(every):
            return every
        return [every[position] for position in positions]

    def settle(self, positions: Sequence[int], settlements: Sequence[Settlement]) -> bool:
        """Note the final ones among the answers; whether all answers were final."""
        if len(positions) == len(self.final) and settlements.count(ACCEPTED) == len(self.final):
            self.final[:] = settlements
            self.open_ = []
            return True
        for position, settlement in zip(positions, settlements, strict=True):
            if settlement.outcome is not Outcome.RETRY:
                self.final[position] = settlement
        self.open_ = [position for position in self.open_ if self.final[position] is None]
        return all(self.final[position] is not None for position in positions)

    def finish(self) -> None:
        """Tell the final settlements; all of them must be there."""
        self.parcel.done([each for each in self.final if each is not None], self.attempts)


class Backlog(Protocol):
    """Parcels in order. One thread at a time numbers and puts, one takes and puts back."""

    on_disk: bool  # whether what it holds is ours already, and its source settled

    def number(self) -> int:
        """The place of the next parcel."""

    def admit(self, parcel: Parcel) -> bool:
        """Wait until there is room, or do what the parcel says; whether it may be put now."""

    def put(self, item: Item) -> None:
        """Take the item behind all others."""

    def put_back(self, items: Iterable[Item]) -> None:
        """Take items that were handed out, in their order, before all others."""

    def take(self) -> Item | None:
        """Hand out the next item."""

    def tend(self) -> None:
        """Set aside what has waited too long; called by the thread that takes."""

    def empty(self) -> bool:
        """Whether there is nothing to hand out, now or soon."""

    def stop(self) -> None:
        """Let no `admit` wait any longer."""


class MemoryBacklog:
    """What waits when there is no spool; its lane bounds the bytes."""

    on_disk = False

    def __init__(self) -> None:
        self._items: deque[Item] = deque()

    def number(self) -> int:
        return 0  # the order of the calls is enough

    def admit(self, parcel: Parcel) -> bool:
        del parcel  # its lane has waited
        return True

    def put(self, item: Item) -> None:
        self._items.append(item)

    def put_back(self, items: Iterable[Item]) -> None:
        self._items.extendleft(reversed(list(items)))

    def take(self) -> Item | None:
        return self._items.popleft() if self._items else None

    def empty(self) -> bool:
        return not self._items

    def tend(self) -> None:
        """Nothing waits too long here."""

    def stop(self) -> None:
        """Nothing waits here."""
