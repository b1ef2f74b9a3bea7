"""The normal form of a pattern: a chain of single levels, with loops where any levels may pass.

A run of wildcards is reduced to the minimum of levels it takes and whether it takes more, so
`#/+/#` and `+/#` become the same chain. `language` and the routing table search over chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.model.matching import ANY_ONE, admits
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
        after, exclusions = [], self.exclusions
        if state in self.loops and admits(ANY_ONE, level, exclusions, first=first):
            after.append(state)
        if state < len(self.steps) and admits(self.steps[state], level, exclusions, first=first):
            after.append(state + 1)
        return after

    def pruned(self, states: Sequence[int]) -> set[int]:
        """Return `states`, reached after at least one level, without those that add no subject.

        The last loop matches every subject that an earlier state matches, because it lets the
        levels in between pass. A literal of an excluded level cannot lie in between: no loop
        survives that level, so no state before it remains when a state behind it is reached.
        """
        loop = max(self.loops.intersection(states), default=0)
        return {state for state in states if state >= loop}


def chain_of(pattern: Pattern) -> Automaton:
    steps: list[Single] = []
    loops: set[int] = set()  # the loop of a run of wildcards comes behind their steps
    unbounded = False
    for level in pattern.levels:
        if isinstance(level, AnyMany):
            steps += [ANY_ONE] * level.minimum
            unbounded = True
            continue
        if unbounded and not isinstance(level, AnyOne):
            loops.add(len(steps))
            unbounded = False
        steps.append(level)
    if unbounded:
        loops.add(len(steps))
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
