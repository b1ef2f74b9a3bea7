"""Generated pairs: clocks of different speed, delays, frozen instances, a store that is away."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import pytest

from gateway.lease import lease as rules
from gateway.lease.lease import NO_RECORD, Give, Lease, Look, Pause, Record, Renew, Step, Take

SECONDS = 10.0
LENGTH = 400.0  # seconds of one run
SPEEDS = 0.008  # by which a clock runs fast or slow


@dataclass
class Instance:
    """One instance: its view of the lease, its clock, and until when it is frozen or cut off."""

    name: str
    lease: Lease
    speed: float
    offset: float
    frozen_until: float = 0.0
    away_until: float = 0.0

    def clock(self, time: float) -> float:
        return self.offset + time * self.speed


class World:
    """True time, the record in the store, and the instances with their faults."""

    def __init__(self, seed: int, make: Callable[[str], Lease]) -> None:
        self.dice = random.Random(seed)  # noqa: S311
        self.make = make
        self.time = self.held = 0.0
        self.record = NO_RECORD
        self.overlaps: list[float] = []
        self._marks, self._order = count(), count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self.instances = [self._instance(name) for name in "abc"[: self.dice.choice((2, 2, 3))]]

    def run(self) -> World:
        self._at(5.0, self._fault)
        while self._queue and self._queue[0][0] < LENGTH:
            before = self.time
            self.time, _, call = heapq.heappop(self._queue)
            self.held += (self.time - before) if self._judged() == 1 else 0.0
            call()
            self._judged()
        return self

    def _judged(self) -> int:
        """Return how many hold the lease now; more than one is an overlap."""
        holding = sum(each.lease.holds(each.clock(self.time)) for each in self.instances)
        if holding > 1:
            self.overlaps.append(self.time)
        return holding

    def _at(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.time + seconds, next(self._order), call))

    def _instance(self, name: str) -> Instance:
        speed, offset = 1 + self.dice.uniform(-SPEEDS, SPEEDS), self.dice.uniform(0, 1e6)
        one = Instance(name, self.make(name), speed, offset)
        self._at(self.dice.uniform(0, 1), partial(self._think, one))
        return one

    def _think(self, one: Instance) -> None:
        """The loop of LeaseHolder, with a delay before and after the work of the store."""
        if self.time < one.frozen_until:
            return self._at(one.frozen_until - self.time, partial(self._think, one))
        asked = one.clock(self.time)
        step = one.lease.next(asked)
        if isinstance(step, Pause):
            return self._at(step.seconds / one.speed + 1e-6, partial(self._think, one))
        longest = 9.0 if self.dice.random() < 0.1 else 0.05
        there, back = (self.dice.uniform(0, longest) for _ in range(2))
        return self._at(there, partial(self._work, one, step, asked, back))

    def _work(self, one: Instance, step: Step, asked: float, back: float) -> None:
        if self.time < one.frozen_until and self.dice.random() < 0.5:  # before the request left
            later = partial(self._work, one, step, asked, back)
            return self._at(one.frozen_until - self.time, later)
        if self.time < one.away_until:
            return self._at(2.0, partial(self._answer, one, step, asked, None, failed=True))
        return self._at(back, partial(self._answer, one, step, asked, self._apply(step, one.name)))

    def _apply(self, step: Step, name: str) -> Record | None:
        """Do what a store does at one moment; the conformance tests show that each does."""
        mark, last = str(next(self._marks)), self.record
        match step:
            case Take(seen) if replace(seen, standby={}) == last:
                self.record = Record(last.number + 1, name, mark)
            case Take():
                return None
            case Renew(number) if number == last.number:
                self.record = replace(last, renewal=mark)
            case Give(number) if number == last.number:
                self.record = replace(last, renewal=mark, given=True)
        return self.record

    def _answer(
        self, one: Instance, step: Step, asked: float, found: Record | None, *, failed: bool = False
    ) -> None:
        if self.time < one.frozen_until:
            later = partial(self._answer, one, step, asked, found, failed=failed)
            return self._at(one.frozen_until - self.time, later)
        now = one.clock(self.time)
        if failed:
            one.lease.failed(now)
        elif isinstance(step, Take):
            one.lease.taken(asked, found)
        elif isinstance(step, Look) and found is not None:
            one.lease.looked(now, found)
        elif isinstance(step, Renew) and found is not None:
            one.lease.renewed(asked, now, found)
        elif isinstance(step, Give):
            one.lease.gave()
        if one.lease.left:
            one.lease = self.make(one.name)  # its process starts again
        return self._think(one)

    def _fault(self) -> None:
        one = self.dice.choice(self.instances)
        match self.dice.randrange(4):
            case 0:
                one.frozen_until = self.time + self.dice.choice((1.0, 8.0, 12.0, 60.0))
            case 1:
                one.away_until = self.time + self.dice.choice((1.0, 8.0, 12.0, 60.0))
            case 2:
                one.lease.give()
            case _:
                for each in self.instances:
                    each.away_until = self.time + self.dice.choice((2.0, 15.0))
        self._at(self.dice.uniform(1, 40), self._fault)


def run(seed: int, kind: type[Lease] = Lease) -> World:
    return World(seed, lambda name: kind(name, SECONDS, 0.2)).run()


@pytest.mark.parametrize("part", range(2))
def test_no_two_instances_hold_the_lease_at_once(part: int) -> None:
    worlds = [run(seed) for seed in range(part * 100, part * 100 + 100)]
    assert [world.overlaps for world in worlds if world.overlaps] == []
    assert sum(world.held for world in worlds) > 0.4 * LENGTH * len(worlds)
    assert sum(world.record.number for world in worlds) > 5 * len(worlds)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(100))
def test_no_two_instances_hold_the_lease_at_once_in_many_runs(part: int) -> None:
    first = 1_000 + 1_000 * part
    assert [seed for seed in range(first, first + 1_000) if run(seed).overlaps] == []


class CountedAfterTheAnswer(Lease):
    """Broken: a renewal counts from its answer, and not from the question."""

    def renewed(self, asked: float, now: float, record: Record) -> None:  # noqa: ARG002
        super().renewed(now, now, record)


class TakenAfterTheAnswer(Lease):
    """Broken: a lease that was taken counts from a time after its answer."""

    def taken(self, asked: float, record: Record | None) -> None:
        super().taken(asked + 9.0, record)


class Impatient(Lease):
    """Broken: the time of a silent holder is counted from the first look, not from a change."""

    def looked(self, now: float, record: Record) -> None:
        since = self._unchanged_since
        super().looked(now, record)
        if since is not None:
            self._unchanged_since = since


class Renewing(Lease):
    """Broken: an answer extends the lease of an instance that is no longer a holder."""

    def renewed(self, asked: float, now: float, record: Record) -> None:
        super().renewed(asked, now, replace(record, number=self.number, holder=self.instance))


@pytest.mark.parametrize(
    "broken", [CountedAfterTheAnswer, TakenAfterTheAnswer, Impatient, Renewing]
)
def test_a_broken_rule_is_found(broken: type[Lease]) -> None:
    assert any(run(seed, broken).overlaps for seed in range(5_000))


def overlap(holder_speed: float, standby_speed: float) -> float:
    """Return the seconds in which both hold it after the last renewal; negative: a pause."""
    holder, standby = (Lease(name, SECONDS, 0.2) for name in "ab")
    record = Record(1, "a", "1")
    holder.looked(0.0, NO_RECORD)
    holder.taken(0.0, record)
    standby.looked(0.0, record)
    moments = [step / 1_000 for step in range(20_000)]
    ends = next(now for now in moments if not holder.holds(now * holder_speed))
    takes = next(now for now in moments if isinstance(standby.next(now * standby_speed), Take))
    return ends - takes


def test_the_margin_is_for_clocks_of_different_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert -0.5 < overlap(1.0, 1.0) < 0
    assert -0.5 < overlap(1 - SPEEDS, 1 + SPEEDS) < 0
    monkeypatch.setattr(rules, "MARGIN", 0.0)
    assert overlap(1 - SPEEDS, 1 + SPEEDS) > 0
