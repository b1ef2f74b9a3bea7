"""Limits on the length and depth of a name, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gateway.model.dead_letter_rule import LEVEL_TOO_LONG, TOO_DEEP, TOO_LONG, DeadLetterRule


class Unit(Enum):
    """The unit of a limit; the value is the word printed after the figure."""

    BYTES = "bytes"  # of UTF-8
    CHARACTERS = "characters"
    LEVELS = "levels"
    LEVEL_CHARACTERS = "characters in one level"


RULES = {
    Unit.BYTES: TOO_LONG,
    Unit.CHARACTERS: TOO_LONG,
    Unit.LEVELS: TOO_DEEP,
    Unit.LEVEL_CHARACTERS: LEVEL_TOO_LONG,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `maximum` of `unit`; `reference` names the document that states it.

    The system reserves `reserve` of a name with `reserve_levels` levels for itself, and a part of
    `reserve` for fewer levels. The vendor states only the two ends (TIBCO EMS User's Guide,
    destination names).
    """

    unit: Unit
    maximum: int
    reference: str
    reserve: int = 0
    reserve_levels: int = 1

    def maximum_received(self, levels: int) -> int:
        """Return the maximum for a received name of `levels` levels: the stated figures only."""
        return self.maximum - (self.reserve if levels >= self.reserve_levels else 0)

    def maximum_made(self, levels: int) -> int:
        """Return the maximum for a name the gateway makes: a straight line through the two ends."""
        return self.maximum + (-self.reserve * levels) // self.reserve_levels

    def reason_made(self, levels: int) -> str:
        """Return why `maximum_made` is lower, in brackets; "" where it is the stated figure."""
        if not self.reserve:
            return ""
        plural = "" if levels == 1 else "s"
        less = self.maximum - self.maximum_made(levels)
        return f" ({self.maximum} less {less} for {levels} level{plural})"

    @property
    def rule(self) -> DeadLetterRule:
        return RULES[self.unit]
