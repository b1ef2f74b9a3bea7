"""Patterns that may overlap, found without asking every pair; it decides none.

Patterns are sorted twice, by their literals from the front and from the back, so that a wildcard
for many levels at one end leaves the other end to find them by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from gateway.model.aligned import aligned
from gateway.model.alphabet import EVERYTHING
from gateway.model.pattern import AnyMany, Level, Literal, Pattern

DEEPEST = 32  # levels that the patterns are sorted by
GLANCE = 64  # places that are looked at to choose the better end
T = TypeVar("T")
L = TypeVar("L")
R = TypeVar("R")


@dataclass(slots=True)
class _Node(Generic[T]):
    """What begins with the same levels. Mutable, because patterns are added.

    `ended` are the patterns without a further level, `rest` those that may have any here.
    """

    every: list[tuple[Pattern, T]] = field(default_factory=list)
    ended: list[tuple[Pattern, T]] = field(default_factory=list)
    rest: list[tuple[Pattern, T]] = field(default_factory=list)
    texts: dict[str, _Node[T]] = field(default_factory=dict)
    wild: _Node[T] | None = None

    def add(self, levels: Sequence[Level], row: tuple[Pattern, T]) -> None:
        node = self
        for level in levels[:DEEPEST]:
            node.every.append(row)
            if isinstance(level, AnyMany):
                break
            if isinstance(level, Literal):
                node = node.texts.setdefault(level.text, _Node())
            else:
                node.wild = node.wild or _Node()
                node = node.wild
        else:
            node.every.append(row)
            if len(levels) <= DEEPEST:
                node.ended.append(row)
                return
        node.rest.append(row)

    def groups(self, levels: Sequence[Level]) -> Iterator[list[tuple[Pattern, T]]]:
        """Groups of the patterns that no literal keeps away from `levels`; some are empty."""
        waiting: list[tuple[_Node[T], int]] = [(self, 0)]
        while waiting:
            node, at = waiting.pop()
            level = levels[at] if at < len(levels) else None
            if isinstance(level, AnyMany) or at == DEEPEST:
                yield node.every
                continue
            yield node.rest
            if level is None:
                yield node.ended
                continue
            found = [*node.texts.values(), node.wild]
            if isinstance(level, Literal):
                found = [node.texts.get(level.text), node.wild]
            waiting += [(each, at + 1) for each in found if each is not None]

    def crowd(self, levels: Sequence[Level]) -> float:
        """How many patterns `groups` has; infinite when that is not told at a glance."""
        size = 0
        for number, group in enumerate(self.groups(levels)):
            size += len(group)
            if number == GLANCE:
                return float("inf")
        return size


class Index(Generic[T]):
    """Values by pattern. Mutable: it grows, and an answer under way may miss what is added."""

    def __init__(self) -> None:
        self._front: _Node[T] = _Node()
        self._back: _Node[T] = _Node()

    def add(self, pattern: Pattern, value: T) -> None:
        self._front.add(pattern.levels, (pattern, value))
        self._back.add(pattern.levels[::-1], (pattern, value))

    def near(self, pattern: Pattern) -> Iterator[T]:
        """Every value whose pattern overlaps, and a few that only a search can tell from them."""
        levels, turned = pattern.levels, pattern.levels[::-1]
        groups = self._front.groups(levels)
        if self._back.crowd(turned) < self._front.crowd(levels):
            groups = self._back.groups(turned)
        for group in groups:
            for other, value in group:
                if aligned(other, pattern, EVERYTHING) is not False:
                    yield value


def overlapping(
    lefts: Sequence[tuple[Pattern, L]], rights: Sequence[tuple[Pattern, R]]
) -> Iterator[tuple[L, R]]:
    """Every pair whose patterns overlap, and a few others that only a search can tell."""
    index: Index[L] = Index()
    for pattern, left in lefts:
        index.add(pattern, left)
    for pattern, right in rights:
        for left in index.near(pattern):
            yield left, right
