"""A subject that several unions of patterns match and others do not; it gives up, never guesses.

The proofs ask for one subject under many conditions at once (taken by this route, under that
template, not excluded), where `gateway.model.language` compares two unions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

from gateway.errors import LimitError
from gateway.model.alphabet import Universe, letters
from gateway.model.chain import Chain, chain_of
from gateway.model.pattern import AnyOne, Glob, Literal, Pattern

MAX_STEPS = 100_000  # about 0.3 s
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
    """A subject of the fewest levels that each union of `every` matches and `none` does not.

    Raises:
        LimitError: the search became too long to be sure.
    """
    unions = [*([chained(one) for one in union] for union in every), list(map(chained, none))]
    start: _State = tuple(frozenset((at, 0) for at in range(len(union))) for union in unions)
    seen = {start}
    queue: deque[tuple[_State, tuple[str, ...]]] = deque([(start, ())])
    steps = 0
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
    return _alphabet(tuple(exact), tuple(globs))


@lru_cache(maxsize=4_096)
def _alphabet(exact: tuple[str, ...], globs: tuple[Glob, ...]) -> tuple[str, ...]:
    return letters(exact, globs, NAMES)


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
