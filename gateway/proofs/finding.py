"""The finding of a proof: a rule, a severity, a text and a counter-example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class RouteFinding:
    """One finding about a source of a route, or about one of its targets.

    `source` and `target` are indexes within the route, from 0; `target` is None for a finding
    about only the source. `example` holds names as the systems write them, `endpoints` the
    endpoint of each name.
    """

    route: str
    source: int
    target: int | None
    rule: str
    severity: Severity
    text: str
    hint: str
    example: tuple[str, ...]
    endpoints: tuple[str, ...] = ()
