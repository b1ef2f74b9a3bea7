"""Advice about legal names and subscriptions: warnings, and the part of each limit they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.dialects.dialect import Dialect
from gateway.dialects.name_size import measure
from gateway.dialects.names import split_levels
from gateway.model.limits import Limit


def warnings_of(text: str, dialect: Dialect) -> tuple[str, ...]:
    """Return the warnings about a legal name or subscription of `dialect`, as text.

    They concern advised limits of the vendor, spaces and unprintable characters (EMS User's
    Guide, Destination Name Syntax), and names that are not bridged.
    """
    levels = split_levels(text, dialect)
    used = ((limit, _usage(text, levels, limit)) for limit in dialect.advised_limits)
    found = [
        f"is {each.actual} {each.unit}; {limit.reference} advises {each.maximum} at most"
        for limit, each in used
        if each.actual > each.maximum
    ]
    if dialect.warn_unprintable:
        unusual = next((char for char in text if char == " " or not char.isprintable()), None)
        if unusual is not None:
            found.append(f"{unusual!r} is legal and advised against")
    prefixes = (prefix for rule in dialect.prefix_rules for prefix in rule.allowed_prefixes)
    if prefix := next(filter(levels[0].startswith, prefixes), None):
        found.append(f"names that begin with {prefix!r} have a meaning of their own")
    if any(level in dialect.inbox_levels for level in levels):
        inbox = dialect.inbox_levels[0]
        found.append(f"a {inbox!r} level is the inbox of one client; it is not bridged")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """`actual` of at most `maximum`; `unit` is the unit of both, `why` tells of a lower maximum."""

    unit: str
    actual: int
    maximum: int
    why: str = ""


def limit_usage(name: str, dialect: Dialect) -> Iterator[LimitUsage]:
    """Return the usage of each limit of `dialect` by a legal `name` that the gateway makes."""
    text, levels = dialect.limited(name, split_levels(name, dialect))
    return (_usage(text, levels, limit) for limit in dialect.limits)


def _usage(text: str, levels: Sequence[str], limit: Limit) -> LimitUsage:
    maximum = limit.maximum_made(len(levels))
    why = limit.reason_made(len(levels))
    return LimitUsage(limit.unit.value, measure(text, levels, limit.unit, 0), maximum, why)
