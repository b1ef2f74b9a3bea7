"""How much of a system's limits a name takes up; it refuses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.dialects.dialect import Dialect
from gateway.dialects.limits import measured
from gateway.dialects.names import split


@dataclass(frozen=True, slots=True)
class Used:
    """`actual` of at most `maximum` in `unit`."""

    unit: str
    actual: int
    maximum: int


def limits_used(name: str, dialect: Dialect) -> Iterator[Used]:
    """One figure for each limit of `dialect` that a legal `name` is held to, as one we made."""
    levels = split(name, dialect)
    for limit in dialect.limits:
        most = limit.made(len(levels))
        yield Used(limit.unit.value, measured(name, levels, limit.unit, 0), most)
