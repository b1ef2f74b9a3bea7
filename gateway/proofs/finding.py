"""What the proofs answer; nothing is proved here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a proof found about a source of a route, or about one of its targets.

    `source` and `target` count from 0 within the route. `target` is None when the source alone
    is at fault.

    `example` holds names to paste, `ends` the endpoint of each, whose system spells it so.
    """

    route: str
    source: int
    target: int | None
    rule: str
    severity: Severity
    text: str
    hint: str
    example: tuple[str, ...]
    ends: tuple[str, ...] = ()
