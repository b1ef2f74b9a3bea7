"""A subject that several unions of patterns match and others do not; it gives up, never guesses.

The proofs ask for one subject under many conditions at once (taken by this route, under that
template, not excluded), where `gateway.model.language` compares two unions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import TypeAlias

from gateway.errors import LimitError
from gateway.model.aligned import aligned
from gateway.model.alphabet import EVERYTHING, PLAIN, Universe, letters
from gateway.model.chain import Chain, chain_of
from gateway.model.matching import matches
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern
from gateway.proofs.budget import spend

MAX_STEPS = 100_000  # about 0.3 s
PAIR, FEW = 2, 4
LEVELS = 16  # are compared in a step
MAX_TEXTS = 2_000  # that are looked at for the kinds of a level; under 0.1 s
NAMES = Universe(empty_subject=False)  # no system has a name of one empty level

_Places: TypeAlias = frozenset[tuple[int, int]]  # a chain of a union, and the state in it
_State: TypeAlias = tuple[_Places, ...]

chained = lru_cache(maxsize=16_384)(chain_of)


def exactly(levels: Iterable[str]) -> Pattern:
    """The pattern of one subject."""
    return Pattern(tuple(map(Literal, levels)))


def example(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern] = ()
) -> tuple[str, ...] | None:
    """A subject of few levels that each union of `every` matches and `none` does not.

    Raises:
        LimitError: the search became too long to be sure.
    """
    found = _at_once(every, none)
    if found is not None or _apart(every):
        return found
    return _searched(every, none)


def _apart(every: Sequence[Sequence[Pattern]]) -> bool:
    """Whether two of the unions are one pattern each, and have no subject in common."""
    alone = [union[0] for union in every if len(union) == 1]
    return any(aligned(*pair, EVERYTHING) is False for pair in combinations(alone, 2))


def _at_once(every: Sequence[Sequence[Pattern]], none: Sequence[Pattern]) -> tuple[str, ...] | None:
    """A subject that is plain to see, when it meets all conditions."""
    unions = [*every, none]
    spend(sum(len(pattern.levels) for union in unions for pattern in union) // LEVELS)
    for levels in _candidates(every):
        if all(
            any(matches(one, levels) for one in union) is (union is not none) for union in unions
        ):
            return levels
    return None


def _candidates(every: Sequence[Sequence[Pattern]]) -> Iterator[tuple[str, ...]]:
    """The plainest subjects of the patterns, then of two that have room for each other."""
    plain = [list(filter(None, map(_plainest, union))) for union in every]
    yield from sorted((levels for union in plain for levels in union), key=len)
    if len(plain) == PAIR:
        for one, other in product(*(union[:FEW] for union in plain)):
            yield from (one + other, other + one)


def _plainest(pattern: Pattern) -> tuple[str, ...] | None:
    """A subject of the fewest levels that `pattern` matches, if its wildcards are not shy of it."""
    found: list[str] = []
    for level in pattern.levels:
        match level:
            case Literal(text):
                found.append(text)
            case AnyOne():
                found.append(PLAIN[0])
            case AnyMany(minimum):
                found += [PLAIN[0]] * minimum
            case Glob(parts, minimum):
                found.append(parts[0] + PLAIN[0] * minimum + "".join(parts[1:]))
    return None if found == [""] else tuple(found) or (PLAIN[0],)


def _searched(
    every: Sequence[Sequence[Pattern]], none: Sequence[Pattern]
) -> tuple[str, ...] | None:
    unions = [*([chained(one) for one in union] for union in every), list(map(chained, none))]
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
            raise LimitError("proofs", text, "steps", "steps", steps, MAX_STEPS)
    return None


def _after(
    unions: Sequence[Sequence[Chain]], state: _State, level: str, *, first: bool
) -> _State | None:
    """Where all unions are after `level`; None when no subject can be found from there."""
    after: list[_Places] = []
    for at, (union, places) in enumerate(zip(unions, state, strict=True)):
        moved = frozenset(
            (number, to)
            for number, place in places
            for to in union[number].moves(place, level, first=first)
        )
        unwanted = at == len(unions) - 1
        if not moved and not unwanted:
            return None
        if unwanted and any(_is_sink(union[number], place) for number, place in moved):
            return None
        after.append(moved)
    return tuple(after)


def _is_sink(chain: Chain, place: int) -> bool:
    return place == len(chain.steps) and place in chain.loops and not chain.shy.anywhere


def _accepted(unions: Sequence[Sequence[Chain]], state: _State) -> bool:
    ends = [
        any(place == len(union[number].steps) for number, place in places)
        for union, places in zip(unions, state, strict=True)
    ]
    return all(ends[:-1]) and not ends[-1]


def _letters(unions: Sequence[Sequence[Chain]], state: _State, *, first: bool) -> tuple[str, ...]:
    """A level of every kind that the patterns tell apart at these places."""
    for union, places in zip(unions[:-1], state, strict=False):
        only = {_only_text(union[number], place) for number, place in places}
        if None not in only:
            return tuple(sorted(filter(None, only))) + ("",) * ("" in only)
    exact: dict[str, None] = {"": None} if first else {}
    globs: dict[Glob, None] = {}
    for union, places in zip(unions, state, strict=True):
        for number, place in sorted(places):
            _collect(union[number], place, exact, globs, first=first)
    found = _alphabet(tuple(exact), tuple(globs))
    if isinstance(found, LimitError):
        raise found.with_traceback(None)
    return found


@lru_cache(maxsize=4_096)
def _alphabet(exact: tuple[str, ...], globs: tuple[Glob, ...]) -> tuple[str, ...] | LimitError:
    """The kinds of level, or that there are too many, which takes as long to find out."""
    spend(min(4 ** len(globs), MAX_TEXTS) * len(globs))  # kinds may double with each glob
    try:
        return letters(exact, globs, NAMES, MAX_TEXTS)
    except LimitError as error:
        return error


def _only_text(chain: Chain, place: int) -> str | None:
    """The one level that leads on, when it is one."""
    if place in chain.loops or place == len(chain.steps):
        return None
    step = chain.steps[place]
    return step.text if isinstance(step, Literal) else None


def _collect(
    chain: Chain, place: int, exact: dict[str, None], globs: dict[Glob, None], *, first: bool
) -> None:
    step = chain.steps[place] if place < len(chain.steps) else None
    if isinstance(step, Literal):
        exact[step.text] = None
    elif isinstance(step, Glob):
        globs[step] = None
    if place in chain.loops or isinstance(step, Glob | AnyOne):
        exact.update(dict.fromkeys(chain.shy.anywhere))
        if first:
            globs.update((Glob((prefix, "")), None) for prefix in chain.shy.first)
