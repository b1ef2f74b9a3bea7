"""Exact answers about unions of patterns: covers, overlaps, and a subject that shows why not.

A subject is a word whose letters are levels (`alphabet`), a pattern an automaton over them
(`chain`). One breadth-first search answers every question; it gives up with a `LimitError` rather
than guess, after `MAX_STEPS` moves (about a second).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gateway.errors import LimitError
from gateway.model.aligned import aligned
from gateway.model.alphabet import EVERYTHING, Universe, letters
from gateway.model.chain import Chain, chain_of
from gateway.model.pattern import AnyOne, Glob, Literal, Pattern

MAX_STEPS = 2_000_000
NO_WORD = -1

_Place: TypeAlias = tuple[int, int]  # a chain of a union, and the state in it
_Places: TypeAlias = frozenset[_Place]
_Needs: TypeAlias = tuple[tuple[str, ...], tuple[Glob, ...]]


def covers(
    wide: Sequence[Pattern], narrow: Sequence[Pattern], universe: Universe = EVERYTHING
) -> bool:
    """Whether every subject that `narrow` matches is matched by `wide`."""
    return difference_example(narrow, wide, universe) is None


def equivalent(a: Sequence[Pattern], b: Sequence[Pattern], universe: Universe = EVERYTHING) -> bool:
    return covers(a, b, universe) and covers(b, a, universe)


def is_empty(patterns: Sequence[Pattern], universe: Universe = EVERYTHING) -> bool:
    """Whether no subject at all is matched."""
    return difference_example(patterns, (), universe) is None


def overlaps(a: Sequence[Pattern], b: Sequence[Pattern], universe: Universe = EVERYTHING) -> bool:
    """Whether some subject is matched by both; most pairs need no search."""
    open_pairs: list[tuple[Pattern, Pattern]] = []
    for one in a:
        for other in b:
            verdict = aligned(one, other, universe)
            if verdict:
                return True
            if verdict is None:
                open_pairs.append((one, other))
    return any(_Search([one], [other], universe, both=True).example() for one, other in open_pairs)


def intersection_example(
    a: Sequence[Pattern], b: Sequence[Pattern], universe: Universe = EVERYTHING
) -> tuple[str, ...] | None:
    """A subject that both match, of the fewest levels for the first pair that has one."""
    pairs = ((one, other) for one in a for other in b)
    close = ((one, other) for one, other in pairs if aligned(one, other, universe) is not False)
    found = (_Search([one], [other], universe, both=True).example() for one, other in close)
    return next(filter(None, found), None)


def difference_example(
    a: Sequence[Pattern], b: Sequence[Pattern], universe: Universe = EVERYTHING
) -> tuple[str, ...] | None:
    """A subject that `a` matches and `b` does not; None when `b` covers `a`."""
    for one in a:
        if one in b:
            continue
        near = [other for other in b if aligned(one, other, universe) is not False]
        if found := _Search([one], near, universe, both=False).example():
            return found
    return None


class _Search:
    """One breadth-first search for a subject that `a` matches and `b` does, or does not.

    Mutable: it keeps the words it reached, the alphabets it made and counts its steps. A place of
    `a` is followed alone, because one way to match is enough. The places of `b` stay together
    when none of them may match, and are followed alone when one has to.
    """

    def __init__(
        self, a: Sequence[Pattern], b: Sequence[Pattern], universe: Universe, *, both: bool
    ) -> None:
        self._question, self._universe, self._both = (a, b), universe, both
        self._a = [chain_of(pattern) for pattern in a]
        self._b = [chain_of(pattern) for pattern in b]
        self._sinks = frozenset(
            (number, len(chain.steps))
            for number, chain in enumerate(self._b)
            if len(chain.steps) in chain.loops and not chain.shy.anywhere
        )
        self._alphabets: dict[_Needs, tuple[str, ...]] = {}
        self._words: list[tuple[int, str]] = []  # the word before, and the level it adds
        self._seen: set[tuple[_Place, _Places]] = set()
        self._least: dict[_Place, list[_Places]] = {}
        self._steps = 0

    def example(self) -> tuple[str, ...] | None:
        starts = frozenset((number, 0) for number in range(len(self._b)))
        queue = deque(
            ((number, 0), places, NO_WORD)
            for number in range(len(self._a))
            for places in self._divided(starts)
        )
        while queue:
            head, tail, word = queue.popleft()
            first = word == NO_WORD
            for level in self._letters(head, tail, first=first):
                heads = self._after(self._a, [head], level, first=first)
                if not heads:
                    continue
                tails = self._after(self._b, tail, level, first=first)
                allowed = level or not first or self._universe.empty_subject
                if allowed and _ends(self._a, heads) and _ends(self._b, tails) is self._both:
                    return (*self._spelled(word), level)
                self._words.append((word, level))
                queue.extend(
                    (one, places, len(self._words) - 1)
                    for one in heads
                    for places in self._divided(tails)
                    if self._is_promising(one, places)
                )
        return None

    def _divided(self, places: _Places) -> Iterable[_Places]:
        return [frozenset({place}) for place in places] if self._both else [places]

    def _after(
        self, chains: Sequence[Chain], places: Iterable[_Place], level: str, *, first: bool
    ) -> _Places:
        moved: dict[int, list[int]] = {}
        for number, state in places:
            self._spend(1)
            if states := chains[number].moves(state, level, first=first):
                moved.setdefault(number, []).extend(states)
        return frozenset(
            (number, state)
            for number, states in moved.items()
            for state in chains[number].settled(states)
        )

    def _is_promising(self, head: _Place, tail: _Places) -> bool:
        """Whether nothing seen before leads wherever this does; fewer followers lead further."""
        if (head, tail) in self._seen:
            return False
        self._seen.add((head, tail))
        if self._both:
            return True
        known = self._least.setdefault(head, [])
        self._spend(len(known))
        if not self._sinks.isdisjoint(tail) or any(old <= tail for old in known):
            return False
        known.append(tail)
        return True

    def _letters(self, head: _Place, tail: _Places, *, first: bool) -> tuple[str, ...]:
        """Levels to try: one of every kind that the patterns tell apart at these places."""
        exact: dict[str, None] = {}
        globs: dict[Glob, None] = {}
        if only := _only_level(self._a[head[0]], head[1]):
            return (only.text,) if self._universe.has(only.text) else ()
        _collect(self._a[head[0]], head[1], exact, globs, first=first)
        for number, state in tail:
            _collect(self._b[number], state, exact, globs, first=first)
        if first and not self._universe.empty_subject:
            exact[""] = None
        needs = (tuple(exact), tuple(globs))
        if needs not in self._alphabets:
            self._alphabets[needs] = letters(*needs, self._universe)
        return self._alphabets[needs]

    def _spelled(self, word: int) -> tuple[str, ...]:
        levels: list[str] = []
        while word != NO_WORD:
            word, level = self._words[word]
            levels.append(level)
        return tuple(reversed(levels))

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            asked = repr(self._question)
            raise LimitError("pattern algebra", asked, "steps", "steps", self._steps, MAX_STEPS)


def _ends(chains: Sequence[Chain], places: Iterable[_Place]) -> bool:
    return any(state == len(chains[number].steps) for number, state in places)


def _collect(
    chain: Chain, state: int, exact: dict[str, None], globs: dict[Glob, None], *, first: bool
) -> None:
    """Add what `chain` tells levels apart by in `state`."""
    step = chain.steps[state] if state < len(chain.steps) else None
    if isinstance(step, Literal):
        exact[step.text] = None
    elif isinstance(step, Glob):
        globs[step] = None
    if state in chain.loops or isinstance(step, Glob | AnyOne):
        exact.update(dict.fromkeys(chain.shy.anywhere))
        if first:
            globs.update((Glob((prefix, "")), None) for prefix in chain.shy.first)


def _only_level(chain: Chain, state: int) -> Literal | None:
    if state in chain.loops or state == len(chain.steps):
        return None
    step = chain.steps[state]
    return step if isinstance(step, Literal) else None
