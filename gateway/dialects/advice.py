"""What is legal and asks for trouble: warnings, never errors."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import over_limit
from gateway.dialects.names import split
from gateway.model.limits import Limit


def warnings_of(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Advice about a legal name or subscription of `dialect`, in words.

    Spaces and unprintable characters (EMS User's Guide, Destination Name Syntax), tighter
    figures of other pages of the vendor, names that no bridge carries.
    """
    levels = split(text, dialect)
    found = [_past(limit, actual, most) for limit, actual, most in _all_past(text, levels, dialect)]
    if dialect.separator == "." and not dialect.tag_lists:
        odd = next((char for char in text if char == " " or not char.isprintable()), None)
        if odd is not None:
            found.append(f"{odd!r} is legal and advised against")
    own = [
        prefix for rule in dialect.first for prefix in rule.known if levels[0].startswith(prefix)
    ]
    if own:
        found.append(f"names that begin with {own[0]!r} have a meaning of their own")
    if any(level in dialect.inboxes for level in levels):
        found.append(
            f"a {dialect.inboxes[0]!r} level is the inbox of one client; it is not bridged"
        )
    return tuple(found)


def _all_past(text: str, levels: Sequence[str], dialect: Dialect) -> list[tuple[Limit, int, int]]:
    over = (
        over_limit(text, levels, dialect, made=True, limits=[limit]) for limit in dialect.advised
    )
    return [found for found in over if found is not None]


def _past(limit: Limit, actual: int, most: int) -> str:
    return f"is {actual} {limit.unit.value}; {limit.source} advises {most} at most"
