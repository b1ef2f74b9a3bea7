"""What a source's connection has brought, until it is settled: bounded in bytes, in order.

The library's thread puts messages in and is held up while there is no room. What is to be tried
again comes first and in its old order.
"""

from __future__ import annotations

import threading
from bisect import insort
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Final

from gateway.errors import GatewayError

OVERHEAD: Final = 1_024  # bytes a message takes beside its own, once it has become values too


@dataclass(slots=True, eq=False)
class Arrival:
    """One message: its bytes, and what the library wants to hear when it is settled."""

    frame: bytes
    message_id: int  # 0 for direct ones, which nobody acknowledges
    at: int  # microseconds
    number: int = 0
    again: bool = False


def _number(arrival: Arrival) -> int:
    return arrival.number


class Inbox:
    """Mutable: the meeting point of the library's thread and the receivers."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        lock = threading.RLock()
        self._arrived = threading.Condition(lock)  # there is something to take
        self._room = threading.Condition(lock)
        self._waiting: deque[Arrival] = deque()
        self._again: list[Arrival] = []
        self._next = 0
        self._held = 0
        self._hungry = 0
        self._failure: GatewayError | None = None

    @property
    def failure(self) -> GatewayError | None:
        return self._failure

    def put(self, arrival: Arrival) -> bool:
        """Add a message, when there is room for it; False when the connection is over."""
        with self._room:
            while self._held >= self._capacity and self._failure is None:
                self._room.wait()
            if self._failure is not None:
                return False
            self._held += len(arrival.frame) + OVERHEAD
            self._waiting.append(arrival)
            if self._hungry:
                self._arrived.notify_all()
            return True

    def take(self, limit: int, timeout: float) -> list[Arrival]:
        """What is there, at most `limit`; nothing after `timeout` seconds without any.

        Raises:
            GatewayError: as given to `fail`; what was not taken before belongs to the broker.
        """
        until = monotonic() + timeout
        with self._arrived:
            while self._failure is None and not self._waiting and not self._again:
                left = until - monotonic()
                if left <= 0:
                    return []
                self._wait(left)
            if self._failure is not None:
                raise self._failure
            if self._again:
                due = list(islice(self._again, limit))
                del self._again[: len(due)]
                return due
            return self._take_waiting(limit)

    def give_back(self, arrivals: Sequence[Arrival]) -> None:
        """These come again, in front of what was not received yet."""
        with self._arrived:
            for arrival in arrivals:
                arrival.again = True
                insort(self._again, arrival, key=_number)
            self._arrived.notify_all()

    def release(self, arrivals: Sequence[Arrival]) -> None:
        """These are settled and make room."""
        with self._room:
            self._held -= sum(len(each.frame) + OVERHEAD for each in arrivals)
            self._room.notify_all()

    def fail(self, failure: GatewayError) -> None:
        """The connection is over: nobody waits here any more."""
        with self._arrived:
            if self._failure is None:
                self._failure = failure
            self._waiting.clear()
            self._again.clear()
            self._arrived.notify_all()
            self._room.notify_all()

    def _wait(self, left: float) -> None:
        self._hungry += 1
        self._arrived.wait(left)
        self._hungry -= 1

    def _take_waiting(self, limit: int) -> list[Arrival]:
        if len(self._waiting) <= limit:
            taken = list(self._waiting)
            self._waiting.clear()
        else:
            taken = [self._waiting.popleft() for _ in range(limit)]
        for arrival in taken:
            arrival.number = self._next
            self._next += 1
        return taken
