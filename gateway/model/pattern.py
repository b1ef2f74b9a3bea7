"""Patterns: a subscription as levels, with the differences between systems made explicit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this level; `text` may look like a wildcard."""

    text: str


@dataclass(frozen=True, slots=True)
class Glob:
    """One level: `parts` joined by runs of any characters; a prefix `red*` is `("red", "")`.

    The runs together take at least `minimum` characters (the last star of a YAMI4 tag takes one).
    """

    parts: tuple[str, ...]
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class AnyOne:
    """Exactly one level, which may be empty."""


@dataclass(frozen=True, slots=True)
class AnyMany:
    """Any number of levels, at least `minimum` (0 or 1), at any position of the pattern."""

    minimum: int


Level: TypeAlias = Literal | Glob | AnyOne | AnyMany


@dataclass(frozen=True, slots=True)
class WildcardExclusions:
    """Levels that the wildcards of a system never match.

    A first level that begins with one of `first_level_prefixes` is not matched by `AnyOne` and
    `AnyMany` (MQTT 4.7.2: `#` does not match `$SYS/x`). A level that equals one of `whole_levels`
    is matched by no wildcard and no `Glob` at any position (SMF: `#P2P`).
    """

    first_level_prefixes: tuple[str, ...] = ()
    whole_levels: tuple[str, ...] = ()


NO_EXCLUSIONS = WildcardExclusions()


@dataclass(frozen=True, slots=True)
class Pattern:
    """Levels in order, and the levels that its wildcards never match."""

    levels: tuple[Level, ...]
    exclusions: WildcardExclusions = NO_EXCLUSIONS
