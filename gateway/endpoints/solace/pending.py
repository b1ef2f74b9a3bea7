"""What a sink has under way: each batch is answered once, when the last of its answers is in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from threading import Lock
from time import monotonic
from typing import Final

from gateway.endpoints.base import Settle
from gateway.model.outcome import RETRY, Settlement

PUBLISHER: Final = b"gateway\0"  # eight bytes that name us to the library's table of publishers
_ASYNCHRONOUS: Final = b"\2"  # the kind of receipt the library passes to that table


class Delivery:
    """One batch handed to the sink. Mutable: it collects settlements from two threads."""

    def __init__(self, size: int, settled: Settle) -> None:
        self._settlements: list[Settlement | None] = [None] * size
        self._left = size
        self._settled = settled
        self._lock = Lock()

    def settle(self, places: Sequence[int], settlement: Settlement) -> bool:
        """Settle the messages at `places`; a second settlement of one is ignored.

        True for the call that settles the last of them: then `answer` is due.
        """
        with self._lock:
            fresh = [place for place in places if self._settlements[place] is None]
            for place in fresh:
                self._settlements[place] = settlement
            if not fresh or not self._left:
                return False
            self._left -= len(fresh)
            return not self._left

    def abandon(self) -> bool:
        """Forget the batch without an answer; False when a message of it has one already."""
        with self._lock:
            if any(self._settlements) or not self._left:
                return False
            self._left = 0
            return True

    def settle_rest(self, settlement: Settlement) -> None:
        """Settle all that have no answer yet, and answer."""
        with self._lock:
            if not self._left:
                return
            self._left = 0
            self._settlements = [each or settlement for each in self._settlements]
        self.answer()

    def answer(self) -> None:
        """Tell the one who sent the batch; once, when every message of it is settled."""
        found: Sequence[Settlement] = [each or RETRY for each in self._settlements]
        self._settled(found)


class Receipts:
    """The messages that wait for receipts, with the time of the latest sign of life.

    Mutable: one thread at a time sends, the library's thread brings what arrives; each step is
    one operation on a dict. What is still out when the connection ends stays here, for the
    library holds the addresses of its tags until it is closed.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._out: dict[bytes, tuple[Delivery, int]] = {}  # by tag
        self._since = 0.0  # of the last receipt, or of the first publish after a rest

    def expect(self, delivery: Delivery, place: int) -> bytes:
        """The tag that the receipt for the message at `place` brings back."""
        if not self._out:
            self._since = monotonic()
        tag = _ASYNCHRONOUS + PUBLISHER + next(self._numbers).to_bytes(8, "little")
        self._out[tag] = delivery, place
        return tag

    def arrived(self, tag: bytes) -> tuple[Delivery, int] | None:
        """Whose receipt it is; None when it was here before."""
        self._since = monotonic()
        return self._out.pop(tag, None)

    def silent_for(self) -> float:
        """Seconds without a receipt while one is due; 0 when none is."""
        return monotonic() - self._since if self._out else 0.0

    def deliveries(self) -> list[Delivery]:
        """Those that wait, oldest first."""
        return list(dict.fromkeys(delivery for delivery, _ in list(self._out.values())))
