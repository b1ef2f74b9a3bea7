"""The batches in flight of an MQTT connection, and their messages of QoS 0.

QoS 0 has no answer of its own, so a PINGREQ follows such messages: a broker that answers it has
taken everything before it. Pings are counted, because a broker answers them in order. One is in
flight at most for these messages; its answer brings the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gateway.endpoints.base import Settle
from gateway.model.outcome import ACCEPTED, RETRY, Settlement


class PublishBatch:
    """One batch in flight.

    Mutable: guarded by the lock of its `PublishState`.
    """

    __slots__ = ("positions", "settled", "settlements", "unsettled")

    def __init__(self, size: int, settled: Settle) -> None:
        self.settlements: list[Settlement] = [ACCEPTED] * size
        self.unsettled = size + 1  # one more, until `send` has written all of it
        self.settled = settled
        self.positions: dict[int, int] = {}  # packet id -> the message last sent with it

    def settle(self, count: int) -> bool:
        """Settle `count` messages; return whether the whole batch is settled."""
        self.unsettled -= count
        return not self.unsettled

    def settle_id(self, packet_id: int, settlement: Settlement) -> bool:
        """Settle the message last sent with this id, if there is one; return as `settle` does."""
        position = self.positions.get(packet_id)
        if position is None:
            return False
        self.settlements[position] = settlement
        return self.settle(1)


class UnconfirmedMessages:
    """The messages of QoS 0 that were written, and whose ping has no answer yet.

    `pings` is the number of pings that the connection has sent.
    Mutable: guarded by the lock of its `PublishState`.
    """

    def __init__(self) -> None:
        # oldest first: the number of the ping, and positions of a batch
        self._waiting: deque[tuple[int, PublishBatch, Sequence[int]]] = deque()
        self._pongs = 0  # pings that the broker has answered

    def is_asking(self, pings: int) -> bool:
        """Return whether a ping is in flight."""
        return pings > self._pongs

    def must_ask(self, pings: int) -> bool:
        """Return whether messages wait and no ping is in flight."""
        return bool(self._waiting) and not self.is_asking(pings)

    def add(self, ping: int, batch: PublishBatch, positions: Sequence[int]) -> None:
        """Add messages that the answer to a ping confirms, by its number.

        It may have come already; `batch` is never settled as a whole here.
        """
        self._waiting.append((ping, batch, positions))
        self.answered(0)

    def answered(self, pongs: int) -> list[PublishBatch]:
        """Settle what these further answers confirm; return the batches that are settled."""
        self._pongs += pongs
        finished: list[PublishBatch] = []
        while self._waiting and self._waiting[0][0] <= self._pongs:
            _, batch, positions = self._waiting.popleft()
            if batch.settle(len(positions)):
                finished.append(batch)
        return finished

    def lose(self) -> list[PublishBatch]:
        """Settle all as `RETRY`; return the batches that are settled."""
        for _, batch, positions in self._waiting:
            for position in positions:
                batch.settlements[position] = RETRY
        self._pongs = self._waiting[-1][0] if self._waiting else self._pongs
        return self.answered(0)

    def remove(self, batch: PublishBatch) -> None:
        """Forget the messages of a batch, which are sent again."""
        self._waiting = deque(each for each in self._waiting if each[1] is not batch)
