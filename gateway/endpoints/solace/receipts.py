"""The receipts that the messages of a sink wait for."""

from __future__ import annotations

from itertools import count
from time import monotonic
from typing import Final

from gateway.endpoints.sent_messages import SentBatch

PUBLISHER_KEY: Final = b"gateway\0"  # eight bytes: the key in the library's table of publishers
_ASYNCHRONOUS: Final = b"\2"  # the type of receipt that the library passes to that table


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
