"""The normal form of a pattern: a chain of single levels, with loops where any levels may pass.

A run of wildcards is reduced to the minimum of levels it takes and whether it takes more, so
`#/+/#` and `+/#` become the same chain. `language` and the routing table search over chains.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.matching import glob_matches
from gateway.model.pattern import (
    NO_EXCLUSIONS,
    AnyMany,
    AnyOne,
    Glob,
    Literal,
    Pattern,
    WildcardExclusions,
)

Single: TypeAlias = Literal | Glob | AnyOne
ANY_ONE = AnyOne()


@dataclass(frozen=True, slots=True)
class Automaton:
    """An automaton over levels.

    State `i` is reached when `steps[:i]` are matched. In a state of `loops`, any level that a
    wildcard matches leaves the state as it is.
    """

    steps: tuple[Single, ...]
    loops: frozenset[int]
    exclusions: WildcardExclusions

    def moves(self, state: int, level: str, *, first: bool) -> list[int]:
        """Return the states after `level`; `first` when it is the first level of the subject."""
        after: list[int] = []
        if state in self.loops and admits(ANY_ONE, level, self.exclusions, first=first):
            after.append(state)
        if state < len(self.steps) and admits(
            self.steps[state], level, self.exclusions, first=first
        ):
            after.append(state + 1)
        return after

    def pruned(self, states: Iterable[int]) -> set[int]:
        """Return `states`, reached after at least one level, without those that add no subject.

        The last loop matches every subject that an earlier state matches, because it lets the
        levels in between pass. A literal of an excluded level cannot lie in between: no loop
        survives that level, so no state before it remains when a state behind it is reached.
        """
        kept = set(states)
        loop = max((state for state in kept if state in self.loops), default=0)
        return {state for state in kept if state >= loop}


def chain_of(pattern: Pattern) -> Automaton:
    steps: list[Single] = []
    loops: set[int] = set()
    minimum, unbounded = 0, False
    for level in pattern.levels:
        if isinstance(level, AnyMany):
            minimum, unbounded = minimum + level.minimum, True
        elif isinstance(level, AnyOne):
            minimum += 1
        else:
            _add_wildcards(steps, loops, minimum, unbounded=unbounded)
            minimum, unbounded = 0, False
            steps.append(level)
    _add_wildcards(steps, loops, minimum, unbounded=unbounded)
    exclusions = _effective_exclusions(steps, loops, pattern.exclusions)
    return Automaton(tuple(steps), frozenset(loops), exclusions)


def _effective_exclusions(
    steps: list[Single], loops: set[int], exclusions: WildcardExclusions
) -> WildcardExclusions:
    """Return `exclusions` without those that change nothing, so that more chains are equal."""
    if not loops and all(isinstance(step, Literal) for step in steps):
        return NO_EXCLUSIONS
    if 0 in loops or steps[0] == ANY_ONE:
        return exclusions
    return WildcardExclusions(whole_levels=exclusions.whole_levels)


def _add_wildcards(steps: list[Single], loops: set[int], minimum: int, *, unbounded: bool) -> None:
    """Add a run of wildcards: a step for each level of the minimum, then the loop."""
    steps.extend([ANY_ONE] * minimum)
    if unbounded:
        loops.add(len(steps))


def admits(step: Single, level: str, exclusions: WildcardExclusions, *, first: bool) -> bool:
    """Return whether `step` matches `level`; `first` for the first level of the subject."""
    if isinstance(step, Literal):
        return step.text == level
    if level in exclusions.whole_levels:
        return False
    if isinstance(step, Glob):
        return glob_matches(step, level)
    return not (first and level.startswith(exclusions.first_level_prefixes))


def only_level(chain: Automaton, state: int) -> Literal | None:
    """Return the literal of the next level, when `chain` accepts no other level in `state`."""
    if state in chain.loops or state == len(chain.steps):
        return None
    step = chain.steps[state]
    return step if isinstance(step, Literal) else None


def collect_tests(
    chain: Automaton, state: int, exact: dict[str, None], globs: dict[Glob, None], *, first: bool
) -> None:
    """Add the literals and globs by which `chain` distinguishes levels in `state`."""
    step = chain.steps[state] if state < len(chain.steps) else None
    if isinstance(step, Literal):
        exact[step.text] = None
    elif isinstance(step, Glob):
        globs[step] = None
    if state in chain.loops or isinstance(step, Glob | AnyOne):
        exact.update(dict.fromkeys(chain.exclusions.whole_levels))
        if first:
            prefixes = chain.exclusions.first_level_prefixes
            globs.update((Glob((prefix, "")), None) for prefix in prefixes)
