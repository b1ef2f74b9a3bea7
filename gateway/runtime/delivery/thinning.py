"""Thinning: which copies for one target are sent, held back or left out, by route and name.

An *interval* of a name. Begun: by a copy that is sent, directly or at the end of the last one.
Later copies are held: the newest has a row of the spool, which replaces the one before. At the end:
the held copy is taken to be sent, and another interval begins; without one the name is forgotten.
While a copy is taken, and until its row is deleted, newer ones are held: none passes it.
Without a spool nothing is held, and later copies are left out.

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
from gateway.model.outcome import Outcome, Settlement
from gateway.routing.route import Thin

MAX_SIZE: Final = 16 << 20  # bytes of each of the two tables of a target
INTERVAL_SIZE: Final = 800  # bytes of an interval beside its name and the facts of a held copy
CHANGE_SIZE: Final = 550  # bytes of a change beside its name

Key: TypeAlias = tuple[str, str]  # route, and name at the target
Rules: TypeAlias = Collection[tuple[str, bool]]  # route, and whether by intervals
Earlier: TypeAlias = Callable[[], object]  # the batch of the first copy, while it is not settled


class Course(Enum):
    """The way of a copy that is not left out."""

    SEND = auto()
    HOLD = auto()


@dataclass(slots=True)
class HeldCopy:
    """A copy that waits in the spool under its `number`; `facts` are for the row of its cut.

    Units: `size` in bytes on disk.
    """

    number: int
    id: bytes
    size: int
    facts: bytes
    durable: bool = False


@dataclass(slots=True)
class Interval:
    """The interval of a name, which ends at `due`, in monotonic seconds.

    `id` is of the copy that began it, and `earlier` its batch. `awaited`: a copy is about to be
    held. `taken`: a held copy is on its way and was not handed to the lane yet; `sent`: its row is
    not deleted yet. `over`: it has ended, and goes on only for these copies.
    `refused`: the copy that began it is a dead letter, and the next one takes its place.
    """

    due: float
    id: bytes
    seconds: float
    earlier: Earlier
    held: HeldCopy | None = None
    awaited: bool = False
    taken: bool = False
    sent: bool = False
    over: bool = False
    refused: bool = False

    @property
    def waits(self) -> bool:
        """Whether an older copy of the name is on its way to the disk, there, or from there."""
        return self.held is not None or self.awaited or self.taken or self.sent


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

    `content` is equal for copies without a change. `earlier` returns the batch of the copy while
    that is not settled. `again`: it is known as a duplicate.
    """

    key: Key
    rule: Thin | None  # None: its route does not thin any more
    id: bytes
    earlier: Earlier
    content: bytes = b""
    again: bool = False


