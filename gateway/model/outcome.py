"""How a delivery ends: accepted, to be tried again, or rejected with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    ACCEPTED = "accepted"  # the receiver has taken responsibility
    RETRY = "retry"  # unknown or not now; sending again may double it
    REJECTED = "rejected"  # never for this message; it becomes a dead letter
    SPOOLED = "spooled"  # the target is away: ours until it is back, on disk


@dataclass(frozen=True, slots=True)
class Settlement:
    outcome: Outcome
    rule: str = ""  # short name of the rule that rejected it
    reason: str = ""  # the text a person reads


ACCEPTED = Settlement(Outcome.ACCEPTED)
RETRY = Settlement(Outcome.RETRY)
SPOOLED = Settlement(Outcome.SPOOLED)


def rejected(rule: str, reason: str) -> Settlement:
    return Settlement(Outcome.REJECTED, rule, reason)
