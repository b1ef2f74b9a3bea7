"""What a sink has under way: each batch is answered once, when the last of its answers is in."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from gateway.endpoints.base import Settle
from gateway.model.outcome import RETRY, Settlement


class Delivery:
    """One batch handed to the sink. Mutable: it collects settlements from two threads."""

    def __init__(self, size: int, settled: Settle) -> None:
        self._settlements: list[Settlement | None] = [None] * size
        self._left = size
        self._settled = settled
        self._lock = Lock()

    def settle(self, places: Sequence[int], settlement: Settlement) -> None:
        """Settle the messages at `places`; a second settlement of one is ignored."""
        with self._lock:
            fresh = [place for place in places if self._settlements[place] is None]
            for place in fresh:
                self._settlements[place] = settlement
            if not fresh or not self._left:
                return
            self._left -= len(fresh)
            if self._left:
                return
        self._answer()

    def abandon(self) -> bool:
        """Forget the batch without an answer; False when a message of it has one already."""
        with self._lock:
            if any(self._settlements) or not self._left:
                return False
            self._left = 0
            return True

    def settle_rest(self, settlement: Settlement) -> None:
        """Settle all that have no answer yet."""
        with self._lock:
            if not self._left:
                return
            self._left = 0
            self._settlements = [each or settlement for each in self._settlements]
        self._answer()

    def _answer(self) -> None:
        found: Sequence[Settlement] = [each or RETRY for each in self._settlements]
        self._settled(found)


class Receipts:
    """The deliveries that wait for receipts, with the time of the latest sign of life. Mutable."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[Delivery, int] = {}  # with the number of receipts it waits for
        self._since = 0.0  # of the last receipt, or of the first publish after a rest

    def expect(self, delivery: Delivery, now: float) -> None:
        with self._lock:
            if not self._open:
                self._since = now
            self._open[delivery] = self._open.get(delivery, 0) + 1

    def arrived(self, delivery: Delivery, now: float) -> None:
        with self._lock:
            self._since = now
            left = self._open.get(delivery, 0) - 1
            if left > 0:
                self._open[delivery] = left
            else:
                self._open.pop(delivery, None)

    def silent_for(self, now: float) -> float:
        """Seconds without a receipt while one is due; 0 when none is."""
        with self._lock:
            return now - self._since if self._open else 0.0

    def take_all(self) -> list[Delivery]:
        with self._lock:
            deliveries = list(self._open)
            self._open.clear()
            return deliveries