class Thinning:
    """The intervals and changes of the names of one target.

    Mutable: its owner calls one method at a time. Units: monotonic seconds.
    """

    def __init__(self, *, holds: bool) -> None:
        """`holds`: the target has a spool."""
        self._holds = holds
        self.intervals: dict[Key, Interval] = {}
        self.size = 0  # bytes of the intervals
        self.changes: dict[str, _Change] = {}  # by name at the target
        self._changes_size = 0
        self._ends: list[tuple[float, int, Key]] = []  # a heap
        self._number = count().__next__
        self._ready: dict[Key, None] = {}  # ended, with a held copy

    def course(self, copy: Candidate, now: float) -> Course | bytes:
        """Return the course of a copy, or the id of the copy that stands for it.

        Its caller hands copies over in the order of these calls; `hold` or `drop_held` follows for
        the newest of a name that is to be held.
        """
        self.end_intervals(now)
        if copy.rule is None or copy.rule.seconds:
            self._forget_change(copy.key[1])
        interval = self.intervals.get(copy.key)
        if interval is not None:
            ruled = copy.rule is not None and copy.rule.seconds
            if ruled and interval.refused and not interval.waits:
                interval.id, interval.earlier, interval.refused = copy.id, copy.earlier, False
                return Course.SEND
            if ruled and not self._holds:
                return interval.id
            if copy.rule is not None and copy.rule.seconds:
                interval.seconds = copy.rule.seconds  # a reload may have changed it
            if ruled or interval.waits:
                interval.awaited = True
                return Course.HOLD
        if copy.rule is None:
            return Course.SEND
        if copy.rule.seconds:
            self._begin(copy, now)
            return Course.SEND
        return self._change(copy)

    def _change(self, copy: Candidate) -> Course | bytes:
        route, name = copy.key
        found = self.changes.get(name)
        if found is None or found.route != route:
            self._forget_change(name)
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
        size = INTERVAL_SIZE + text_size(copy.key[1])
        if self.size + size > MAX_SIZE:
            return
        self.size += size
        seconds = copy.rule.seconds if copy.rule else 0.0
        self.intervals[copy.key] = Interval(now + seconds, copy.id, seconds, copy.earlier)
        self._push(copy.key, now + seconds)

    def _push(self, key: Key, due: float) -> None:
        heapq.heappush(self._ends, (due, self._number(), key))

    def answered(self, copy: Candidate, settlement: Settlement, at: tuple[int, int]) -> None:
        """Take the final settlement of a copy that was sent, from the place `at` in its lane."""
        if copy.rule is not None and copy.rule.seconds:
            interval = self.intervals.get(copy.key)
            if interval is not None and interval.id == copy.id:
                interval.refused = settlement.outcome is Outcome.REJECTED
            return
        change = self.changes.get(copy.key[1])
        if change is None or change.open is None or copy.id not in change.open:
            return  # its name had no room, or was forgotten meanwhile
        change.open.remove(copy.id)
        change.open = change.open or None
        if settlement.outcome is Outcome.REJECTED or at < change.at:
            return
        change.at = at
        accepted = settlement.outcome is Outcome.ACCEPTED
        change.accepted = (copy.content, copy.id) if accepted else None  # it may yet be refused

    # Copies that are held

    def has_room(self, facts: bytes) -> bool:
        """Return whether the facts of one more copy fit."""
        return self.size + len(facts) <= MAX_SIZE

    def hold(self, key: Key, rule: Thin | None, held: HeldCopy, now: float) -> HeldCopy | None:
        """Note the newest copy of a name; return the one that it replaces."""
        interval = self.intervals.get(key)
        if interval is None:  # a stranger to the intervals, in a table without room
            seconds = rule.seconds if rule else 0.0
            interval = Interval(now + seconds, held.id, seconds, lambda: None)
            self.intervals[key] = interval
            self.size += INTERVAL_SIZE + text_size(key[1])
            self._push(key, interval.due)
        interval.awaited = False
        replaced, interval.held = interval.held, held
        self.size += len(held.facts) - (len(replaced.facts) if replaced else 0)
        return replaced

    def drop_held(self, key: Key) -> HeldCopy | None:
        """Forget the held copy of a name, because a newer one is sent; return it."""
        interval = self.intervals.get(key)
        if interval is None:
            return None
        held, interval.held, interval.awaited = interval.held, None, False
        self.size -= len(held.facts) if held else 0
        self._settle(key, interval)
        return held

    def stored(self, key: Key, held: HeldCopy) -> None:
        """The held copy is durable."""
        held.durable = True
        if (interval := self.intervals.get(key)) is not None:
            self._settle(key, interval)

    def end_intervals(self, now: float) -> None:
        """End the intervals that are due."""
        while self._ends and self._ends[0][0] <= now:
            due, _, key = heapq.heappop(self._ends)
            interval = self.intervals.get(key)
            if interval is not None and interval.due == due:
                interval.over = True
                self._settle(key, interval)

    def next_end(self) -> float | None:
        """Return when the next interval ends; None without one."""
        return self._ends[0][0] if self._ends else None

    @property
    def has_ready(self) -> bool:
        return bool(self._ready)

    def take_ready(self, most: int, size: int, now: float) -> list[tuple[Key, HeldCopy]]:
        """Take held copies whose intervals have ended; theirs begin again.

        They are at most so many, and have at most `size` bytes on disk, but at least one.
        """
        taken: list[tuple[Key, HeldCopy]] = []
        for key in list(self._ready)[:most]:
            interval = self.intervals[key]
            if (held := interval.held) is None or not held.durable:
                del self._ready[key]  # a newer one is on its way to the disk
                continue
            size -= held.size
            if taken and size < 0:
                break
            del self._ready[key]
            self._forget_change(key[1])
            self.size -= len(held.facts)
            interval.held, interval.taken, interval.over = None, True, False
            interval.id, interval.due = held.id, now + interval.seconds
            self._push(key, interval.due)
            taken.append((key, held))
        return taken

    def handed_over(self, keys: Collection[Key]) -> None:
        """The lane has the taken copies: what it is given now comes behind them."""
        for key in keys:
            if (interval := self.intervals.get(key)) is not None:
                interval.taken, interval.sent = False, True

    def deleted(self, keys: Collection[Key]) -> None:
        """The rows of copies that were sent are deleted: newer ones need not wait for them."""
        for key in keys:
            if (interval := self.intervals.get(key)) is not None:
                interval.taken = interval.sent = False
                self._settle(key, interval)

    def keep(self, rules: Rules, now: float) -> None:
        """End what is of no rule any more."""
        for key, interval in self.intervals.items():
            if (key[0], True) not in rules:
                interval.seconds = 0.0
                if interval.due > now:
                    interval.due = now
                    self._push(key, now)
        for name in [
            each for each, change in self.changes.items() if (change.route, False) not in rules
        ]:
            self._forget_change(name)

    def forget_changes(self) -> None:
        """The target may have lost what it accepted: the next message of each name is sent."""
        self.changes.clear()
        self._changes_size = 0

    def _forget_change(self, name: str) -> None:
        if self.changes.pop(name, None) is not None:
            self._changes_size -= CHANGE_SIZE + text_size(name)

    def _settle(self, key: Key, interval: Interval) -> None:
        """Go on with an interval that has ended, as far as its copies let it."""
        if not interval.over or interval.awaited or interval.taken or interval.sent:
            return
        if interval.held is None:
            self._forget(key)
        elif interval.held.durable:
            self._ready[key] = None

    def _forget(self, key: Key) -> None:
        del self.intervals[key]
        self._ready.pop(key, None)
        self.size -= INTERVAL_SIZE + text_size(key[1])
