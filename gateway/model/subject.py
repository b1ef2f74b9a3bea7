"""A subject: a concrete address without wildcards, in the canonical form of every system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """At least one level, in order; a level may be empty and may hold any character."""

    levels: tuple[str, ...]
