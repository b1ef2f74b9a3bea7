"""Messages that a stream removed before a consumer of a part of its subjects had them.

The stream names only the first message that it still has, so their number stays unknown, and some
loss may be none: the removed messages may all have had other subjects.

    read to    in the memory, by stream: each selected message up to this number was delivered
"""

from __future__ import annotations

from typing import Final

from gateway.endpoints.continuity import Continuity
from gateway.endpoints.nats.consumer import Consumer
from gateway.endpoints.source_memory import SourceMemory, read_count
from gateway.untyped import Untyped

REMOVED: Final = (
    "the stream's limits, or a purge, removed messages of which some may not have been read"
)


class RemovedMessages:
    """Reports them for one source. Owned by the connection's thread."""

    def __init__(self, memory: SourceMemory, continuity: Continuity) -> None:
        self._memory, self._continuity = memory, continuity

    def look(self, found: Consumer, delivered: int) -> None:
        """Report what is gone behind the message `delivered`; `found` is the present state."""
        fact = f"read to {found.stream}"
        made, read = self._memory.get(fact, _read_place, ("", 0)) or ("", 0)
        read = max(read if made == found.made else 0, delivered)
        if found.gone > read and not found.is_new:
            self._continuity.report_loss(REMOVED)
        read = max(read, found.gone)
        if not found.unread:
            read = max(read, found.last)
        self._memory.put(fact, [found.made, read])


def _read_place(saved: Untyped) -> tuple[str, int]:
    made, number = saved
    return str(made), read_count(number)
