"""The limit of a route on equal messages: what comes more often within a minute is cut.

A count: route, name and payload hash -> start of its minute, and messages in it. Begun: by the
first message. Begun again: by the first message after the minute. Deleted: when all counts need
more than `MAX_SIZE`, the oldest first; their messages begin again and pass.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from gateway.model.message import Message
from gateway.routing.route import Route
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import Cut, fingerprint

LOOP_LIMIT: Final = "loop-limit"
MINUTE: Final = 60.0  # seconds
MAX_SIZE: Final = 8 << 20  # bytes of the counts of a source endpoint
EVICTED_SIZE: Final = MAX_SIZE // 50  # bytes of the counts that are evicted together
_OVERHEAD: Final = 480  # bytes of a count beside the characters of its name

_Key: TypeAlias = tuple[str, str, bytes]  # route, name, payload hash


class LoopLimit:
    """Counts the equal messages of one source endpoint, for its routes with a `loop_limit`.

    Mutable: owned by the source's thread. Units: seconds of a monotonic clock.
    """

    def __init__(self) -> None:
        self._counts: dict[_Key, tuple[float, int]] = {}
        self._size = 0  # bytes

    def cut(self, batch: ReceivedBatch, now: float) -> None:
        """Cut the messages of `batch` beyond the limits of the routes that match them at `now`.

        A message that the source delivers again is not counted.
        """
        for position, matches in enumerate(batch.matches):
            message = batch.messages[position]
            if message.headers.redelivered:
                continue
            beyond = [
                match.route
                for match in matches
                if match.route
                and match.route.loop_limit
                and self._is_beyond(match.route, message, now)
            ]
            if not beyond:
                continue
            batch.matches[position] = tuple(each for each in matches if each.route not in beyond)
            batch.cuts += [
                Cut(position, match.route.name, label, LOOP_LIMIT)
                for match in matches
                if match.route in beyond
                for label in match.labels
            ]
            batch.left_out += [(route.name, LOOP_LIMIT) for route in beyond]

    def _is_beyond(self, route: Route, message: Message, now: float) -> bool:
        """Count the message; return whether its minute has more than the limit of `route`."""
        key = route.name, message.address, fingerprint(message.payload)[1]
        start, count = self._counts.get(key, (-MINUTE, 0))
        if now - start < MINUTE:
            self._counts[key] = start, count + 1
            return route.loop_limit is not None and count >= route.loop_limit
        if count:
            del self._counts[key]  # the order of the counts is that of their minutes
        else:
            self._size += _size(key)
        self._counts[key] = now, 1
        if self._size >= MAX_SIZE + EVICTED_SIZE:
            self._evict()
        return False

    def _evict(self) -> None:
        """Drop the oldest counts, many at once."""
        oldest: list[_Key] = []
        for key in self._counts:
            if self._size <= MAX_SIZE:
                break
            self._size -= _size(key)
            oldest.append(key)
        for key in oldest:
            del self._counts[key]


def _size(key: _Key) -> int:
    """Return about the bytes of a count; a character takes at most four."""
    return _OVERHEAD + 4 * len(key[1])
