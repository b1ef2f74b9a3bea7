"""Test whether a pattern selects a name, in one pass over the name.

The pattern and the levels must have the same spelling: both of one system, or both canonical.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, WildcardExclusions

ANY_ONE = AnyOne()


def matches(pattern: Pattern, levels: Sequence[str]) -> bool:
    """Return whether `pattern` selects the name with these `levels`."""
    parts, exclusions = pattern.levels, pattern.exclusions
    last = len(parts) - 1
    for at, part in enumerate(parts):
        if isinstance(part, AnyMany):
            if at < last:
                return _has_literals(parts, levels) and _matches_inner_rest(pattern, levels)
            return len(levels) >= at + part.minimum and _rest_is_allowed(levels, at, exclusions)
        if at >= len(levels) or not admits(part, levels[at], exclusions, first=at == 0):
            return False
    return len(levels) == len(parts)


def glob_matches(glob: Glob, text: str) -> bool:
    """Return whether the level `text` has the parts of `glob` in order, with both ends fixed."""
    first, *inner, end = glob.parts
    stop = len(text) - len(end)
    if stop - len(first) < sum(map(len, inner)) + glob.minimum:
        return False
    if not (text.startswith(first) and text.endswith(end)):
        return False
    at = len(first)
    for part in inner:
        found = text.find(part, at, stop)
        if found < 0:
            return False
        at = found + len(part)
    return True


def admits(
    single: Literal | Glob | AnyOne, level: str, exclusions: WildcardExclusions, *, first: bool
) -> bool:
    """Return whether `single` matches `level`; `first` for the first level of the name."""
    if isinstance(single, Literal):
        return single.text == level
    if level in exclusions.whole_levels:
        return False
    if isinstance(single, Glob):
        return glob_matches(single, level)
    return not (first and level.startswith(exclusions.first_level_prefixes))


def _rest_is_allowed(levels: Sequence[str], at: int, exclusions: WildcardExclusions) -> bool:
    prefixes, excluded = exclusions.first_level_prefixes, exclusions.whole_levels
    if at == 0 and levels and prefixes and levels[0].startswith(prefixes):
        return False
    return not excluded or not any(level in excluded for level in levels[at:])


def _has_literals(parts: Sequence[Level], levels: Sequence[str]) -> bool:
    """Return whether every literal occurs in the name; for most names one does not."""
    present = set(levels)
    return all(part.text in present for part in parts if isinstance(part, Literal))


def _matches_inner_rest(pattern: Pattern, levels: Sequence[str]) -> bool:
    """Match a pattern with a rest wildcard that is not last, all alternatives at once.

    Bit `i` of `state` is set when the parts before `i` match the levels so far. One step moves
    all bits, so `#/a/#/a/#...` takes one step for each level.
    """
    parts, exclusions = _without_minimum(pattern.levels), pattern.exclusions
    many = one = 0
    literals: dict[str, int] = {}
    globs: list[tuple[int, Glob]] = []
    for at, part in enumerate(parts):
        bit = 1 << at
        match part:
            case AnyMany():
                many |= bit
            case AnyOne():
                one |= bit
            case Literal(text):
                literals[text] = literals.get(text, 0) | bit
            case Glob():
                globs.append((bit, part))
    state = 1 | (many & 1) << 1
    for at, level in enumerate(levels):
        taken = state & literals.get(level, 0)
        stayed = 0
        if level not in exclusions.whole_levels:
            taken |= sum(bit for bit, glob in globs if state & bit and glob_matches(glob, level))
            if at > 0 or not level.startswith(exclusions.first_level_prefixes):
                taken |= state & one
                stayed = state & many
        state = taken << 1 | stayed
        state |= (state & many) << 1
        if not state:
            return False
    return bool(state >> len(parts) & 1)


def _without_minimum(parts: Sequence[Level]) -> list[Level]:
    """Return equivalent parts in which every `AnyMany` may be empty and none follows another."""
    flat: list[Level] = []
    for part in parts:
        if isinstance(part, AnyMany):
            flat += [ANY_ONE] * part.minimum
            if not (flat and isinstance(flat[-1], AnyMany)):
                flat.append(AnyMany(0))
        else:
            flat.append(part)
    return flat
