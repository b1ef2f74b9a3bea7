"""A name of a flow, made longer or deeper until its target refuses it; it judges no figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from gateway.dialects.limits import measured
from gateway.dialects.names import split
from gateway.model.limits import Limit, Unit
from gateway.model.pattern import AnyMany, Glob, Literal
from gateway.proofs.flows.flow import Flow, Part, Seq, Var, spread
from gateway.proofs.search.witness import Refused, Sent, attempt

Edges: TypeAlias = dict[object, int | None]  # how far a name grew; None: as far as its source lets

GUESSES = 8
NEAR = 8  # characters that a guess may be wrong by, and one for every level of 32


@dataclass(frozen=True, slots=True)
class Growth:
    """The levels of `plain`, a name of `flow`, with more and more of `filler`.

    No level is grown past `cap` characters. `limit` is the one to reach.
    """

    flow: Flow
    plain: Sent
    filler: str
    cap: int | None
    limit: Limit

    def edge(self, known: Edges) -> tuple[Sent, Refused] | None:
        """The longest name that fits and the next one; None when all that the source has fit.

        `known` keeps what was found for flows of the same outline, and gets what is found here.
        """
        outline = self._outline()
        if outline in known:
            size = known[outline]
            if size is None:
                return None
            fits, over = self._at(size), self._at(size + 1)
            if isinstance(fits, Sent) and isinstance(over, Refused):
                return fits, over
        known[outline], found = self._search()
        return found

    def _outline(self) -> object:
        """All that decides how much the name can grow: lengths for texts, and what grows."""
        here, there = self.flow.site.route.dialect, self.flow.target.renderer.dialect
        texts = (*split(self.plain.name, here), *split(self.plain.made, there))
        return (
            (self.filler, self.cap, self.limit, id(here), id(there), self.flow.site.excludes),
            tuple((len(text), len(text.encode())) for text in texts),
            tuple(
                None if isinstance(level, Literal) else level for level in self.flow.pattern.levels
            ),
            tuple(
                _lengths(level) if isinstance(level, tuple) else level for level in self.flow.made
            ),
        )

    def _search(self) -> tuple[int | None, tuple[Sent, Refused] | None]:
        """How much the name grows until the edge, and both its sides."""
        low, fits = 0, self.plain
        high = next((size for size in (1, 2, 3) if self._at(size) is not None), 1)
        over = self._at(high)
        grown = self._size(over) - self._size(fits) if isinstance(over, Sent) else 1
        slope = max(1, grown // high)
        for _ in range(GUESSES):
            if not isinstance(over, Sent):
                break
            low, fits = high, over
            high += max(1, (self._most(over) - self._size(over)) // slope + 1)
            over = self._at(high)
        probe = max(low, high - NEAR - high // 32)
        if over is None and (probe == low or self._at(probe) is None):
            return None, None  # the source ends long before the target does
        probe = high - 1  # the guess is good when the size grows evenly
        while high - low > 1:
            found = self._at(probe)
            if isinstance(found, Sent):
                low, fits = probe, found
            else:
                high, over = probe, found
            probe = (low + high) // 2
        return (low, (fits, over)) if isinstance(over, Refused) else (None, None)

    def _at(self, size: int) -> Sent | Refused | None:
        levels = self._grown(size)
        if levels is None:
            return None
        return attempt(self.flow.site.route, self.flow.target, levels)

    def _size(self, found: Sent) -> int:
        levels = split(found.made, self.flow.target.renderer.dialect)
        return measured(found.made, levels, self.limit.unit, 0)

    def _most(self, found: Sent) -> int:
        return self.limit.made(len(split(found.made, self.flow.target.renderer.dialect)))

    def _grown(self, size: int) -> tuple[str, ...] | None:
        """The name with `size` more characters, or levels; None when it has no room for them."""
        groups = spread(self.flow.pattern, self.plain.levels)
        left = size
        for at in self._places():
            group, left = self._filled(at, groups[at], left)
            groups[at] = group
        return None if left else tuple(level for group in groups for level in group)

    def _places(self) -> list[int]:
        """The unknowns of the made name; those first that stand there most often."""
        found: Counter[int] = Counter()
        for level in self.flow.made:
            parts = level if isinstance(level, tuple) else (level,)
            for part in parts:
                if isinstance(part, Seq | Var):
                    found[part.at] += 1
        return [at for at, _ in found.most_common()]

    def _filled(self, at: int, group: tuple[str, ...], left: int) -> tuple[tuple[str, ...], int]:
        """`group` with as much of `left` as goes in, and what is left then."""
        level = self.flow.pattern.levels[at]
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
