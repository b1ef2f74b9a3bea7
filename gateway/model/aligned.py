"""Whether two patterns overlap, told by walking their levels side by side; it never searches.

Half a million pairs of a route file are asked in seconds this way. What takes a search, such as
a rest wildcard in the middle or two globs in one place, is answered with None.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.alphabet import EVERYTHING, Universe
from gateway.model.chain import ANY_ONE, admits
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, Shy


def aligned(p: Pattern, q: Pattern, universe: Universe) -> bool | None:
    """True or False when that is certain, None when it takes a search."""
    certain = True
    for index, (x, y) in enumerate(zip(p.levels, q.levels, strict=False)):
        if type(x) is Literal and type(y) is Literal:
            if x.text != y.text:
                return False
            continue
        if type(x) is AnyMany or type(y) is AnyMany:
            met = _from_rest(p, q, index)
            return _confirmed(p, q, universe) if met and certain else met and None
        met = _meet(x, p.shy, y, q.shy, first=index == 0)
        if met is False:
            return False
        certain = certain and met is True
    shorter, longer = sorted((p.levels, q.levels), key=len)
    if not shorter or not all(level == AnyMany(0) for level in longer[len(shorter) :]):
        return False
    return _confirmed(p, q, universe) if certain else None


def _meet(x: Level, x_shy: Shy, y: Level, y_shy: Shy, *, first: bool) -> bool | None:
    """Whether one level can satisfy both; neither is `AnyMany`."""
    match x, y:
        case Literal(text), (Glob() | AnyOne()):
            return admits(y, text, y_shy, first=first)
        case ((Glob() | AnyOne()), Literal(text)):
            return admits(x, text, x_shy, first=first)
        case AnyOne(), AnyOne():
            return True
        case Glob(), Glob():
            return None if _affixes_agree(x, y) else False
        case _:
            return None


def _affixes_agree(x: Glob, y: Glob) -> bool:
    heads, tails = (x.parts[0], y.parts[0]), (x.parts[-1], y.parts[-1])
    head, tail = min(heads, key=len), min(tails, key=len)
    return all(one.startswith(head) for one in heads) and all(one.endswith(tail) for one in tails)


def _from_rest(p: Pattern, q: Pattern, index: int) -> bool | None:
    """The answer for what follows, when one of the two has a rest wildcard at `index`."""
    ends = p.levels[-1], q.levels[-1]
    if type(ends[0]) is Literal and type(ends[1]) is Literal and ends[0] != ends[1]:
        return False
    for one, other in ((p, q), (q, p)):
        rest = one.levels[index]
        if type(rest) is AnyMany and index == len(one.levels) - 1:
            return _absorbs(rest.minimum, one.shy, other.levels[index:], first=index == 0)
    return None


def _absorbs(minimum: int, shy: Shy, others: Sequence[Level], *, first: bool) -> bool | None:
    """Whether a rest wildcard at the end takes a subject of `others`."""
    least, more = 0, False
    for place, level in enumerate(others):
        match level:
            case Literal(text):
                if not admits(ANY_ONE, text, shy, first=first and place == 0):
                    return False
                least += 1
            case AnyOne():
                least += 1
            case AnyMany(lowest):
                least, more = least + lowest, True
            case Glob():
                return None
    return more or least >= minimum


def _confirmed(p: Pattern, q: Pattern, universe: Universe) -> bool | None:
    """True unless the universe lacks a level they need, or a wildcard matches nothing at all."""
    if "" in p.shy.first or "" in q.shy.first:
        return None
    if universe == EVERYTHING:
        return True
    texts = [level.text for level in (*p.levels, *q.levels) if isinstance(level, Literal)]
    if not universe.empty_subject and "" in texts:
        return None
    return all(map(universe.has, texts))
