"""How long, deep or wide a name may be, as data; it measures nothing by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Unit(Enum):
    """What a limit counts; the value is the word a person reads behind the figure."""

    BYTES = "bytes"  # of UTF-8
    CHARACTERS = "characters"
    LEVELS = "levels"
    LEVEL_CHARACTERS = "characters in one level"


RULES = {
    Unit.BYTES: "too-long",
    Unit.CHARACTERS: "too-long",
    Unit.LEVELS: "too-deep",
    Unit.LEVEL_CHARACTERS: "level-too-long",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `maximum` of `unit`, by `source`.

    A system may keep `reserve` of it for itself when a name has `at` levels, and a share of it
    before; the vendor tells only the two ends (TIBCO EMS User's Guide, destination names).
    """

    unit: Unit
    maximum: int
    source: str
    reserve: int = 0
    at: int = 1

    def received(self, levels: int) -> int:
        """The most a name of `levels` levels that comes in may have: only what is stated."""
        return self.maximum - (self.reserve if levels >= self.at else 0)

    def made(self, levels: int) -> int:
        """The most a name that we make may have: a straight line through the two ends."""
        return self.maximum + (-self.reserve * levels) // self.at

    @property
    def rule(self) -> str:
        return RULES[self.unit]
