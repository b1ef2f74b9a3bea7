"""Sent batches of a sink, and the receipts that they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from threading import Lock
from time import monotonic
from typing import Final

from gateway.endpoints.base import Settle
from gateway.model.outcome import RETRY, Settlement

PUBLISHER_KEY: Final = b"gateway\0"  # eight bytes: the key in the library's table of publishers
_ASYNCHRONOUS: Final = b"\2"  # the type of receipt that the library passes to that table


class SentBatch:
    """One batch given to the sink, settled once all its messages have an answer.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, size: int, settled: Settle) -> None:
        self._settlements: list[Settlement | None] = [None] * size
        self._unanswered = size
        self._settled = settled
        self._lock = Lock()

    def settle(self, positions: Sequence[int], settlement: Settlement) -> bool:
        """Settle the messages at `positions`; a second settlement of a message is ignored.

        Return whether this call settled the last message; the caller must then call `answer`.
        """
        with self._lock:
            unsettled = [each for each in positions if self._settlements[each] is None]
            for position in unsettled:
                self._settlements[position] = settlement
            if not unsettled or not self._unanswered:
                return False
            self._unanswered -= len(unsettled)
            return not self._unanswered

    def abandon(self) -> bool:
        """Drop the batch without an answer; return False if a message has one already."""
        with self._lock:
            if any(self._settlements) or not self._unanswered:
                return False
            self._unanswered = 0
            return True

    def settle_rest(self, settlement: Settlement) -> None:
        """Settle all messages without an answer, and answer."""
        with self._lock:
            if not self._unanswered:
                return
            self._unanswered = 0
            self._settlements = [each or settlement for each in self._settlements]
        self.answer()

    def answer(self) -> None:
        """Report the settlements to the sender of the batch; call it once."""
        settlements: Sequence[Settlement] = [each or RETRY for each in self._settlements]
        self._settled(settlements)


class PendingReceipts:
    """The messages that wait for receipts, and the time of the last receipt.

    Tags stay here after the connection ends: the library holds their addresses until it is closed.
    Thread-safe: each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._pending: dict[bytes, tuple[SentBatch, int]] = {}  # by tag
        self._last_sign = 0.0  # time of the last receipt, or of the first message after a pause

    def expect(self, batch: SentBatch, position: int) -> bytes:
        """Return the tag of the receipt for the message at `position`."""
        if not self._pending:
            self._last_sign = monotonic()
        tag = _ASYNCHRONOUS + PUBLISHER_KEY + next(self._numbers).to_bytes(8, "little")
        self._pending[tag] = batch, position
        return tag

    def take(self, tag: bytes) -> tuple[SentBatch, int] | None:
        """Return the batch and the position of a receipt, or None for a repeated receipt."""
        self._last_sign = monotonic()
        return self._pending.pop(tag, None)

    def silent_for(self) -> float:
        """Return the seconds without a receipt, or 0 when no message waits for one."""
        return monotonic() - self._last_sign if self._pending else 0.0

    def batches(self) -> list[SentBatch]:
        """Return the batches that wait, oldest first."""
        return list(dict.fromkeys(batch for batch, _ in list(self._pending.values())))
