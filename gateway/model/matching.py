"""Whether a pattern selects a name; never takes more than a pass over the name.

Patterns and levels must be spelled alike: both as one system writes them, or both canonical.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.pattern import AnyMany, AnyOne, Glob, Level, Literal, Pattern, Shy


def matches(pattern: Pattern, levels: Sequence[str]) -> bool:
    """Whether `pattern` selects the name with these `levels`."""
    parts = pattern.levels
    last = len(parts) - 1
    for at, part in enumerate(parts):
        if isinstance(part, AnyMany):
            if at < last:
                return _has_literals(parts, levels) and _matches_anywhere(
                    parts, levels, pattern.shy
                )
            return len(levels) >= at + part.minimum and _rest_is_free(levels, at, pattern.shy)
        if at >= len(levels) or not _takes(part, levels[at], at, pattern.shy):
            return False
    return len(levels) == len(parts)


def glob_matches(glob: Glob, text: str) -> bool:
    """Whether one level reads `text`: `parts` in order, first and last at the ends."""
    first, *middle, end = glob.parts
    stop = len(text) - len(end)
    if stop - len(first) < sum(map(len, middle)) + glob.minimum:
        return False
    if not (text.startswith(first) and text.endswith(end)):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at, stop)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _takes(part: Level, level: str, at: int, shy: Shy) -> bool:
    if isinstance(part, Literal):
        return part.text == level
    if level in shy.anywhere:
        return False
    if isinstance(part, Glob):
        return glob_matches(part, level)
    return at > 0 or not level.startswith(shy.first)


def _rest_is_free(levels: Sequence[str], at: int, shy: Shy) -> bool:
    if at == 0 and levels and shy.first and levels[0].startswith(shy.first):
        return False
    return not shy.anywhere or not any(level in shy.anywhere for level in levels[at:])


def _has_literals(parts: Sequence[Level], levels: Sequence[str]) -> bool:
    """Whether the name has every literal somewhere, which most names have not."""
    present = set(levels)
    return all(part.text in present for part in parts if isinstance(part, Literal))


def _matches_anywhere(parts: tuple[Level, ...], levels: Sequence[str], shy: Shy) -> bool:
    """All ways at once: bit `i` of `state` says that the parts before `i` took what came so far.

    A number of bits moves in one step, so `#/a/#/a/#...` costs a step for each level.
    """
    parts = _without_minimum(parts)
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
        if level not in shy.anywhere:
            taken |= sum(bit for bit, glob in globs if state & bit and glob_matches(glob, level))
            if at > 0 or not level.startswith(shy.first):
                taken |= state & one
                stayed = state & many
        state = taken << 1 | stayed
        state |= (state & many) << 1
        if not state:
            return False
    return bool(state >> len(parts) & 1)


def _without_minimum(parts: tuple[Level, ...]) -> tuple[Level, ...]:
    """The same selection in which every `AnyMany` may be empty and none follows another."""
    flat: list[Level] = []
    for part in parts:
        if not isinstance(part, AnyMany):
            flat.append(part)
            continue
        if part.minimum:
            flat.append(AnyOne())
        if not (flat and isinstance(flat[-1], AnyMany)):
            flat.append(AnyMany(0))
    return tuple(flat)
