"""Exact answers about unions of patterns: cover, overlap, and a subject as a counterexample.

A subject is a word whose letters are levels (`alphabet`), and a pattern is an automaton over them
(`chain`). One breadth-first search answers every question, or raises `SearchBudgetExceeded` after
a number of moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.alphabet import sample_levels
from gateway.model.chain import chain_of, collect_tests, only_level
from gateway.model.pattern import Glob, Pattern
from gateway.model.quick_overlap import quick_overlap

MAX_STEPS = 2_000_000  # about a second
EMPTY_WORD = -1

_Positions: TypeAlias = frozenset[tuple[int, int]]  # a chain of a union, and the state in it
_State: TypeAlias = tuple[_Positions, ...]

cached_chain = lru_cache(maxsize=16_384)(chain_of)
cached_levels = lru_cache(maxsize=4_096)(sample_levels)


def covers(wide: Sequence[Pattern], narrow: Sequence[Pattern]) -> bool:
    """Return whether `wide` matches every subject that `narrow` matches."""
    return difference_example(narrow, wide) is None


def overlaps(a: Sequence[Pattern], b: Sequence[Pattern]) -> bool:
    """Return whether both match some subject; most pairs need no search."""
    undecided: list[tuple[Pattern, Pattern]] = []
    for pair in product(a, b):
        overlap = quick_overlap(*pair)
        if overlap:
            return True
        if overlap is None:
            undecided.append(pair)
    return any(SubjectSearch([[one], [other]]).example() for one, other in undecided)


def intersection_example(a: Sequence[Pattern], b: Sequence[Pattern]) -> tuple[str, ...] | None:
    """Return a subject that both match, the shortest for the first pair that overlaps."""
    close = (pair for pair in product(a, b) if quick_overlap(*pair) is not False)
    found = (SubjectSearch([[one], [other]]).example() for one, other in close)
    return next(filter(None, found), None)


def difference_example(a: Sequence[Pattern], b: Sequence[Pattern]) -> tuple[str, ...] | None:
    """Return a subject that `a` matches and `b` does not; None when `b` covers `a`."""
    for one in a:
        if one in b:
            continue
        near = [other for other in b if quick_overlap(one, other) is not False]
        if found := SubjectSearch([[one]], near).example():
            return found
    return None


class SubjectSearch:
    """One breadth-first search: the positions in all unions that the same levels lead to.

    It is for a subject that each union of `every` matches and `none` does not. `spend` gets the
    moves of each state that is left; `levels_of` returns a level of each class.
    Mutable: owned by the function that asks the question.
    """

    def __init__(
        self,
        every: Sequence[Sequence[Pattern]],
        none: Sequence[Pattern] = (),
        max_steps: int | None = None,
        spend: Callable[[int], None] = lambda _: None,
        levels_of: Callable[[tuple[str, ...], tuple[Glob, ...]], tuple[str, ...]] = cached_levels,
    ) -> None:
        self._unions = [[cached_chain(one) for one in union] for union in (*every, none)]
        self._accept_all = frozenset(
            (number, len(chain.steps))
            for number, chain in enumerate(self._unions[-1])
            if len(chain.steps) in chain.loops and not chain.exclusions.whole_levels
        )
        self._steps, self._max_steps = 0, MAX_STEPS if max_steps is None else max_steps
        self._spend, self._levels_of = spend, levels_of
        self._words: list[tuple[int, str]] = []  # the previous word, and the level added to it
        self._visited: set[_State] = set()
        self._smallest_tails: dict[_State, list[_Positions]] = {}

    def example(self) -> tuple[str, ...] | None:
        """Return a subject of the fewest levels.

        Raises:
            SearchBudgetExceeded: it takes more than `max_steps` moves (default `MAX_STEPS`).
        """
        start = tuple(frozenset((at, 0) for at in range(len(union))) for union in self._unions)
        queue: deque[tuple[_State, int]] = deque([(start, EMPTY_WORD)])
        while queue:
            state, word = queue.popleft()
            before = self._steps
            first = word == EMPTY_WORD
            for level in self._letters(state, first=first):
                self._count(sum(map(len, state)))
                after = self._after(state, level, first=first)
                if after is None:
                    continue
                if self._accepts(after):
                    return (*self._subject_of(word), level)
                if self._is_new(after):
                    self._words.append((word, level))
                    queue.append((after, len(self._words) - 1))
            self._spend(self._steps - before)
        return None

    def _after(self, state: _State, level: str, *, first: bool) -> _State | None:
        """Return the state after `level`; None when no subject can follow."""
        reached: list[_Positions] = []
        for union, positions in zip(self._unions, state, strict=True):
            moved: dict[int, list[int]] = {}
            for number, at in positions:
                if after := union[number].moves(at, level, first=first):
                    moved.setdefault(number, []).extend(after)
            if not moved and len(reached) < len(state) - 1:
                return None
            reached.append(
                frozenset(
                    (number, at)
                    for number, after in moved.items()
                    for at in union[number].pruned(after)
                )
            )
        return tuple(reached) if self._accept_all.isdisjoint(reached[-1]) else None

    def _accepts(self, state: _State) -> bool:
        *every, none = (
            any(at == len(union[number].steps) for number, at in positions)
            for union, positions in zip(self._unions, state, strict=True)
        )
        return all(every) and not none

    def _is_new(self, state: _State) -> bool:
        """Return whether no earlier state reaches at least the same subjects.

        A subset of the last positions reaches more subjects, because fewer patterns have to fail.
        """
        if state in self._visited:
            return False
        self._visited.add(state)
        known = self._smallest_tails.setdefault(state[:-1], [])
        self._count(len(known))
        if any(old <= state[-1] for old in known):
            return False
        known.append(state[-1])
        return True

    def _letters(self, state: _State, *, first: bool) -> tuple[str, ...]:
        """Return the levels to try: one of every class that the patterns distinguish here."""
        for union, positions in zip(self._unions[:-1], state, strict=False):
            only = {only_level(union[number], at) for number, at in positions}
            if None not in only:
                texts = {level.text for level in only if level}
                return tuple(sorted(texts, key=lambda text: (not text, text)))  # the empty one last
        exact: dict[str, None] = {}
        globs: dict[Glob, None] = {}
        for union, positions in zip(self._unions, state, strict=True):
            for number, at in sorted(positions):
                collect_tests(union[number], at, exact, globs, first=first)
        return self._levels_of(tuple(exact), tuple(globs))

    def _subject_of(self, word: int) -> tuple[str, ...]:
        levels: list[str] = []
        while word != EMPTY_WORD:
            word, level = self._words[word]
            levels.append(level)
        return tuple(reversed(levels))

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > self._max_steps:
            sizes = " & ".join(str(len(union)) for union in self._unions)
            raise SearchBudgetExceeded(
                "pattern algebra", sizes, "steps", self._steps, self._max_steps
            )
