"""An index of patterns that finds the candidates for an overlap without testing every pair.

Patterns are indexed twice, by their literals from the front and from the back. A wildcard for
many levels at one end therefore leaves the other end for the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import inf
from typing import Generic, TypeVar

from gateway.model.pattern import AnyMany, Level, Literal, Pattern
from gateway.model.quick_overlap import quick_overlap

MAX_INDEXED_LEVELS = 32
MAX_COUNTED_GROUPS = 64  # groups that are counted to choose the better end
T = TypeVar("T")
L = TypeVar("L")
R = TypeVar("R")


@dataclass(slots=True)
class _Node(Generic[T]):
    """The patterns that begin with the same levels.

    `ended` are the patterns without a further level, `rest` the patterns with a rest wildcard
    here, `children` the nodes by literal, `wildcard` the node of all other levels.
    Mutable: owned by its `OverlapIndex`.
    """

    every: list[tuple[Pattern, T]] = field(default_factory=list)
    ended: list[tuple[Pattern, T]] = field(default_factory=list)
    rest: list[tuple[Pattern, T]] = field(default_factory=list)
    children: dict[str, _Node[T]] = field(default_factory=dict)
    wildcard: _Node[T] | None = None

    def add(self, levels: Sequence[Level], row: tuple[Pattern, T]) -> None:
        node = self
        for level in levels[:MAX_INDEXED_LEVELS]:
            node.every.append(row)
            if isinstance(level, AnyMany):
                break
            if isinstance(level, Literal):
                node = node.children.setdefault(level.text, _Node())
            else:
                node.wildcard = node.wildcard or _Node()
                node = node.wildcard
        else:
            node.every.append(row)
            if len(levels) <= MAX_INDEXED_LEVELS:
                node.ended.append(row)
                return
        node.rest.append(row)

    def groups(self, levels: Sequence[Level], depth: int = 0) -> Iterator[list[tuple[Pattern, T]]]:
        """Yield groups of the patterns whose literals agree with `levels`; some are empty.

        Each node is visited when its group is wanted: a node may have a child for each route.
        """
        level = levels[depth] if depth < len(levels) else None
        if isinstance(level, AnyMany) or depth == MAX_INDEXED_LEVELS:
            yield self.every
            return
        yield self.rest
        if level is None:
            yield self.ended
            return
        children: Iterable[_Node[T] | None] = reversed(self.children.values())
        if isinstance(level, Literal):
            children = (self.children.get(level.text),)
        for node in chain((self.wildcard,), children):
            if node is not None:
                yield from node.groups(levels, depth + 1)

    def candidate_count(self, levels: Sequence[Level]) -> float:
        """Return how many patterns `groups` yields; infinite past `MAX_COUNTED_GROUPS` groups."""
        sizes = [len(group) for group in islice(self.groups(levels), MAX_COUNTED_GROUPS + 1)]
        return sum(sizes) if len(sizes) <= MAX_COUNTED_GROUPS else inf


class OverlapIndex(Generic[T]):
    """Values by pattern. An iteration of `candidates` may miss patterns added meanwhile.

    Mutable: owned by one thread.
    """

    def __init__(self) -> None:
        self._from_front: _Node[T] = _Node()
        self._from_back: _Node[T] = _Node()

    def add(self, pattern: Pattern, value: T) -> None:
        self._from_front.add(pattern.levels, (pattern, value))
        self._from_back.add(pattern.levels[::-1], (pattern, value))

    def candidates(self, pattern: Pattern) -> Iterator[T]:
        """Yield every value whose pattern overlaps, and a few that only a search can exclude."""
        levels, reverse = pattern.levels, pattern.levels[::-1]
        groups = self._from_front.groups(levels)
        if self._from_back.candidate_count(reverse) < self._from_front.candidate_count(levels):
            groups = self._from_back.groups(reverse)
        for group in groups:
            for other, value in group:
                if quick_overlap(other, pattern) is not False:
                    yield value


def candidate_pairs(
    lefts: Sequence[tuple[Pattern, L]], rights: Sequence[tuple[Pattern, R]]
) -> Iterator[tuple[L, R]]:
    """Yield every pair whose patterns overlap, and a few that only a search can exclude."""
    index: OverlapIndex[L] = OverlapIndex()
    for pattern, left in lefts:
        index.add(pattern, left)
    for pattern, right in rights:
        for left in index.candidates(pattern):
            yield left, right
