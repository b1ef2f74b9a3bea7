"""The search for messages that break connections: by halves, then alone, and rejected at last."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.model.dead_letter_rule import POISONED
from gateway.model.outcome import rejected
from gateway.runtime.delivery.actions import Send
from gateway.runtime.delivery.outbound_batch import OutboundBatch

MAX_SOLO_LOSSES: Final = 2  # connections a message may break alone; then it is poisoned
POISON_WINDOW: Final = 5.0  # seconds after a send; a later loss is not the message's fault
WARY_SECONDS: Final = 60.0  # after a poisoned message, one loss is enough to search a batch
MAX_FRUITLESS: Final = 64  # losses of a search without an answer between them, and no pause


@dataclass(slots=True)
class Isolation:
    """A batch that is sent part by part; a part that breaks the connection is halved.

    `parts` are yet to be sent, in order, None before the first; `number` is the send without an
    answer.
    """

    batch: OutboundBatch
    until: float  # when to begin although other sends have no answer
    parts: deque[Sequence[int]] | None = None
    number: int = 0

    def begin(self) -> None:
        """Take up the parts to which earlier losses led, without what has its outcome.

        A search over several connections is one attempt.
        """
        unsettled = set(self.batch.unsettled)
        if not self.batch.parts:
            self.batch.attempts += 1
        parts = self.batch.parts or [self.batch.unsettled]
        left = ([each for each in part if each in unsettled] for part in parts)
        self.parts = deque(part for part in left if part)

    def narrow(self, send: Send | None, *, guilty: bool) -> None:
        """Keep the parts for the next connection; halve the one that is `guilty` of the loss."""
        if self.parts is None:
            return
        parts: list[Sequence[int]] = list(self.parts)
        if send is not None:
            unsettled = set(self.batch.unsettled)
            lost = [each for each in send.positions if each in unsettled]
            middle = (len(lost) + 1) // 2 if guilty else len(lost)
            parts[:0] = [lost[:middle], lost[middle:]]
        self.batch.parts = [part for part in parts if part]


class Search:
    """The losses of one lane, and the messages that they accuse.

    Mutable: owned by the lane.
    """

    def __init__(self) -> None:
        self.fruitless = 0  # losses since the last answer: then the target is well
        self._wary_until = 0.0

    def found(self, now: float) -> None:
        """Note that a message was poisoned: more of its kind may follow."""
        self._wary_until = now + WARY_SECONDS

    def is_wary(self, now: float) -> bool:
        """Return whether one lost connection is enough to search a batch."""
        return now < self._wary_until

    def lost(
        self,
        sends: Sequence[Send],
        isolation: Isolation | None,
        now: float,
        *,
        ours: bool,
    ) -> bool:
        """Find what broke the connection; return whether the search goes on without a pause.

        It was the only send without an answer, if that was shortly before; nothing if it is `ours`.
        """
        guilty = not ours and len(sends) == 1 and now - sends[0].since < POISON_WINDOW
        if guilty and len(sends[0].positions) == 1:
            sends[0].batch.solo_losses[sends[0].positions[0]] += 1
        if isolation is not None:
            isolation.narrow(sends[0] if sends else None, guilty=guilty)
        if ours or not sends or not (self.is_wary(now) or (guilty and isolation)):
            return False
        self.fruitless += 1
        return self.fruitless <= MAX_FRUITLESS


def reject_poisoned(batch: OutboundBatch, target: str) -> bool:
    """Reject the messages of a batch that broke the connection to `target` alone, if any."""
    poisoned = [at for at in batch.unsettled if batch.solo_losses[at] >= MAX_SOLO_LOSSES]
    reason = f"the connection to {target} broke each time it was sent"
    batch.settle(poisoned, [rejected(POISONED, reason)] * len(poisoned))
    return bool(poisoned)
