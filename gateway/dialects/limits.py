"""Rendered text against the limits of a dialect."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.dialect import Dialect
from gateway.model.limits import Limit, Unit


def over_limit(
    text: str,
    levels: Sequence[str],
    dialect: Dialect,
    *,
    made: bool,
    limits: Sequence[Limit] | None = None,
) -> tuple[Limit, int, int] | None:
    """The first limit that `text` breaks, what it has, and the most it may have."""
    if limits is None:
        characters, _, depth = dialect.surely_fits
        if len(text) <= characters and len(levels) <= depth:
            return None
        limits = dialect.limits
    for limit in limits:
        most = limit.made(len(levels)) if made else limit.received(len(levels))
        actual = measured(text, levels, limit.unit, most)
        if actual > most:
            return limit, actual, most
    return None


def measured(text: str, levels: Sequence[str], unit: Unit, most: int) -> int:
    match unit:
        case Unit.CHARACTERS:
            return len(text)
        case Unit.BYTES:
            return len(text) if text.isascii() else len(text.encode())
        case Unit.LEVELS:
            return len(levels)
        case Unit.LEVEL_CHARACTERS:
            return len(text) if len(text) <= most else max(map(len, levels))
