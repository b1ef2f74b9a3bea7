"""The outcome of a delivery: accepted, retry, rejected with a reason, or spooled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gateway.model.dead_letter_rule import DeadLetterRule


class Outcome(Enum):
    ACCEPTED = "accepted"  # the receiver has taken responsibility
    RETRY = "retry"  # unknown or not now; sending again may produce a duplicate
    REJECTED = "rejected"  # the message will never be accepted; it becomes a dead letter
    SPOOLED = "spooled"  # the target is unavailable; the gateway keeps the message on disk


@dataclass(frozen=True, slots=True)
class Settlement:
    outcome: Outcome
    rule: str = ""  # short name of the rule that rejected the message, or REPEAT
    reason: str = ""  # explanation for people


REPEAT = "repeat"  # rule of an accepted copy that the target had already, and kept once
ACCEPTED = Settlement(Outcome.ACCEPTED)
REPEATED = Settlement(Outcome.ACCEPTED, REPEAT, "the target knew it by its id, and kept it once")
RETRY = Settlement(Outcome.RETRY)
NO_ROOM = Settlement(Outcome.RETRY, "no-room", "the broker has no room now")  # any reason
SPOOLED = Settlement(Outcome.SPOOLED)


def rejected(rule: DeadLetterRule, reason: str) -> Settlement:
    return Settlement(Outcome.REJECTED, rule, reason)
