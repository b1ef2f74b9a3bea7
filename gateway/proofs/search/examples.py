"""Search a subject that each of several unions of patterns matches, and another union does not.

`gateway.model.language` compares two unions; the proofs need one subject under several conditions
(taken by this route, made by that template, not excluded). The search is exact or raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import TypeAlias

from gateway.errors import SearchBudgetExceeded
from gateway.model.alphabet import PREFERRED_CHARACTERS, sample_levels
from gateway.model.chain import Automaton, chain_of, collect_tests, only_level
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.model.quick_overlap import quick_overlap
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import Flow

MAX_STEPS = 100_000  # about 0.3 s
PAIR, MAX_PAIRED = 2, 4
LEVELS_PER_STEP = 16  # that are compared in a step
MAX_TEXTS = 2_000  # that are searched for the letters of one level; under 0.1 s

_Positions: TypeAlias = frozenset[tuple[int, int]]  # a chain of a union, and the state in it
_State: TypeAlias = tuple[_Positions, ...]

cached_chain = lru_cache(maxsize=16_384)(chain_of)


def exact_pattern(levels: Iterable[str]) -> Pattern:
    """Return the pattern that matches one subject."""
    return Pattern(tuple(map(Literal, levels)))


def find_example(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern] = ()
) -> tuple[str, ...] | None:
    """Return a subject of few levels that each union of `every` matches and `none` does not.

    Raises:
        SearchBudgetExceeded: the search became too long.
    """
    found = _obvious_example(every, none)
    if found is not None or _are_disjoint(every):
        return found
    return _search_example(every, none)


def examples(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern], limit: int
) -> Iterator[tuple[str, ...]]:
    """Yield different subjects as `find_example` does, at most `limit` of them."""
    unwanted = [*none]
    while limit and (found := find_example(every, unwanted)) is not None:
        unwanted.append(exact_pattern(found))
        limit -= 1
        yield found


def names_of(flow: Flow, patterns: Iterable[Pattern]) -> Iterator[tuple[str, ...]]:
    """Yield a name that `flow` takes for each of the patterns with one."""
    for pattern in patterns:
        if (levels := find_example([[pattern]], flow.source.excludes)) is not None:
            yield levels


def _are_disjoint(every: Sequence[Sequence[Pattern]]) -> bool:
    """Return whether two unions of one pattern each have no subject in common."""
    alone = [union[0] for union in every if len(union) == 1]
    return any(quick_overlap(*pair) is False for pair in combinations(alone, 2))


def _obvious_example(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern]
) -> tuple[str, ...] | None:
    """Return the first plain subject that meets all conditions."""
    unions = [*every, none]
    spend(sum(len(pattern.levels) for union in unions for pattern in union) // LEVELS_PER_STEP)
    for levels in _candidates(every):
        if all(
            any(matches(one, levels) for one in union) is (union is not none) for union in unions
        ):
            return levels
    return None


def _candidates(every: Sequence[Sequence[Pattern]]) -> Iterator[tuple[str, ...]]:
    """Yield the plainest subject of each pattern, then concatenations of two."""
    plain = [list(filter(None, map(_plainest, union))) for union in every]
    yield from sorted((levels for union in plain for levels in union), key=len)
    if len(plain) == PAIR:
        for one, other in product(*(union[:MAX_PAIRED] for union in plain)):
            yield from (one + other, other + one)


def _plainest(pattern: Pattern) -> tuple[str, ...] | None:
    """Return a subject of the fewest levels for `pattern`, apart from wildcard exclusions."""
    found: list[str] = []
    for level in pattern.levels:
        match level:
            case Literal(text):
                found.append(text)
            case AnyOne():
                found.append(PREFERRED_CHARACTERS[0])
            case AnyMany(minimum):
                found += [PREFERRED_CHARACTERS[0]] * minimum
            case Glob(parts, minimum):
                found.append(parts[0] + PREFERRED_CHARACTERS[0] * minimum + "".join(parts[1:]))
    return None if found == [""] else tuple(found) or (PREFERRED_CHARACTERS[0],)


def _search_example(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern]
) -> tuple[str, ...] | None:
    unions = [
        *([cached_chain(one) for one in union] for union in every),
        list(map(cached_chain, none)),
    ]
    start: _State = tuple(frozenset((at, 0) for at in range(len(union))) for union in unions)
    seen = {start}
    queue: deque[tuple[_State, tuple[str, ...]]] = deque([(start, ())])
    steps = counted = 0
    while queue:
        state, word = queue.popleft()
        for level in _letters(unions, state, first=not word):
            steps += sum(map(len, state))
            after = _after(unions, state, level, first=not word)
            if after is None:
                continue
            if _accepted(unions, after) and (level or word):  # no name is one empty level
                return (*word, level)
            if after not in seen:
                seen.add(after)
                queue.append((after, (*word, level)))
        spend(steps - counted)
        counted = steps
        if steps > MAX_STEPS:
            text = " & ".join(str(len(union)) for union in unions)
            raise SearchBudgetExceeded("proofs", text, "steps", steps, MAX_STEPS)
    return None


def _after(
    unions: Sequence[Sequence[Automaton]], state: _State, level: str, *, first: bool
) -> _State | None:
    """Return the state after `level`; None when no subject can follow."""
    after: list[_Positions] = []
    for at, (union, positions) in enumerate(zip(unions, state, strict=True)):
        moved = frozenset(
            (number, to)
            for number, at in positions
            for to in union[number].moves(at, level, first=first)
        )
        unwanted = at == len(unions) - 1
        if not moved and not unwanted:
            return None
        if unwanted and any(_is_sink(union[number], at) for number, at in moved):
            return None
        after.append(moved)
    return tuple(after)


def _is_sink(chain: Automaton, at: int) -> bool:
    return at == len(chain.steps) and at in chain.loops and not chain.exclusions.whole_levels


def _accepted(unions: Sequence[Sequence[Automaton]], state: _State) -> bool:
    ends = [
        any(at == len(union[number].steps) for number, at in positions)
        for union, positions in zip(unions, state, strict=True)
    ]
    return all(ends[:-1]) and not ends[-1]


def _letters(
    unions: Sequence[Sequence[Automaton]], state: _State, *, first: bool
) -> tuple[str, ...]:
    """Return one level for each class that the patterns distinguish in this state."""
    for union, positions in zip(unions[:-1], state, strict=False):
        only = {only_level(union[number], at) for number, at in positions}
        if None not in only:
            texts = {level.text for level in only if level is not None}
            return tuple(sorted(filter(None, texts))) + ("",) * ("" in texts)
    exact: dict[str, None] = {"": None} if first else {}
    globs: dict[Glob, None] = {}
    for union, positions in zip(unions, state, strict=True):
        for number, at in sorted(positions):
            collect_tests(union[number], at, exact, globs, first=first)
    found = _alphabet(tuple(exact), tuple(globs))
    if isinstance(found, SearchBudgetExceeded):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=4_096)
def _alphabet(
    exact: tuple[str, ...], globs: tuple[Glob, ...]
) -> tuple[str, ...] | SearchBudgetExceeded:
    """Return the classes of levels, or the error, which takes as long to find and is cached."""
    spend(min(4 ** len(globs), MAX_TEXTS) * len(globs))  # classes may double with each glob
    try:
        return sample_levels(exact, globs, MAX_TEXTS)
    except SearchBudgetExceeded as error:
        return error
