"""A concrete address: levels without wildcards, the same value whatever system spelled it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Levels in order, at least one; a level may be empty and may hold any character."""

    levels: tuple[str, ...]
