"""Grow a name of a flow in length or depth until its target refuses it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from gateway.dialects.name_size import measure
from gateway.dialects.names import split_levels
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import AnyMany, Glob, Literal
from gateway.proofs.flows.flow import Flow, Part, levels_by_position
from gateway.proofs.search.translated_name import RefusedName, TranslatedName, translate_name

# Sizes by outline; None: the source has no name past the limit.
KnownEdges: TypeAlias = dict[object, int | None]

MAX_GUESSES = 8
GUESS_TOLERANCE = 8  # characters that a guess may be off by


@dataclass(frozen=True, slots=True)
class NameGrowth:
    """Names that grow from `plain`, a name of `flow`, by more and more of `filler`.

    No level grows past `cap` characters. `limit` is the limit to reach.
    """

    flow: Flow
    plain: TranslatedName
    filler: str
    cap: int | None
    limit: Limit

    def find_edge(self, known: KnownEdges) -> tuple[TranslatedName, RefusedName] | None:
        """Return the longest name that fits and the next one; None when every name fits.

        `known` keeps the results for flows with the same outline.
        """
        outline = self._outline()
        if outline in known:
            size = known[outline]
            if size is None:
                return None
            fits, over = self._translated(size), self._translated(size + 1)
            if isinstance(fits, TranslatedName) and isinstance(over, RefusedName):
                return fits, over
        known[outline], found = self._search()
        return found

    def _outline(self) -> object:
        """Return all that determines the growth: lengths of texts, and the variables."""
        here, there = self.flow.source.route.dialect, self.flow.target.renderer.dialect
        texts = (
            *split_levels(self.plain.source_name, here),
            *split_levels(self.plain.target_name, there),
        )
        pattern, made = self.flow.pattern.levels, self.flow.target_levels
        return (
            (self.filler, self.cap, self.limit, id(here), id(there), self.flow.source.excludes),
            tuple((len(text), len(text.encode())) for text in texts),
            tuple(None if isinstance(level, Literal) else level for level in pattern),
            tuple(_lengths(level) if isinstance(level, tuple) else level for level in made),
        )

    def _search(self) -> tuple[int | None, tuple[TranslatedName, RefusedName] | None]:
        """Search the size at the edge, and the names on both sides."""
        low, fits = 0, self.plain
        high = next((size for size in (1, 2, 3) if self._translated(size) is not None), 1)
        over = self._translated(high)
        grown = self._size(over) - self._size(fits) if isinstance(over, TranslatedName) else 1
        slope = max(1, grown // high)
        for _ in range(MAX_GUESSES):
            if not isinstance(over, TranslatedName):
                break
            low, fits = high, over
            high += max(1, (self._maximum(over) - self._size(over)) // slope + 1)
            over = self._translated(high)
        probe = max(low, high - GUESS_TOLERANCE - high // 32)
        if over is None and (probe == low or self._translated(probe) is None):
            return None, None  # the source has no such long name
        probe = high - 1  # the guess is right when the size grows evenly
        while high - low > 1:
            found = self._translated(probe)
            if isinstance(found, TranslatedName):
                low, fits = probe, found
            else:
                high, over = probe, found
            probe = (low + high) // 2
        return (low, (fits, over)) if isinstance(over, RefusedName) else (None, None)

    def _translated(self, size: int) -> TranslatedName | RefusedName | None:
        levels = self._grown_levels(size)
        if levels is None:
            return None
        return translate_name(self.flow.source.route, self.flow.target, levels)

    def _size(self, found: TranslatedName) -> int:
        dialect = self.flow.target.renderer.dialect
        name, levels = dialect.limited(found.target_name, split_levels(found.target_name, dialect))
        return measure(name, levels, self.limit.unit, 0)

    def _maximum(self, found: TranslatedName) -> int:
        levels = split_levels(found.target_name, self.flow.target.renderer.dialect)
        return self.limit.maximum_made(len(levels))

    def _grown_levels(self, size: int) -> tuple[str, ...] | None:
        """Return the name with `size` more characters or levels; None when they have no room.

        The variables that stand in the target name most often grow first.
        """
        groups = levels_by_position(self.flow.pattern, self.plain.source_levels)
        left = size
        for position, _ in Counter(self.flow.limited_variables).most_common():
            groups[position], left = self._fill(position, groups[position], left)
        return None if left else tuple(level for group in groups for level in group)

    def _fill(
        self, position: int, group: tuple[str, ...], left: int
    ) -> tuple[tuple[str, ...], int]:
        """Fill `group` with as much of `left` as fits; return it with the remainder."""
        level = self.flow.pattern.levels[position]
        many = isinstance(level, AnyMany)
        if self.limit.unit is Unit.LEVELS:
            return ((*group, *["x"] * left), 0) if many else (group, left)
        after = len(level.parts[0]) if isinstance(level, Glob) else 0
        made: list[str] = []
        for text in group:
            size = min(left, self._room(text, left))
            made.append(text[:after] + self.filler * size + text[after:])
            left -= size
        while many and left:
            size = min(left, self._room("", left))
            made.append(self.filler * size)
            left -= size
        return tuple(made), left

    def _room(self, text: str, left: int) -> int:
        return left if self.cap is None else max(0, self.cap - len(text))


def _lengths(parts: tuple[Part, ...]) -> tuple[int | Part, ...]:
    return tuple(len(part) if isinstance(part, str) else part for part in parts)
