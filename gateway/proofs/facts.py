"""What the proofs are told about endpoints, and what they answer; nothing is proved here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.dialects.base import Dialect

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """`broker` is the same text for two endpoints that lead to one broker.

    `allow` holds what a route may send to, in `dialect`: patterns, or names that stand for
    themselves and all that lies below; empty allows everything.
    """

    broker: str
    dialect: Dialect
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a proof found about a source of a route, or about one of its targets.

    `source` and `target` count from 0 within the route. `target` is None when the source alone
    is at fault.

    `example` holds names to paste, each as the system spells it that the text says.
    """

    route: str
    source: int
    target: int | None
    rule: str
    severity: Severity
    text: str
    hint: str
    example: tuple[str, ...]
