"""Solve equations between levels: the source names that a flow translates to a given pattern.

The result never lacks a name. It may contain further names: when a wildcard is used twice, when
two globs meet in one level, behind a function, or when there are very many solutions. The caller
translates a name to be certain (`translated_name`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

from gateway.model.matching import ANY_ONE, admits, glob_matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import (
    Flow,
    LevelVariable,
    LossyCall,
    Part,
    RestVariable,
    TargetLevel,
    levels_by_position,
)

MAX_PARTS = 200  # of both sides together; larger equations are not solved
MAX_SOLUTIONS = 16  # when there are more, the whole pattern is one of them

# The levels that are bound to a variable, by its position, or to a field, by its name.
Bindings: TypeAlias = Mapping[Any, tuple[Level, ...]]
NO_BINDINGS: Bindings = MappingProxyType({})


def source_patterns(flow: Flow, goal: Pattern) -> list[Pattern]:
    """Return patterns of the source names that `flow` translates to names of `goal`."""
    found, complete = _solve(flow, goal)
    return found if complete else [*found, flow.pattern]


def exact_source_patterns(flow: Flow, goal: Pattern) -> list[Pattern] | None:
    """Return the patterns without a further name; None when that is not certain.

    Levels that no wildcard matches (`WildcardExclusions.whole_levels`) are inboxes; a flow never
    makes one.
    """
    start = next(iter(goal.levels), None)
    wild = bool(goal.exclusions.first_level_prefixes) and isinstance(start, AnyOne | AnyMany)
    first = flow.target_levels[0] if flow.target_levels else None
    fixed = isinstance(first, tuple) and all(isinstance(part, str) for part in first)
    if (wild and not fixed) or any(isinstance(x, Glob) for x in goal.levels):
        return None
    if flow.repeats_variable or flow.lossy_calls:
        return None
    found, complete = _solve(flow, goal)
    return found if complete else None


def _solve(flow: Flow, goal: Pattern) -> tuple[list[Pattern], bool]:
    if len(flow.parts) + len(goal.levels) > MAX_PARTS:
        return [], False
    solutions = _Equation(flow.pattern, flow.target_levels, goal.levels).solutions(0, 0, {})
    found = [bind(flow.pattern, bound) for bound in islice(solutions, MAX_SOLUTIONS)]
    return list(dict.fromkeys(found)), next(solutions, None) is None


def bind(pattern: Pattern, bound: Bindings) -> Pattern:
    """Replace the variables of `pattern` by their bound levels."""
    levels = [each for at, level in enumerate(pattern.levels) for each in bound.get(at, (level,))]
    return Pattern(tuple(levels), pattern.exclusions)


def bind_to_name(
    pattern: Pattern, levels: Sequence[str], positions: Iterable[int], bound: Bindings = NO_BINDINGS
) -> Pattern:
    """Bind the variables in `positions` to their levels in a name, and others by `bound`."""
    groups = levels_by_position(pattern, levels)
    return bind(pattern, {**bound, **{at: tuple(map(Literal, groups[at])) for at in positions}})


@dataclass(frozen=True, slots=True)
class _Equation:
    """Target levels on the left, the pattern to match on the right."""

    pattern: Pattern
    target_levels: tuple[TargetLevel, ...]
    goal: tuple[Level, ...]

    def solutions(self, left: int, right: int, bound: Bindings) -> Iterator[Bindings]:
        """Yield the bindings with which the sides are equal from `left` and `right` on."""
        spend(1)
        if left == len(self.target_levels):
            if all(level == AnyMany(0) for level in self.goal[right:]):
                yield bound
            return
        level = self.target_levels[left]
        if isinstance(level, RestVariable):
            yield from self._match_rest(level.position, left, right, bound)
        elif isinstance(level, LossyCall):
            yield from self._skip_call(level, left, right, bound)
        elif right < len(self.goal):
            yield from self._level(level, left, right, bound)

    def _level(
        self, parts: tuple[Part, ...], left: int, right: int, bound: Bindings
    ) -> Iterator[Bindings]:
        goal = self.goal[right]
        if not isinstance(goal, AnyMany):
            for found in self._match_level(parts, goal, bound):
                yield from self.solutions(left + 1, right + 1, found)
            return
        for found in self._match_level(parts, ANY_ONE, bound):
            yield from self.solutions(left + 1, right, found)
            if goal.minimum:
                yield from self.solutions(left + 1, right + 1, found)
        if not goal.minimum:
            yield from self.solutions(left, right + 1, bound)

    def _match_rest(
        self, position: int, left: int, right: int, bound: Bindings
    ) -> Iterator[Bindings]:
        """Bind a rest wildcard to some of the goal's levels, of the last possibly a part."""
        for stop in range(right, len(self.goal) + 1):
            run = self.goal[right:stop]
            yield from self._bind_levels(position, run, left + 1, stop, bound)
            if stop < len(self.goal) and isinstance(self.goal[stop], AnyMany):
                yield from self._bind_levels(position, (*run, AnyMany(0)), left + 1, stop, bound)

    def _skip_call(
        self, call: LossyCall, left: int, right: int, bound: Bindings
    ) -> Iterator[Bindings]:
        """Skip levels behind a function: first levels that it keeps (`upper` keeps `X`)."""
        stops = range(right, len(self.goal) + 1)
        position = call.positions[0] if len(call.positions) == 1 else None
        if position is not None and isinstance(self.pattern.levels[position], AnyMany):
            for stop in stops:
                yield from self._bind_levels(position, self.goal[right:stop], left + 1, stop, bound)
        for stop in stops:
            yield from self.solutions(left + 1, stop, bound)

    def _bind_levels(
        self, position: int, run: tuple[Level, ...], left: int, right: int, bound: Bindings
    ) -> Iterator[Bindings]:
        variable = self.pattern.levels[position]
        if isinstance(variable, AnyMany) and variable.minimum and set(run) <= {AnyMany(0)}:
            if not run:
                return
            run = (AnyMany(1),)
        for offset, level in enumerate(run):
            if isinstance(level, Literal) and not self._admits(position, level.text, offset):
                return
        old = bound.get(position)
        if old is None:
            yield from self.solutions(left, right, {**bound, position: run})
        elif old == run or not all(isinstance(level, Literal) for level in (*old, *run)):
            yield from self.solutions(left, right, bound)

    def _admits(self, position: int, text: str, offset: int = 0) -> bool:
        level = self.pattern.levels[position]
        step = ANY_ONE if isinstance(level, AnyMany) else level
        return admits(step, text, self.pattern.exclusions, first=position == 0 and offset == 0)

    def _match_level(
        self, parts: tuple[Part, ...], goal: Level, bound: Bindings
    ) -> Iterator[Bindings]:
        """Yield the bindings of the variables of one level."""
        match goal, parts:
            case Literal(text), _:
                yield from self._divide(parts, text, bound)
            case Glob(), (str(text),):
                if glob_matches(goal, text):
                    yield bound
            case Glob(), (LevelVariable(position),):
                yield from self._bind_glob(position, self.pattern.levels[position], goal, bound)
            case Glob(), (LossyCall(field=str(name)),) if name:
                yield from self._bind_glob(name, AnyOne(), goal, bound)
            case _:
                yield bound

    @staticmethod
    def _bind_glob(
        key: int | str, variable: Level, goal: Glob, bound: Bindings
    ) -> Iterator[Bindings]:
        """Bind a variable, or a field, to a part of a level."""
        (current,) = bound.get(key, (variable,))
        if isinstance(current, AnyOne):
            yield {**bound, key: (goal,)}
        elif not isinstance(current, Literal) or glob_matches(goal, current.text):
            yield bound

    def _divide(self, parts: tuple[Part, ...], text: str, bound: Bindings) -> Iterator[Bindings]:
        """Divide `text` among the parts of a level in every way."""
        if not parts:
            if not text:
                yield bound
            return
        part, *others = parts
        if isinstance(part, str):
            if text.startswith(part):
                yield from self._divide(tuple(others), text.removeprefix(part), bound)
            return
        for size in range(len(text), -1, -1) if others else (len(text),):
            for found in self._bind(part, text[:size], bound):
                yield from self._divide(tuple(others), text[size:], found)

    def _bind(
        self, part: LevelVariable | LossyCall, text: str, bound: Bindings
    ) -> Iterator[Bindings]:
        if isinstance(part, LossyCall):
            if part.field:
                yield from self._bind_to(part.field, AnyOne(), Literal(text), bound)
                return
            if len(part.positions) == 1 and part.positions[0] not in bound:
                yield from self._bind(LevelVariable(part.positions[0]), text, bound)
            yield bound
        elif self._admits(part.position, text):
            variable = self.pattern.levels[part.position]
            yield from self._bind_to(part.position, variable, Literal(text), bound)

    @staticmethod
    def _bind_to(
        key: int | str, variable: Level, goal: Literal, bound: Bindings
    ) -> Iterator[Bindings]:
        """Bind a variable, or a field, to a text."""
        (current,) = bound.get(key, (variable,))
        if (
            isinstance(current, AnyOne | AnyMany)
            or current == goal
            or (isinstance(current, Glob) and glob_matches(current, goal.text))
        ):
            yield {**bound, key: (goal,)}
