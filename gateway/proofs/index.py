"""Pairs of patterns that may overlap, found without asking every pair; it decides none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeVar

from gateway.model.aligned import aligned
from gateway.model.alphabet import EVERYTHING
from gateway.model.pattern import AnyMany, Literal, Pattern

SMALL = 64  # so many pairs are asked one by one
DEEPEST = 32  # levels that the patterns are sorted by
L = TypeVar("L")
T = TypeVar("T")
R = TypeVar("R")


def overlapping(
    lefts: Sequence[tuple[Pattern, L]], rights: Sequence[tuple[Pattern, R]]
) -> Iterator[tuple[L, R]]:
    """Every pair whose patterns overlap, and a few others that only a search can tell."""
    for (one, left), (other, right) in _near(lefts, rights, 0):
        if aligned(one, other, EVERYTHING) is not False:
            yield left, right


def _near(
    lefts: Sequence[tuple[Pattern, L]], rights: Sequence[tuple[Pattern, R]], depth: int
) -> Iterator[tuple[tuple[Pattern, L], tuple[Pattern, R]]]:
    """Pairs without two different literals in one place before any rest wildcard."""
    if len(lefts) * len(rights) <= SMALL or depth == DEEPEST:
        yield from product(lefts, rights)
        return
    here, there = _divided(lefts, depth), _divided(rights, depth)
    open_left, open_right = here.pop(AnyMany, []), there.pop(AnyMany, [])
    yield from product(open_left, rights)
    yield from product([each for rows in here.values() for each in rows], open_right)
    wild_left, wild_right = here.pop(None, []), there.pop(None, [])
    yield from _near(wild_left, wild_right, depth + 1)
    for text, rows in here.items():
        yield from _near(rows, [*there.get(text, ()), *wild_right], depth + 1)
    for others in there.values():
        yield from _near(wild_left, others, depth + 1)


def _divided(
    rows: Sequence[tuple[Pattern, T]], depth: int
) -> dict[str | type[AnyMany] | None, list[tuple[Pattern, T]]]:
    """By the literal at `depth`, None for another level; `AnyMany` for what has no such place."""
    found: dict[str | type[AnyMany] | None, list[tuple[Pattern, T]]] = {}
    for row in rows:
        levels = row[0].levels
        level = levels[depth] if depth < len(levels) else None
        key: str | type[AnyMany] | None = level.text if isinstance(level, Literal) else None
        if level is None or isinstance(level, AnyMany):
            key = AnyMany
        found.setdefault(key, []).append(row)
    return found
