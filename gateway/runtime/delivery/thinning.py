"""Thinning: which copies for one target are sent, held back or left out, by their name there.

An *interval* of a name. Begun: by a copy that is sent, directly or at the end of the last one.
Later copies are held, of whatever route: the newest two have rows of the spool. At the end: the
newest is taken to be sent, and another interval begins; without one the name is forgotten. The
copy before it is its spare: cut when the newest is accepted, and sent when that is refused. Where
the target is away, both are sent. While a copy is taken, and until its row is deleted, newer ones
are held: none passes it. A copy that no interval holds goes behind the older ones of its name,
which are then sent at once. Without a spool nothing is held, and later copies are left out.

A *change* of a name. Known: the copy that the target accepted last. Left out: an equal one, while
no copy of the name waits for its answer. Forgotten: at each connection of the target, which may
have begun empty; when another route sends under the name; when its rule is gone. A name without
room is sent.

After a crash: nothing is known of either. The held copies are ordinary rows of the spool.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from typing import Final, TypeAlias

from gateway.model.memory_size import text_size
from gateway.model.outcome import REPEAT, Outcome, Settlement
from gateway.routing.route import Thin

MAX_SIZE: Final = 16 << 20  # bytes of each of the two tables of a target
INTERVAL_SIZE: Final = 1_100  # bytes of an interval beside its name and the facts of held copies
CHANGE_SIZE: Final = 550  # bytes of a change beside its name

Rules: TypeAlias = Collection[tuple[str, bool]]  # route, and whether by intervals
Earlier: TypeAlias = Callable[[], object]  # the batch of the first copy, while it is not settled


class Course(Enum):
    """The way of a copy that is not left out."""

    SEND = auto()
    HOLD = auto()
    FOLLOW = auto()  # it is sent behind the older copies of its name


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


@dataclass(slots=True)
class _Change:
    """The copy of a name that a target accepted last, and those without an answer, by their ids.

    All are of one route.
    """

    route: str
    accepted: tuple[bytes, bytes] | None = None  # content, and id
    at: tuple[int, int] = (0, 0)  # number of its batch, and place in it
    open: set[bytes] | None = None  # None: most names have none


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy of a target with the facts that decide its course.

    `name` is that at the target, and `content` equal for copies without a change. `earlier` returns
    the batch of the copy while that is not settled. `again`: it is known as a duplicate.
    """

    name: str
    route: str
    rule: Thin | None  # None: its route does not thin
    id: bytes
    earlier: Earlier
    content: bytes = b""
    again: bool = False

    @property
    def seconds(self) -> float:
        """The interval of its rule; 0 without one."""
        return self.rule.seconds if self.rule else 0.0


