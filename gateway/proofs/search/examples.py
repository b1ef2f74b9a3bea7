"""Search a subject that each of several unions of patterns matches, and another union does not.

The proofs need one name under several conditions (taken by this route, made by that template, not
excluded). Plain names are tried first; then the search is exact or raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product

from gateway.errors import SearchBudgetExceeded
from gateway.model.alphabet import PREFERRED_CHARACTERS, sample_levels
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, Glob, Literal, Pattern
from gateway.model.quick_overlap import quick_overlap
from gateway.model.subject_search import SubjectSearch
from gateway.proofs.budget import spend
from gateway.proofs.flows.flow import Flow, filled

MAX_STEPS = 100_000  # about 0.3 s
PAIR, MAX_PAIRED = 2, 4
LEVELS_PER_STEP = 16  # that are compared in a step
MAX_TEXTS = 2_000  # that are searched for the letters of one level; under 0.1 s

_ONE_EMPTY_LEVEL = Pattern((Literal(""),))  # a subject, and no name


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
    return SubjectSearch(every, [*none, _ONE_EMPTY_LEVEL], MAX_STEPS, spend, _levels).example()


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
    text = PREFERRED_CHARACTERS[0]
    for level in pattern.levels:
        if isinstance(level, AnyMany):
            found += [text] * level.minimum
        else:
            found.append(filled(level, text * level.minimum if isinstance(level, Glob) else text))
    return None if found == [""] else tuple(found) or (text,)


def _levels(exact: tuple[str, ...], globs: tuple[Glob, ...]) -> tuple[str, ...]:
    found = _alphabet(exact, globs)
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
