"""Recognition of echoes from brokers that carry no origin path, above all MQTT 3.1.1.

Each copy that such a broker has accepted is remembered by broker, name and payload hash, with its
origin path. An echo gets this path back, once for each copy, and admission then cuts the loop as
usual.

An echo often comes before the answer to its copy. A message that equals a copy without an answer is
therefore undecided: an echo if the broker accepts the copy, a message of somebody else if not. A
copy whose answer was lost counts as not accepted: a second copy is cheaper than a lost message.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

MAX_SIZE: Final = 48 << 20  # bytes of the copies of all brokers
_OVERHEAD: Final = 512  # bytes of a copy beside the characters of its texts
_HOP_OVERHEAD: Final = 64  # bytes of a hop of the origin path beside its characters
COPY_LIFETIME: Final = 30.0  # seconds; a later echo is not expected

EchoKey: TypeAlias = tuple[str, str, bytes]  # broker, name, payload hash
SentCopy: TypeAlias = tuple[EchoKey, tuple[str, ...]]  # and its origin path
_Copy: TypeAlias = tuple[float, tuple[str, ...]]  # end of its lifetime, origin path
_Copies: TypeAlias = _Copy | deque[_Copy]  # a deque takes 760 bytes, and most keys have one copy


class Echoes:
    """The copies sent to echo brokers: those without an answer, and those that have not come back.

    Mutable: owned by the cache of echoes. Units: seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._unanswered: Counter[EchoKey] = Counter()  # bounded by the memory of the lanes
        self._accepted: OrderedDict[EchoKey, _Copies] = OrderedDict()
        self._size = 0  # bytes of `_accepted`

    def sent(self, keys: Iterable[EchoKey]) -> None:
        """Expect an answer to one more copy of each key: `accepted` or `refused`."""
        self._unanswered.update(keys)

    def accepted(self, copies: Sequence[SentCopy], now: float) -> None:
        """The broker has these copies: expect their echoes."""
        until = now + COPY_LIFETIME
        shared: dict[tuple[str, ...], _Copy] = {}
        for key, origin in copies:
            self._count_answer(key)
            self._add(key, shared.setdefault(origin, (until, origin)))
            self._size += copy_size(key, origin)
        self._evict(now)

    def refused(self, keys: Iterable[EchoKey]) -> None:
        """The broker rejected a copy of each key, or its answer was lost: expect no echo."""
        for key in keys:
            self._count_answer(key)

    def returned(self, key: EchoKey, now: float) -> tuple[str, ...] | None:
        """Remove and return the origin path of an echo; empty for a message of somebody else.

        None while that is undecided: ask again after the next answer.
        """
        while (copy := self._take(key)) is not None:
            until, origin = copy
            if until >= now:
                return origin
        return None if key in self._unanswered else ()

    def waiting(self, now: float) -> list[SentCopy]:
        """The copies whose echo may still come, oldest first."""
        found: list[SentCopy] = []
        for key, copies in self._accepted.items():
            each = copies if isinstance(copies, deque) else (copies,)
            found += [(key, origin) for until, origin in each if until >= now]
        return found

    def _count_answer(self, key: EchoKey) -> None:
        left = self._unanswered.pop(key, 1) - 1
        if left:
            self._unanswered[key] = left

    def _add(self, key: EchoKey, copy: _Copy) -> None:
        """Add the latest copy under `key` and move the key to the end of the eviction order."""
        earlier = self._accepted.pop(key, None)
        if earlier is None:
            self._accepted[key] = copy
        elif isinstance(earlier, deque):
            earlier.append(copy)
            self._accepted[key] = earlier
        else:
            self._accepted[key] = deque((earlier, copy))

    def _take(self, key: EchoKey) -> _Copy | None:
        """Remove and return the oldest copy under `key`."""
        copies = self._accepted.get(key)
        if copies is None:
            return None
        copy = copies.popleft() if isinstance(copies, deque) else copies
        self._size -= copy_size(key, copy[1])
        if copies is copy or not copies:
            del self._accepted[key]
        return copy

    def _evict(self, now: float) -> None:
        """Drop expired keys and the least recently used ones past MAX_SIZE."""
        while self._accepted:
            key, copies = next(iter(self._accepted.items()))
            each = copies if isinstance(copies, deque) else (copies,)
            if self._size <= MAX_SIZE and each[-1][0] >= now:
                return
            self._size -= sum(copy_size(key, origin) for _, origin in each)
            del self._accepted[key]


def copy_size(key: EchoKey, origin: tuple[str, ...]) -> int:
    """Return about the bytes of a copy; a character takes at most four."""
    return _OVERHEAD + 4 * (len(key[1]) + sum(map(len, origin))) + _HOP_OVERHEAD * len(origin)
