"""The limits of names at one broker, beside those of its system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gateway.model.dead_letter_rule import (
    FORBIDDEN_CHARACTER,
    FORBIDDEN_FIRST_LEVEL,
    FORBIDDEN_PATTERN,
    RESERVED,
    DeadLetterRule,
)
from gateway.model.limits import Unit
from gateway.model.matching import matches
from gateway.model.pattern import Pattern
from gateway.setting import setting, size

ANY_REST = "*"  # at the end of a first level: every level that begins so


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLimits:
    """Limits of names at one broker, such as a hosted MQTT service.

    The texts are in the spelling of the broker's system, as it receives a name.
    """

    bytes: int | None = size("longest name, in bytes of UTF-8", None, minimum=1)
    characters: int | None = setting("longest name, in characters", None, minimum=1)
    levels: int | None = setting("most levels of a name", None, minimum=1)
    level_characters: int | None = setting("longest level, in characters", None, minimum=1)
    forbidden_characters: str = setting(
        "characters that no level of a name contains, as one text", ""
    )
    forbidden_first_levels: tuple[str, ...] = setting(
        "first levels with which no name begins; `$*` stands for all that begin with `$`", ()
    )
    allowed_first_levels: tuple[str, ...] = setting(
        "exceptions from `forbidden_first_levels`, written in the same way", ()
    )
    forbidden_patterns: tuple[str, ...] = setting(
        "subscriptions of the broker; no name matches one", ()
    )

    @property
    def maxima(self) -> dict[Unit, int]:
        """The figures that are set, by unit."""
        figures = {unit: getattr(self, unit.name.lower()) for unit in Unit}
        return {unit: most for unit, most in figures.items() if most is not None}

    def with_those_of(self, other: NameLimits) -> NameLimits:
        """Return limits that refuse what either of both refuses."""
        merged: dict[str, Any] = {**other.set_fields(), **self.set_fields()}
        for name in self.set_fields().keys() & other.set_fields().keys():
            both = getattr(self, name), getattr(other, name)
            merged[name] = min(both) if isinstance(both[0], int) else both[0] + both[1]
        return NameLimits(**merged)

    @classmethod
    def from_fields(cls, found: Mapping[str, Any]) -> NameLimits:
        """Return limits from the values of `set_fields`, which JSON may have made lists."""
        lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
        return cls(**{**found, **lists})

    def set_fields(self) -> Mapping[str, int | str | tuple[str, ...]]:
        """Return the limits that are set, by name: plain values for JSON."""
        every = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in every.items() if value not in (None, "", ())}


FIELDS = tuple(field.name for field in fields(NameLimits))


@dataclass(frozen=True)  # no slots: cached properties need a __dict__
class Refusals:
    """The rules about names that no figure expresses; a name is compared as the broker receives it.

    `server_levels` are first levels of names that the broker makes itself, such as `$SYS` of MQTT.
    Each of `patterns` has its text.
    """

    limits: NameLimits
    server_levels: tuple[str, ...] = ()
    patterns: tuple[tuple[str, Pattern], ...] = ()

    def fault(self, levels: Sequence[str]) -> tuple[DeadLetterRule, str] | None:
        """Return the rule that refuses a name with these levels, and the reason."""
        if levels[0] in self.server_levels:
            return RESERVED, f"names that begin with {levels[0]!r} belong to the broker"
        joined = "".join(levels) if self.limits.forbidden_characters else ""
        if found := [each for each in self.limits.forbidden_characters if each in joined]:
            char = min(found, key=joined.index)
            return FORBIDDEN_CHARACTER, f"the limits of the endpoint forbid {char!r}"
        refused, taken = self.limits.forbidden_first_levels, self.limits.allowed_first_levels
        if refused and _is_one_of(levels[0], refused) and not _is_one_of(levels[0], taken):
            reason = f"the limits of the endpoint forbid the first {levels[0]!r}"
            return FORBIDDEN_FIRST_LEVEL, reason
        for text, pattern in self.patterns:
            if matches(pattern, levels):
                return FORBIDDEN_PATTERN, f"the limits of the endpoint forbid {text!r}"
        return None


def _is_one_of(level: str, words: Sequence[str]) -> bool:
    return any(
        level.startswith(word.removesuffix(ANY_REST)) if word.endswith(ANY_REST) else level == word
        for word in words
    )
