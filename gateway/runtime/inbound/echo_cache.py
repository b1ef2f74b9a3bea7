"""Recognition of echoes from brokers that carry no origin path, above all MQTT 3.1.1.

The cache keeps each copy sent to such a broker by broker, name and payload hash, with its origin
path. An echo gets this path back, once for each copy that was sent, and admission then cuts the
loop as usual.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Final, TypeAlias

from gateway.model.message import Message
from gateway.runtime.record.rows import fingerprint

MAX_SIZE: Final = 48 << 20  # bytes of the copies of all brokers
_OVERHEAD: Final = 512  # bytes of a copy beside the characters of its texts
COPY_LIFETIME: Final = 30.0  # seconds; a later echo is not expected

EchoKey: TypeAlias = tuple[str, str, bytes]  # broker, name, payload hash
_Copy: TypeAlias = tuple[float, tuple[str, ...]]  # end of its lifetime, origin path
_Copies: TypeAlias = _Copy | deque[_Copy]  # a deque takes 760 bytes, and most keys have one copy


class EchoCache:
    """The copies sent to echo brokers that have not come back.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: OrderedDict[EchoKey, _Copies] = OrderedDict()
        self._size = 0  # bytes

    def note_sent(self, broker: str, messages: Iterable[Message]) -> None:
        """Remember copies about to be sent to `broker`, with the origin path in their headers."""
        copies = [
            ((broker, message.address, fingerprint(message.payload)[1]), message.headers.origin)
            for message in messages
        ]
        self.remember(copies)

    def remember(self, copies: Sequence[tuple[EchoKey, tuple[str, ...]]]) -> None:
        until = monotonic() + COPY_LIFETIME
        shared: dict[tuple[str, ...], _Copy] = {}
        with self._lock:
            for key, origin in copies:
                self._add(key, shared.setdefault(origin, (until, origin)))
                self._size += copy_size(key, origin)
            self._evict()

    def take_origin(self, broker: str, message: Message) -> tuple[str, ...]:
        """Remove and return the origin path of an echo from `broker`; empty for other messages."""
        key = (broker, message.address, fingerprint(message.payload)[1])
        now = monotonic()
        with self._lock:
            while (copy := self._take(key)) is not None:
                until, origin = copy
                if until >= now:
                    return origin
        return ()

    def _add(self, key: EchoKey, copy: _Copy) -> None:
        """Add the latest copy under `key` and move the key to the end of the eviction order."""
        earlier = self._sent.pop(key, None)
        if earlier is None:
            self._sent[key] = copy
        elif isinstance(earlier, deque):
            earlier.append(copy)
            self._sent[key] = earlier
        else:
            self._sent[key] = deque((earlier, copy))

    def _take(self, key: EchoKey) -> _Copy | None:
        """Remove and return the oldest copy under `key`."""
        copies = self._sent.get(key)
        if copies is None:
            return None
        copy = copies.popleft() if isinstance(copies, deque) else copies
        self._size -= copy_size(key, copy[1])
        if copies is copy or not copies:
            del self._sent[key]
        return copy

    def _evict(self) -> None:
        """Drop expired keys and the least recently used ones past MAX_SIZE."""
        now = monotonic()
        while self._sent:
            key, copies = next(iter(self._sent.items()))
            each = copies if isinstance(copies, deque) else (copies,)
            if self._size <= MAX_SIZE and each[-1][0] >= now:
                return
            self._size -= sum(copy_size(key, origin) for _, origin in each)
            del self._sent[key]


def copy_size(key: EchoKey, origin: tuple[str, ...]) -> int:
    """Return about the bytes of a copy; a character takes at most four."""
    return _OVERHEAD + 4 * (len(key[1]) + sum(map(len, origin)))
