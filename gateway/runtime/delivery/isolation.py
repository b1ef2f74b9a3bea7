"""Isolation of the messages that break connections: sent alone, counted, and rejected at last."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.model.outcome import rejected
from gateway.runtime.delivery.batch import QueuedBatch

MAX_SOLO_LOSSES: Final = 2  # connections a message may break alone; then it is poisoned
POISON_WINDOW: Final = 5.0  # seconds after a send; a later loss is not the message's fault


@dataclass(frozen=True, slots=True)
class UnansweredSend:
    """Part of a batch that was sent at a moment of the monotonic clock."""

    queued: QueuedBatch
    positions: Sequence[int]
    since: float


@dataclass(slots=True)
class Isolation:
    """A batch whose messages are sent one by one.

    `positions` are yet to be sent, None before the first; `number` is the send without an answer.
    """

    queued: QueuedBatch
    until: float  # when to begin although other sends have no answer
    attempts: int
    positions: deque[int] | None = None
    number: int = 0


def suspect(sends: Sequence[UnansweredSend], now: float) -> None:
    """Count a lost connection for a message that was the only one sent, shortly before."""
    if len(sends) != 1 or len(sends[0].positions) != 1:
        return
    if now - sends[0].since < POISON_WINDOW:
        sends[0].queued.solo_losses[sends[0].positions[0]] += 1


def reject_poisoned(queued: QueuedBatch, target: str) -> None:
    """Reject the messages of a batch that broke the connection to `target` alone."""
    poisoned = [at for at in queued.unsettled if queued.solo_losses[at] >= MAX_SOLO_LOSSES]
    reason = f"the connection to {target} broke each time it was sent"
    queued.settle(poisoned, [rejected("poisoned", reason)] * len(poisoned))
