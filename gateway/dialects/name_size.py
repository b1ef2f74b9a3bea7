"""The size of a name or a subscription, compared with the limits of its dialect."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.dialect import Dialect
from gateway.model.limits import Limit, Unit


def exceeded_limit(
    text: str, levels: Sequence[str], dialect: Dialect, *, made: bool
) -> tuple[Limit, int, int] | None:
    """Return the first limit that `text` exceeds, the actual size and the maximum.

    `made` selects the maximum for names the gateway makes.
    """
    characters, _, depth = dialect.safe_size
    if len(text) <= characters and len(levels) <= depth:
        return None
    text, levels = dialect.limited(text, levels)
    for limit in dialect.limits:
        count = len(levels)
        maximum = limit.maximum_made(count) if made else limit.maximum_received(count)
        actual = measure(text, levels, limit.unit, maximum)
        if actual > maximum:
            return limit, actual, maximum
    return None


def measure(text: str, levels: Sequence[str], unit: Unit, maximum: int) -> int:
    """Return the size of `text` in `unit`.

    For the longest level of a text within `maximum`, the size of the whole text will do.
    """
    match unit:
        case Unit.CHARACTERS:
            return len(text)
        case Unit.BYTES:
            return len(text) if text.isascii() else len(text.encode())
        case Unit.LEVELS:
            return len(levels)
        case Unit.LEVEL_CHARACTERS:
            return len(text) if len(text) <= maximum else max(map(len, levels))
