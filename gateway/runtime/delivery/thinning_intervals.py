"""The intervals of the names of one target: which copies are sent, and which are held back.

An *interval* of a name. Begun: by a copy that is sent, directly or at the end of the last one.
Later copies are held, of whatever route: the newest two have rows of the spool. At the end: the
newest is taken to be sent, and another interval begins; without one the name is forgotten. The
copy before it is its spare: cut when the newest is accepted, and sent when that is refused. Where
the target is away, both are sent. While a copy is taken, and until its row is deleted, newer ones
are held: none passes it. A copy that no interval holds goes behind the older ones of its name,
which are then sent at once. Without a spool nothing is held, and later copies are left out.

After a crash: no interval is known. The held copies are ordinary rows of the spool.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Final

from gateway.model.memory_size import text_size
from gateway.model.outcome import Outcome, Settlement
from gateway.runtime.delivery.thinning_candidate import Candidate, Course, Earlier

MAX_SIZE: Final = 16 << 20  # bytes of the intervals of a target
INTERVAL_SIZE: Final = 1_100  # bytes of an interval beside its name and the facts of held copies


@dataclass(slots=True)
class HeldCopy:
    """A copy of a route that waits in the spool under its `number`; `facts` are for a cut's row.

    Units: `size` in bytes on disk.
    """

    number: int
    id: bytes
    size: int
    facts: bytes
    route: str
    durable: bool = False


@dataclass(slots=True)
class Interval:
    """The interval of a name, which ends at `due`, in monotonic seconds.

    `route` is that of its newest copy, `id` that of the copy that began it, and `earlier` the batch
    of that. `before`: the copy that `held` replaced; `spare`: the same, of the copy on its way;
    `spare_goes`: that was refused. `awaited`: copies about to be held, or to follow. `out`: the
    rows of copies that were taken. `over`: it has ended, and goes on only for these copies.
    `refused`: the copy that began it is a dead letter, and the next one takes its place.
    """

    route: str
    due: float
    id: bytes
    seconds: float
    earlier: Earlier
    held: HeldCopy | None = None
    before: HeldCopy | None = None
    spare: HeldCopy | None = None
    spare_goes: bool = False
    awaited: int = 0
    out: frozenset[int] = frozenset()
    over: bool = False
    refused: bool = False

    @property
    def waits(self) -> bool:
        """Whether an older copy of the name is on its way to the disk, there, or from there."""
        return bool(self.held or self.awaited or self.out or self.spare)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the copies on disk."""
        copies = (self.before, self.held, self.spare)
        return [*self.out, *(each.number for each in copies if each is not None)]


