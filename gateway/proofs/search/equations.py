"""Which source names a flow turns into names of a given pattern: equations between levels.

The answer never lacks a name. It may have some too many where a wildcard is used twice, where two
globs meet in one level, behind a function, or where there are very many ways to divide a name;
whoever needs a certain name tries it (`witness`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TypeAlias

from gateway.model.chain import ANY_ONE, admits
from gateway.model.matching import glob_matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import Cut, Flow, Made, Part, Seq, Var, parts_of, spread

MOST_PARTS = 200  # of both sides together; an equation of more is not solved
MOST_WAYS = 16  # so many are told apart; when there are more, the whole pattern is one of them

Bound: TypeAlias = Mapping[int, tuple[Level, ...]]  # an unknown, and what is left for it
FREE: Bound = MappingProxyType({})


def restricted(flow: Flow, goal: Pattern) -> list[Pattern]:
    """The patterns of the names that `flow` takes and turns into names of `goal`."""
    found, complete = _solved(flow, goal)
    return found if complete else [*found, flow.pattern]


def restricted_exactly(flow: Flow, goal: Pattern) -> list[Pattern] | None:
    """The same without a name too many; None when that is not certain.

    Levels that no wildcard sees anywhere (`Shy.anywhere`) are inboxes, to which nothing is sent.
    """
    wild = bool(goal.shy.first) and isinstance(next(iter(goal.levels), None), AnyOne | AnyMany)
    fixed = bool(flow.made) and _is_fixed(flow.made[0])
    if (wild and not fixed) or any(isinstance(x, Glob) for x in goal.levels):
        return None
    parts = [
        part
        for level in flow.made
        for part in (level if isinstance(level, tuple) else (level,))
        if not isinstance(part, str)
    ]
    if len(set(parts)) < len(parts) or any(isinstance(part, Cut) for part in parts):
        return None
    found, complete = _solved(flow, goal)
    return found if complete else None


def _solved(flow: Flow, goal: Pattern) -> tuple[list[Pattern], bool]:
    parts = sum(len(parts_of(level)) for level in flow.made)
    if parts + len(goal.levels) > MOST_PARTS:
        return [], False
    ways = _Equation(flow.pattern, flow.made, goal.levels).ways(0, 0, {})
    found = [with_bound(flow.pattern, bound) for bound in islice(ways, MOST_WAYS)]
    return list(dict.fromkeys(found)), next(ways, None) is None


def _is_fixed(made: Made) -> bool:
    return isinstance(made, tuple) and all(isinstance(part, str) for part in made)


def with_bound(pattern: Pattern, bound: Bound) -> Pattern:
    levels = [each for at, level in enumerate(pattern.levels) for each in bound.get(at, (level,))]
    return Pattern(tuple(levels), pattern.shy)


def holding(
    pattern: Pattern, levels: Sequence[str], places: Iterable[int], bound: Bound = FREE
) -> Pattern:
    """`pattern` with what the name `levels` has in `places` written out, and `bound` elsewhere."""
    groups = spread(pattern, levels)
    return with_bound(pattern, {**bound, **{at: tuple(map(Literal, groups[at])) for at in places}})


@dataclass(frozen=True, slots=True)
class _Equation:
    """What is made on the left, a pattern to meet on the right."""

    pattern: Pattern
    made: tuple[Made, ...]
    goal: tuple[Level, ...]

    def ways(self, left: int, right: int, bound: Bound) -> Iterator[Bound]:
        """All that the unknowns can be, when the sides meet from `left` and `right` on."""
        spend(1)
        if left == len(self.made):
            if all(level == AnyMany(0) for level in self.goal[right:]):
                yield bound
            return
        made = self.made[left]
        if isinstance(made, Seq):
            yield from self._run(made.at, left, right, bound)
        elif isinstance(made, Cut):
            yield from self._behind(made, left, right, bound)
        elif right < len(self.goal):
            yield from self._level(made, left, right, bound)

    def _level(
        self, made: tuple[Part, ...], left: int, right: int, bound: Bound
    ) -> Iterator[Bound]:
        goal = self.goal[right]
        if not isinstance(goal, AnyMany):
            for found in self._one(made, goal, bound):
                yield from self.ways(left + 1, right + 1, found)
            return
        for found in self._one(made, ANY_ONE, bound):
            yield from self.ways(left + 1, right, found)
            if goal.minimum:
                yield from self.ways(left + 1, right + 1, found)
        if not goal.minimum:
            yield from self.ways(left, right + 1, bound)

    def _run(self, at: int, left: int, right: int, bound: Bound) -> Iterator[Bound]:
        """A rest wildcard takes some of the goal's levels, of the last perhaps a part."""
        for stop in range(right, len(self.goal) + 1):
            run = self.goal[right:stop]
            yield from self._bind_run(at, run, left + 1, stop, bound)
            if stop < len(self.goal) and isinstance(self.goal[stop], AnyMany):
                yield from self._bind_run(at, (*run, AnyMany(0)), left + 1, stop, bound)

    def _behind(self, cut: Cut, left: int, right: int, bound: Bound) -> Iterator[Bound]:
        """Levels behind a function: those that it keeps (`upper` keeps `X`) first, then any."""
        for stop in range(right, len(self.goal) + 1):
            if len(cut.places) == 1 and self._is_rest(cut.places[0]):
                run = self.goal[right:stop]
                yield from self._bind_run(cut.places[0], run, left + 1, stop, bound)
        for stop in range(right, len(self.goal) + 1):
            yield from self.ways(left + 1, stop, bound)

    def _bind_run(
        self, at: int, run: tuple[Level, ...], left: int, right: int, bound: Bound
    ) -> Iterator[Bound]:
        least = self.pattern.levels[at]
        if isinstance(least, AnyMany) and least.minimum and set(run) <= {AnyMany(0)}:
            if not run:
                return
            run = (AnyMany(1),)
        for place, level in enumerate(run):
            if isinstance(level, Literal) and not self._admits(at, level.text, place):
                return
        old = bound.get(at)
        if old is None:
            yield from self.ways(left, right, {**bound, at: run})
        elif old == run or not all(isinstance(level, Literal) for level in (*old, *run)):
            yield from self.ways(left, right, bound)

    def _is_rest(self, at: int) -> bool:
        return isinstance(self.pattern.levels[at], AnyMany)

    def _admits(self, at: int, text: str, place: int = 0) -> bool:
        level = self.pattern.levels[at]
        step = ANY_ONE if isinstance(level, AnyMany) else level
        return admits(step, text, self.pattern.shy, first=at == 0 and place == 0)

    def _one(self, made: tuple[Part, ...], goal: Level, bound: Bound) -> Iterator[Bound]:
        """All that the unknowns of one level can be."""
        match goal:
            case Literal(text):
                yield from self._divided(made, text, bound)
            case Glob():
                yield from self._narrowed(made, goal, bound)
            case _:
                yield bound

    def _narrowed(self, made: tuple[Part, ...], goal: Glob, bound: Bound) -> Iterator[Bound]:
        match made:
            case [str() as text]:
                if glob_matches(goal, text):
                    yield bound
            case [Var(at)]:
                (now,) = bound.get(at, (self.pattern.levels[at],))
                if isinstance(now, AnyOne):
                    yield {**bound, at: (goal,)}
                elif not isinstance(now, Literal) or glob_matches(goal, now.text):
                    yield bound
            case _:
                yield bound

    def _divided(self, made: tuple[Part, ...], text: str, bound: Bound) -> Iterator[Bound]:
        """`text` divided among the parts of a level in every way."""
        if not made:
            if not text:
                yield bound
            return
        part, *behind = made
        if isinstance(part, str):
            if text.startswith(part):
                yield from self._divided(tuple(behind), text.removeprefix(part), bound)
            return
        for size in range(len(text), -1, -1) if behind else (len(text),):
            for found in self._bind(part, text[:size], bound):
                yield from self._divided(tuple(behind), text[size:], found)

    def _bind(self, part: Var | Cut, text: str, bound: Bound) -> Iterator[Bound]:
        if isinstance(part, Cut):
            if len(part.places) == 1 and part.places[0] not in bound:
                yield from self._bind(Var(part.places[0]), text, bound)
            yield bound
        elif self._admits(part.at, text):
            (now,) = bound.get(part.at, (self.pattern.levels[part.at],))
            if (
                isinstance(now, AnyOne | AnyMany)
                or now == Literal(text)
                or (isinstance(now, Glob) and glob_matches(now, text))
            ):
                yield {**bound, part.at: (Literal(text),)}
