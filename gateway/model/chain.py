"""A pattern in its normal form: single levels in a row, with places where any levels may pass.

A run of wildcards says only how many levels it takes at least and whether it takes more, so
`#/+/#` and `+/#` become the same chain. Nothing is searched here; see `language` and the routing
table for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.matching import glob_matches
from gateway.model.pattern import BOLD, AnyMany, AnyOne, Glob, Literal, Pattern, Shy

Single: TypeAlias = Literal | Glob | AnyOne
ANY_ONE = AnyOne()


@dataclass(frozen=True, slots=True)
class Chain:
    """State `i` is reached when `steps[:i]` are matched; in a loop any wildcard level keeps it."""

    steps: tuple[Single, ...]
    loops: frozenset[int]
    shy: Shy

    def moves(self, state: int, level: str, *, first: bool) -> list[int]:
        """The states after `level`; `first` when it is the first one of the subject."""
        after: list[int] = []
        if state in self.loops and admits(ANY_ONE, level, self.shy, first=first):
            after.append(state)
        if state < len(self.steps) and admits(self.steps[state], level, self.shy, first=first):
            after.append(state + 1)
        return after

    def settled(self, states: Iterable[int]) -> set[int]:
        """`states`, reached by one word of a level or more, less those that add no subject.

        What an earlier state still matches, the last loop matches too, because it lets pass what
        lies between. A literal of a hidden level does not lie between: no loop outlives that
        level, so no state that has it ahead is left when a state behind it is reached.
        """
        kept = set(states)
        loop = max((state for state in kept if state in self.loops), default=0)
        return {state for state in kept if state >= loop}


def chain_of(pattern: Pattern) -> Chain:
    steps: list[Single] = []
    loops: set[int] = set()
    least, more = 0, False
    for level in pattern.levels:
        if isinstance(level, AnyMany):
            least, more = least + level.minimum, True
        elif isinstance(level, AnyOne):
            least += 1
        else:
            _close(steps, loops, least, more=more)
            least, more = 0, False
            steps.append(level)
    _close(steps, loops, least, more=more)
    return Chain(tuple(steps), frozenset(loops), _needed_shy(steps, loops, pattern.shy))


def _needed_shy(steps: list[Single], loops: set[int], shy: Shy) -> Shy:
    """`shy` without what makes no difference, so that more patterns are alike."""
    if not loops and all(isinstance(step, Literal) for step in steps):
        return BOLD
    if 0 in loops or steps[0] == ANY_ONE:
        return shy
    return Shy(anywhere=shy.anywhere)


def _close(steps: list[Single], loops: set[int], least: int, *, more: bool) -> None:
    """End a run of wildcards: what it takes at least first, the loop after it."""
    steps.extend([ANY_ONE] * least)
    if more:
        loops.add(len(steps))


def admits(step: Single, level: str, shy: Shy, *, first: bool) -> bool:
    """Whether `step` matches `level`; `first` when it is the first level of the subject."""
    if isinstance(step, Literal):
        return step.text == level
    if level in shy.anywhere:
        return False
    if isinstance(step, Glob):
        return glob_matches(step, level)
    return not (first and level.startswith(shy.first))