class NameIntervals:
    """The intervals of one target, by name.

    Mutable: its owner calls one method at a time. Units: monotonic seconds.
    """

    def __init__(self, *, holds: bool) -> None:
        """`holds`: the target has a spool."""
        self._holds = holds
        self.by_name: dict[str, Interval] = {}
        self.size = 0  # bytes
        self._ends: list[tuple[float, int, str]] = []  # a heap
        self._number = count().__next__
        self._ready: dict[str, None] = {}  # names with a copy to take

    def waits(self, name: str) -> bool:
        """Return whether an older copy of the name is not decided yet."""
        interval = self.by_name.get(name)
        return interval is not None and interval.waits

    def course(self, copy: Candidate, now: float) -> Course | bytes | None:
        """Return the course of a copy, or the id of the copy that stands for it.

        None for one that no interval concerns; one of a rule by intervals begins one.
        """
        interval = self.by_name.get(copy.name)
        if interval is not None and (found := self._within(interval, copy)) is not None:
            return found
        if not copy.seconds:
            return None
        self._begin(copy, now)
        return Course.SEND

    def _within(self, interval: Interval, copy: Candidate) -> Course | bytes | None:
        """Return the course of a copy that the interval of its name concerns."""
        if not copy.seconds:
            interval.awaited += interval.waits
            return Course.FOLLOW if interval.waits else None
        if interval.refused and not interval.waits:
            interval.id, interval.earlier, interval.refused = copy.id, copy.earlier, False
            return Course.SEND
        if not self._holds:
            return interval.id
        interval.seconds, interval.route = copy.seconds, copy.route
        interval.awaited += 1
        return Course.HOLD

    def _begin(self, copy: Candidate, now: float) -> None:
        size = INTERVAL_SIZE + text_size(copy.name)
        if self.size + size > MAX_SIZE:
            return
        self.size += size
        due = now + copy.seconds
        begun = Interval(copy.route, due, copy.id, copy.seconds, copy.earlier)
        self.by_name[copy.name] = begun
        self._push(copy.name, due)

    def _push(self, name: str, due: float) -> None:
        heapq.heappush(self._ends, (due, self._number(), name))

    def answered(self, copy: Candidate, settlement: Settlement) -> None:
        """Take the final settlement of a copy that was sent."""
        interval = self.by_name.get(copy.name)
        if interval is not None and interval.id == copy.id:
            interval.refused = settlement.outcome is Outcome.REJECTED

    def has_room(self, facts: bytes) -> bool:
        """Return whether the facts of one more copy fit."""
        return self.size + len(facts) <= MAX_SIZE

    def hold(self, name: str, held: HeldCopy) -> tuple[HeldCopy, HeldCopy] | None:
        """Note the newest copy of a name; return the one cut, and the one in its place.

        That is the copy before `held`, which the target gets if `held` is refused.
        """
        interval = self.by_name[name]
        interval.awaited -= 1
        replaced = interval.before
        interval.before, interval.held = interval.held, held
        self.size += len(held.facts)
        self._drop(replaced)
        return (replaced, interval.before) if replaced and interval.before else None

    def hasten(self, name: str) -> int:
        """End the interval of a name now; return the highest number of its copies on disk, or 0."""
        if (interval := self.by_name.get(name)) is None:
            return 0
        interval.over = True
        self._settle(name, interval)
        return max(interval.numbers, default=0)

    def has_older(self, name: str, last: int) -> bool:
        """Return whether a name has a copy on disk with a number up to `last`."""
        interval = self.by_name.get(name)
        return interval is not None and min(interval.numbers, default=last + 1) <= last

    def passed(self, name: str, *, drop: bool = False) -> list[HeldCopy]:
        """Note that a copy which was to be held or to follow is not awaited any more.

        With `drop` return the held copies, which it stands for; they are forgotten.
        """
        if (interval := self.by_name.get(name)) is None:
            return []
        interval.awaited -= 1
        dropped = [each for each in (interval.before, interval.held) if each and drop]
        if drop:
            interval.before = interval.held = None
            for each in dropped:
                self._drop(each)
        self._settle(name, interval)
        return dropped

    def stored(self, name: str, held: HeldCopy) -> None:
        """The held copy is durable."""
        held.durable = True
        if (interval := self.by_name.get(name)) is not None:
            self._settle(name, interval)

    def end_due(self, now: float) -> None:
        """End the intervals that are due."""
        while self._ends and self._ends[0][0] <= now:
            due, _, name = heapq.heappop(self._ends)
            interval = self.by_name.get(name)
            if interval is not None and interval.due == due:
                interval.over = True
                self._settle(name, interval)

    def next_end(self) -> float | None:
        """Return when the next interval ends; None without one."""
        return self._ends[0][0] if self._ends else None

    def take_ready(
        self, most: int, size: int, now: float, *, both: bool = False
    ) -> list[tuple[str, HeldCopy]]:
        """Take held copies whose intervals have ended, and begin these again; and spares that go.

        They are of at most so many names, and have at most `size` bytes on disk, but at least one.
        `both`: the copy before each is sent as well, and is not a spare.
        """
        taken: list[tuple[str, HeldCopy]] = []
        for name in list(self._ready)[:most]:
            interval = self.by_name[name]
            copies = self._next(interval, both=both)
            size -= sum(each.size for each in copies)
            if taken and size < 0:
                break
            del self._ready[name]
            if not copies:
                continue  # a newer one is on its way to the disk
            if interval.spare_goes:
                interval.spare, interval.spare_goes = None, False
            else:
                interval.spare = None if both else interval.before
                interval.held = interval.before = None
                interval.over, interval.due = False, now + interval.seconds
                self._push(name, interval.due)
            for each in copies:
                self._drop(each)
            interval.id = copies[-1].id
            interval.out = frozenset(each.number for each in copies)
            taken += [(name, each) for each in copies]
        return taken

    @staticmethod
    def _next(interval: Interval, *, both: bool) -> list[HeldCopy]:
        """The copies of a name to take now."""
        if interval.spare_goes:
            return [interval.spare] if interval.spare else []
        if interval.held is None or not interval.held.durable:
            return []
        return [interval.before, interval.held] if both and interval.before else [interval.held]

    def decided(self, name: str, number: int, *, refused: bool) -> HeldCopy | None:
        """Take the outcome of a copy that was taken; return its spare if that is cut.

        The spare of one that was `refused` is sent.
        """
        interval = self.by_name.get(name)
        if interval is None or number not in interval.out or number != max(interval.out):
            return None
        spare = interval.spare
        if not refused:
            interval.spare = None
            self._drop(spare)
            return spare
        interval.spare_goes, interval.refused = spare is not None, spare is None
        return None

    def spare_of(self, name: str, number: int) -> HeldCopy | None:
        """Return the spare of a copy that was taken, if it has one."""
        interval = self.by_name.get(name)
        is_newest = interval is not None and number == max(interval.out, default=0)
        return interval.spare if interval is not None and is_newest else None

    def deleted(self, name: str, number: int) -> None:
        """The row of a copy is deleted: newer ones need not wait for it."""
        if (interval := self.by_name.get(name)) is not None:
            interval.out -= {number}
            self._settle(name, interval)

    def keep(self, routes: Collection[str], now: float) -> None:
        """End the intervals of other routes."""
        for name, interval in self.by_name.items():
            if interval.route not in routes:
                interval.seconds = 0.0
                if interval.due > now:
                    interval.due = now
                    self._push(name, now)

    def _settle(self, name: str, interval: Interval) -> None:
        """Go on with an interval that has ended, as far as its copies let it."""
        if interval.out:
            return
        if interval.spare_goes or (interval.over and interval.held is not None):
            self._ready[name] = None
        elif interval.over and not interval.awaited:
            self._forget(name)

    def _drop(self, copy: HeldCopy | None) -> None:
        """Count the facts of a copy no more."""
        self.size -= len(copy.facts) if copy else 0

    def _forget(self, name: str) -> None:
        del self.by_name[name]
        self._ready.pop(name, None)
        self.size -= INTERVAL_SIZE + text_size(name)
