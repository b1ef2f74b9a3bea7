"""Exact answers about unions of patterns: cover, overlap, and a subject as a counterexample.

A subject is a word whose letters are levels (`alphabet`), and a pattern is an automaton over them
(`chain`). One breadth-first search answers every question. After `MAX_STEPS` moves (about a
second) it raises `SearchBudgetExceeded` and gives no answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.alphabet import sample_levels
from gateway.model.chain import Automaton, chain_of, collect_tests, only_level
from gateway.model.pattern import Glob, Pattern
from gateway.model.quick_overlap import quick_overlap

MAX_STEPS = 2_000_000
EMPTY_WORD = -1

_State: TypeAlias = tuple[int, int]  # number of a chain in its union, and state in that chain
_States: TypeAlias = frozenset[_State]
_Distinctions: TypeAlias = tuple[tuple[str, ...], tuple[Glob, ...]]


def covers(wide: Sequence[Pattern], narrow: Sequence[Pattern]) -> bool:
    """Return whether `wide` matches every subject that `narrow` matches."""
    return difference_example(narrow, wide) is None


def overlaps(a: Sequence[Pattern], b: Sequence[Pattern]) -> bool:
    """Return whether both match some subject; most pairs need no search."""
    undecided: list[tuple[Pattern, Pattern]] = []
    for one in a:
        for other in b:
            overlap = quick_overlap(one, other)
            if overlap:
                return True
            if overlap is None:
                undecided.append((one, other))
    return any(_Search([one], [other], both=True).example() for one, other in undecided)


def intersection_example(a: Sequence[Pattern], b: Sequence[Pattern]) -> tuple[str, ...] | None:
    """Return a subject that both match, the shortest for the first pair that overlaps."""
    pairs = ((one, other) for one in a for other in b)
    close = ((one, other) for one, other in pairs if quick_overlap(one, other) is not False)
    found = (_Search([one], [other], both=True).example() for one, other in close)
    return next(filter(None, found), None)


def difference_example(a: Sequence[Pattern], b: Sequence[Pattern]) -> tuple[str, ...] | None:
    """Return a subject that `a` matches and `b` does not; None when `b` covers `a`."""
    for one in a:
        if one in b:
            continue
        near = [other for other in b if quick_overlap(one, other) is not False]
        if found := _Search([one], near, both=False).example():
            return found
    return None


class _Search:
    """One breadth-first search for a subject that `a` matches and that `b` matches or does not.

    A state of `a` is followed alone, because one way to match is sufficient. The states of `b`
    are followed alone when one of them has to match (`both`), and together when none may match.
    Mutable: owned by the function that asks the question.
    """

    def __init__(self, a: Sequence[Pattern], b: Sequence[Pattern], *, both: bool) -> None:
        self._question, self._both = (a, b), both
        self._a = [chain_of(pattern) for pattern in a]
        self._b = [chain_of(pattern) for pattern in b]
        self._accept_all = frozenset(
            (number, len(chain.steps))
            for number, chain in enumerate(self._b)
            if len(chain.steps) in chain.loops and not chain.exclusions.whole_levels
        )
        self._alphabets: dict[_Distinctions, tuple[str, ...]] = {}
        self._words: list[tuple[int, str]] = []  # the previous word, and the level added to it
        self._visited: set[tuple[_State, _States]] = set()
        self._smallest_tails: dict[_State, list[_States]] = {}
        self._steps = 0

    def example(self) -> tuple[str, ...] | None:
        starts = frozenset((number, 0) for number in range(len(self._b)))
        queue = deque(
            ((number, 0), states, EMPTY_WORD)
            for number in range(len(self._a))
            for states in self._split_tails(starts)
        )
        while queue:
            head, tail, word = queue.popleft()
            first = word == EMPTY_WORD
            for level in self._letters(head, tail, first=first):
                heads = self._after(self._a, [head], level, first=first)
                if not heads:
                    continue
                tails = self._after(self._b, tail, level, first=first)
                if _accepting(self._a, heads) and _accepting(self._b, tails) is self._both:
                    return (*self._subject_of(word), level)
                self._words.append((word, level))
                queue.extend(
                    (one, states, len(self._words) - 1)
                    for one in heads
                    for states in self._split_tails(tails)
                    if self._is_new(one, states)
                )
        return None

    def _split_tails(self, states: _States) -> Iterable[_States]:
        return [frozenset({state}) for state in states] if self._both else [states]

    def _after(
        self, chains: Sequence[Automaton], states: Iterable[_State], level: str, *, first: bool
    ) -> _States:
        moved: dict[int, list[int]] = {}
        for number, state in states:
            self._count(1)
            if after := chains[number].moves(state, level, first=first):
                moved.setdefault(number, []).extend(after)
        return frozenset(
            (number, state)
            for number, after in moved.items()
            for state in chains[number].pruned(after)
        )

    def _is_new(self, head: _State, tail: _States) -> bool:
        """Return whether no earlier pair reaches at least the same subjects.

        A subset of `tail` reaches more subjects, because fewer patterns have to fail.
        """
        if (head, tail) in self._visited:
            return False
        self._visited.add((head, tail))
        if self._both:
            return True
        known = self._smallest_tails.setdefault(head, [])
        self._count(len(known))
        if not self._accept_all.isdisjoint(tail) or any(old <= tail for old in known):
            return False
        known.append(tail)
        return True

    def _letters(self, head: _State, tail: _States, *, first: bool) -> tuple[str, ...]:
        """Return the levels to try: one of every class that the patterns distinguish here."""
        exact: dict[str, None] = {}
        globs: dict[Glob, None] = {}
        if only := only_level(self._a[head[0]], head[1]):
            return (only.text,)
        collect_tests(self._a[head[0]], head[1], exact, globs, first=first)
        for number, state in tail:
            collect_tests(self._b[number], state, exact, globs, first=first)
        distinctions = (tuple(exact), tuple(globs))
        if distinctions not in self._alphabets:
            self._alphabets[distinctions] = sample_levels(*distinctions)
        return self._alphabets[distinctions]

    def _subject_of(self, word: int) -> tuple[str, ...]:
        levels: list[str] = []
        while word != EMPTY_WORD:
            word, level = self._words[word]
            levels.append(level)
        return tuple(reversed(levels))

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            question = repr(self._question)
            raise SearchBudgetExceeded("pattern algebra", question, "steps", self._steps, MAX_STEPS)


def _accepting(chains: Sequence[Automaton], states: Iterable[_State]) -> bool:
    return any(state == len(chains[number].steps) for number, state in states)
