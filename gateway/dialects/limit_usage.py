"""The part of each limit of a system that a name uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import measure
from gateway.dialects.names import split_levels


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """`actual` of at most `maximum`; `unit` is the unit of both."""

    unit: str
    actual: int
    maximum: int


def limit_usage(name: str, dialect: Dialect) -> Iterator[LimitUsage]:
    """Yield the usage of each limit of `dialect` by a legal `name` that the gateway makes."""
    levels = split_levels(name, dialect)
    for limit in dialect.limits:
        maximum = limit.maximum_made(len(levels))
        yield LimitUsage(limit.unit.value, measure(name, levels, limit.unit, 0), maximum)
