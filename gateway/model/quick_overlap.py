"""A quick test whether two patterns overlap: one walk over their levels, side by side.

It answers half a million pairs of a route file in seconds. Pairs that need a search, such as a
rest wildcard before other levels or two globs at one position, have the answer None.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.chain import ANY_ONE, admits
from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions


def quick_overlap(p: Pattern, q: Pattern) -> bool | None:
    """Return whether `p` and `q` overlap, or None when only a search can decide."""
    certain = True
    for index, (x, y) in enumerate(zip(p.levels, q.levels, strict=False)):
        if type(x) is Literal and type(y) is Literal:
            if x.text != y.text:
                return False
            continue
        if type(x) is AnyMany or type(y) is AnyMany:
            overlap = _overlap_from_rest_wildcard(p, q, index)
            return _confirmed(p, q) if overlap and certain else overlap and None
        overlap = _levels_overlap(x, p.exclusions, y, q.exclusions, first=index == 0)
        if overlap is False:
            return False
        certain = certain and overlap is True
    shorter, longer = sorted((p.levels, q.levels), key=len)
    if not shorter or not all(level == AnyMany(0) for level in longer[len(shorter) :]):
        return False
    return _confirmed(p, q) if certain else None


def _levels_overlap(
    x: Level,
    x_exclusions: WildcardExclusions,
    y: Level,
    y_exclusions: WildcardExclusions,
    *,
    first: bool,
) -> bool | None:
    """Return whether one text can match both levels; neither is `AnyMany`."""
    match x, y:
        case Literal(text), (Glob() | AnyOne()):
            return admits(y, text, y_exclusions, first=first)
        case ((Glob() | AnyOne()), Literal(text)):
            return admits(x, text, x_exclusions, first=first)
        case AnyOne(), AnyOne():
            return True
        case Glob(), Glob():
            return None if _affixes_agree(x, y) else False
        case _:
            return None


def _affixes_agree(x: Glob, y: Glob) -> bool:
    prefixes, suffixes = (x.parts[0], y.parts[0]), (x.parts[-1], y.parts[-1])
    prefix, suffix = min(prefixes, key=len), min(suffixes, key=len)
    return all(each.startswith(prefix) for each in prefixes) and all(
        each.endswith(suffix) for each in suffixes
    )


def _overlap_from_rest_wildcard(p: Pattern, q: Pattern, index: int) -> bool | None:
    """Return the answer for the levels from `index` on, where `p` or `q` has a rest wildcard."""
    ends = p.levels[-1], q.levels[-1]
    if type(ends[0]) is Literal and type(ends[1]) is Literal and ends[0] != ends[1]:
        return False
    for one, other in ((p, q), (q, p)):
        rest = one.levels[index]
        if type(rest) is AnyMany and index == len(one.levels) - 1:
            return _rest_takes(rest.minimum, one.exclusions, other.levels[index:], first=index == 0)
    return None


def _rest_takes(
    minimum: int, exclusions: WildcardExclusions, others: Sequence[Level], *, first: bool
) -> bool | None:
    """Return whether a rest wildcard in last position matches a subject of `others`."""
    shortest, unbounded = 0, False
    for index, level in enumerate(others):
        match level:
            case Literal(text):
                if not admits(ANY_ONE, text, exclusions, first=first and index == 0):
                    return False
                shortest += 1
            case AnyOne():
                shortest += 1
            case AnyMany(other_minimum):
                shortest, unbounded = shortest + other_minimum, True
            case Glob():
                return None
    return unbounded or shortest >= minimum


def _confirmed(p: Pattern, q: Pattern) -> bool | None:
    """Return True; None when a wildcard matches nothing."""
    none = "" in p.exclusions.first_level_prefixes or "" in q.exclusions.first_level_prefixes
    return None if none else True