class Thinning:
    """The intervals and changes of the names of one target.

    Mutable: its owner calls one method at a time. Units: monotonic seconds.
    """

    def __init__(self, *, holds: bool) -> None:
        """`holds`: the target has a spool."""
        self._holds = holds
        self.intervals: dict[str, Interval] = {}
        self.size = 0  # bytes of the intervals
        self.changes: dict[str, _Change] = {}
        self._changes_size = 0
        self._ends: list[tuple[float, int, str]] = []  # a heap
        self._number = count().__next__
        self._ready: dict[str, None] = {}  # names with a copy to take

    def course(self, copy: Candidate, now: float) -> Course | bytes:
        """Return the course of a copy, or the id of the copy that stands for it.

        Its caller hands copies over in the order of these calls; `hold` or `passed` follows for
        each that is to be held, or to follow.
        """
        self.end_intervals(now)
        interval = self.intervals.get(copy.name)
        if copy.rule is None or copy.seconds or (interval is not None and interval.waits):
            self.forget_change(copy.name)
        if interval is not None and (found := self._within(interval, copy)) is not None:
            return found
        if copy.rule is None:
            return Course.SEND
        if copy.seconds:
            self._begin(copy, now)
            return Course.SEND
        return self._change(copy)

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

    def _change(self, copy: Candidate) -> Course | bytes:
        route, name = copy.route, copy.name
        found = self.changes.get(name)
        if found is None or found.route != route:
            self.forget_change(name)
            size = CHANGE_SIZE + text_size(name)
            if self._changes_size + size > MAX_SIZE:
                return Course.SEND
            self._changes_size += size
            found = self.changes[name] = _Change(route)
        if found.accepted is not None:
            content, accepted = found.accepted
            if copy.again or (not found.open and content == copy.content):
                return accepted
        if found.open is None:
            found.open = set()
        found.open.add(copy.id)
        return Course.SEND

    def _begin(self, copy: Candidate, now: float) -> None:
        size = INTERVAL_SIZE + text_size(copy.name)
        if self.size + size > MAX_SIZE:
            return
        self.size += size
        due = now + copy.seconds
        begun = Interval(copy.route, due, copy.id, copy.seconds, copy.earlier)
        self.intervals[copy.name] = begun
        self._push(copy.name, due)

    def _push(self, name: str, due: float) -> None:
        heapq.heappush(self._ends, (due, self._number(), name))

    def answered(self, copy: Candidate, settlement: Settlement, at: tuple[int, int]) -> None:
        """Take the final settlement of a copy that was sent, from the place `at` in its lane."""
        if copy.seconds:
            interval = self.intervals.get(copy.name)
            if interval is not None and interval.id == copy.id:
                interval.refused = settlement.outcome is Outcome.REJECTED
            return
        change = self.changes.get(copy.name)
        if change is None or change.open is None or copy.id not in change.open:
            return  # its name had no room, or was forgotten meanwhile
        change.open.remove(copy.id)
        change.open = change.open or None
        if settlement.outcome is Outcome.REJECTED or at < change.at:
            return
        change.at = at
        # A spooled one may yet be refused; a repeat came before what others sent meanwhile.
        is_last = settlement.outcome is Outcome.ACCEPTED and settlement.rule != REPEAT
        change.accepted = (copy.content, copy.id) if is_last else None

    # Copies that are held

    def has_room(self, facts: bytes) -> bool:
        """Return whether the facts of one more copy fit."""
        return self.size + len(facts) <= MAX_SIZE

    def hold(self, name: str, held: HeldCopy) -> tuple[HeldCopy, HeldCopy] | None:
        """Note the newest copy of a name; return the one cut, and the one in its place.

        That is the copy before `held`, which the target gets if `held` is refused.
        """
        interval = self.intervals[name]
        interval.awaited -= 1
        replaced = interval.before
        interval.before, interval.held = interval.held, held
        self.size += len(held.facts)
        self._drop(replaced)
        return (replaced, interval.before) if replaced and interval.before else None

    def hasten(self, name: str) -> int:
        """End the interval of a name now; return the highest number of its copies on disk, or 0."""
        if (interval := self.intervals.get(name)) is None:
            return 0
        interval.over = True
        self._settle(name, interval)
        return max(interval.numbers, default=0)

    def has_older(self, name: str, last: int) -> bool:
        """Return whether a name has a copy on disk with a number up to `last`."""
        interval = self.intervals.get(name)
        return interval is not None and min(interval.numbers, default=last + 1) <= last

    def passed(self, name: str, *, drop: bool = False) -> list[HeldCopy]:
        """Note that a copy which was to be held or to follow is not awaited any more.

        With `drop` return the held copies, which it stands for; they are forgotten.
        """
        if (interval := self.intervals.get(name)) is None:
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
        if (interval := self.intervals.get(name)) is not None:
            self._settle(name, interval)

    def end_intervals(self, now: float) -> None:
        """End the intervals that are due."""
        while self._ends and self._ends[0][0] <= now:
            due, _, name = heapq.heappop(self._ends)
            interval = self.intervals.get(name)
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
        `both`: the copy before each is sent as well, and is no spare.
        """
        taken: list[tuple[str, HeldCopy]] = []
        for name in list(self._ready)[:most]:
            interval = self.intervals[name]
            copies = self._next(interval, both=both)
            size -= sum(each.size for each in copies)
            if taken and size < 0:
                break
            del self._ready[name]
            if not copies:
                continue  # a newer one is on its way to the disk
            self.forget_change(name)
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
        interval = self.intervals.get(name)
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
        interval = self.intervals.get(name)
        is_newest = interval is not None and number == max(interval.out, default=0)
        return interval.spare if interval is not None and is_newest else None

    def deleted(self, name: str, number: int) -> None:
        """The row of a copy is deleted: newer ones need not wait for it."""
        if (interval := self.intervals.get(name)) is not None:
            interval.out -= {number}
            self._settle(name, interval)

    def keep(self, rules: Rules, now: float) -> None:
        """End what is of no rule any more."""
        for name, interval in self.intervals.items():
            if (interval.route, True) not in rules:
                interval.seconds = 0.0
                if interval.due > now:
                    interval.due = now
                    self._push(name, now)
        for name in [
            each for each, change in self.changes.items() if (change.route, False) not in rules
        ]:
            self.forget_change(name)

    def forget_changes(self) -> None:
        """The target may have lost what it accepted: the next message of each name is sent."""
        self.changes.clear()
        self._changes_size = 0

    def forget_change(self, name: str) -> None:
        """The target may have another value of a name: the next message of it is sent."""
        if self.changes.pop(name, None) is not None:
            self._changes_size -= CHANGE_SIZE + text_size(name)

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
        del self.intervals[name]
        self._ready.pop(name, None)
        self.size -= INTERVAL_SIZE + text_size(name)
