"""A store of memories that a test reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Store:
    """A store with the facts of one role; None when they are damaged. Mutable."""

    facts: Mapping[str, Any] | None = field(default_factory=dict)
    saved: int = 0

    def load(self, _role: str) -> Mapping[str, Any] | None:
        return self.facts

    def save(self, _role: str, facts: Mapping[str, Any]) -> None:
        self.facts = dict(facts)
        self.saved += 1

    def beside(self, _role: str) -> str:
        return ""

    def say_damaged(self, role: str, error: Exception) -> None:
        raise AssertionError(role, error)
