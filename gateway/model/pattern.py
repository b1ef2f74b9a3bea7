"""What a subscription selects, as levels; it carries the differences that characters hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this level, whatever it looks like elsewhere."""

    text: str


@dataclass(frozen=True, slots=True)
class Glob:
    """One level: `parts` joined by runs of any characters; a prefix `red*` is `("red", "")`.

    `minimum` characters at least are taken by the runs together (YAMI4's last star takes one).
    """

    parts: tuple[str, ...]
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class AnyOne:
    """Exactly one level, an empty one too."""


@dataclass(frozen=True, slots=True)
class AnyMany:
    """Any number of levels, `minimum` (0 or 1) at least; it may stand anywhere."""

    minimum: int


Level: TypeAlias = Literal | Glob | AnyOne | AnyMany


@dataclass(frozen=True, slots=True)
class Shy:
    """What the wildcards of a system do not match, though their place is right.

    `first` holds prefixes that keep a standalone wildcard (`AnyOne`, `AnyMany`) away from the
    first level (MQTT 4.7.2: `#` does not match `$SYS/x`); `anywhere` holds whole levels that no
    wildcard and no `Glob` matches wherever they stand (SMF: `#P2P`).
    """

    first: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


BOLD = Shy()


@dataclass(frozen=True, slots=True)
class Pattern:
    """Levels in order, with what its wildcards shy away from."""

    levels: tuple[Level, ...]
    shy: Shy = BOLD
