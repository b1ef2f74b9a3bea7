"""A quick test whether two patterns overlap: one walk over their levels, side by side.

It answers half a million pairs of a route file in seconds. Pairs that need a search, such as a
rest wildcard before other levels or two globs at one position, have the answer None.
"""

from __future__ import annotations

from gateway.model.matching import ANY_ONE, admits
from gateway.model.pattern import AnyMany, AnyOne, Glob, Literal, Pattern


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
        overlap = _levels_overlap(p, q, index)
        if overlap is False:
            return False
        certain = certain and overlap is True
    shorter, longer = sorted((p.levels, q.levels), key=len)
    if not shorter or not all(level == AnyMany(0) for level in longer[len(shorter) :]):
        return False
    return _confirmed(p, q) if certain else None


def _levels_overlap(p: Pattern, q: Pattern, index: int) -> bool | None:
    """Return whether one text can match both levels at `index`; neither is `AnyMany`."""
    match p.levels[index], q.levels[index]:
        case Literal(text), (Glob() | AnyOne()) as y:
            return admits(y, text, q.exclusions, first=index == 0)
        case (Glob() | AnyOne()) as x, Literal(text):
            return admits(x, text, p.exclusions, first=index == 0)
        case AnyOne(), AnyOne():
            return True
        case Glob() as x, Glob() as y:
            return None if _affixes_agree(x, y) else False
        case _:
            return None


def _affixes_agree(x: Glob, y: Glob) -> bool:
    prefix, longer_prefix = sorted((x.parts[0], y.parts[0]), key=len)
    suffix, longer_suffix = sorted((x.parts[-1], y.parts[-1]), key=len)
    return longer_prefix.startswith(prefix) and longer_suffix.endswith(suffix)


def _overlap_from_rest_wildcard(p: Pattern, q: Pattern, index: int) -> bool | None:
    """Return the answer for the levels from `index` on, where `p` or `q` has a rest wildcard."""
    ends = p.levels[-1], q.levels[-1]
    if type(ends[0]) is Literal and type(ends[1]) is Literal and ends[0] != ends[1]:
        return False
    for one, other in ((p, q), (q, p)):
        rest = one.levels[index]
        if type(rest) is AnyMany and index == len(one.levels) - 1:
            return _rest_takes(rest, one, other, index)
    return None


def _rest_takes(rest: AnyMany, one: Pattern, other: Pattern, index: int) -> bool | None:
    """Return whether `rest`, the last level of `one`, takes the levels of `other` from `index`."""
    shortest, unbounded = 0, False
    for at, level in enumerate(other.levels[index:], index):
        match level:
            case Literal(text):
                if not admits(ANY_ONE, text, one.exclusions, first=at == 0):
                    return False
                shortest += 1
            case AnyOne():
                shortest += 1
            case AnyMany(minimum):
                shortest, unbounded = shortest + minimum, True
            case Glob():
                return None
    return unbounded or shortest >= rest.minimum


def _confirmed(p: Pattern, q: Pattern) -> bool | None:
    """Return True; None when a wildcard matches nothing."""
    none = "" in p.exclusions.first_level_prefixes or "" in q.exclusions.first_level_prefixes
    return None if none else True
