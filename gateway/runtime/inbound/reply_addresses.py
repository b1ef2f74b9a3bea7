"""The reply addresses that this gateway handed out, for the routes that bring replies back.

    broker and address at it -> the time of the last request with it

Written: with each copy of a message whose reply address was translated. Read: by routes with
`replies_within`. Lost: with the process. A reply that comes after a restart or a takeover is a dead
letter. Units: seconds of a monotonic clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Final

from gateway.model.limited_cache import ENTRY_OVERHEAD
from gateway.model.memory_size import text_size
from gateway.routing.origin_path import BrokerName
from gateway.routing.route import Route

MAX_SIZE: Final = 8 << 20  # bytes; beyond it the oldest are forgotten


class ReplyAddresses:
    """Addresses by broker. Thread-safe: guarded by self._lock."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[tuple[BrokerName, str], float] = {}  # the oldest first
        self._size = 0

    def note(self, broker: BrokerName, address: str) -> None:
        """Remember that a request at `broker` asks for a reply to `address`."""
        key = (broker, address)
        with self._lock:
            if self._times.pop(key, None) is None:
                self._size += _size_of(address)
            self._times[key] = self._clock()
            while self._size > MAX_SIZE:
                _, oldest = forgotten = next(iter(self._times))
                del self._times[forgotten]
                self._size -= _size_of(oldest)

    def admits(self, route: Route, address: str) -> bool:
        """Return whether a route takes a reply to `address`: handed out, and not too long ago."""
        with self._lock:
            since = self._times.get((route.broker, address))
        return since is not None and self._clock() - since <= route.replies_within


def _size_of(address: str) -> int:
    return text_size(address) + ENTRY_OVERHEAD
