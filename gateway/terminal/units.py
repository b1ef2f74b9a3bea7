"""Durations and sizes in their largest suitable unit, and numbers with their noun."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_UNIT_FACTOR: Final = 1024


def duration(seconds: float) -> str:
    for unit, length, next_length in (("s", 1, 100), ("min", 60, 6_000), ("h", 3_600, 172_800)):
        if seconds < next_length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 error`, `2,000 errors`, `2 copies` with a `plural`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def size(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in _UNITS[:-1]:
        if count < _UNIT_FACTOR:
            return f"{count:.0f} {unit}"
        count /= _UNIT_FACTOR
    return f"{count:.0f} {_UNITS[-1]}"
