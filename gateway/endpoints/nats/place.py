"""The place of a source in a stream: the number up to which messages may have been read before.

A killed server forgets its last deliveries, and a new consumer has none. So the source keeps the
number itself, beyond its process, and writes it ahead of what it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from gateway.endpoints.continuity import SubscriptionStore

Place: TypeAlias = tuple[str, int]  # the time of a stream, and a number in it
AHEAD: Final = 10_000  # messages that may be read before the memory of them is written again


class StreamPlace:
    """The numbers of one source. Mutable: owned by the connection's thread, or by `open`."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._store: SubscriptionStore | None = None
        self._made = ""  # the time of the stream: a later one of its name begins at 1 again
        self.highest = 0  # number of a message that came
        self.seen = 0  # messages up to this number may have been read over earlier connections
        self.kept = 0  # the same, with those of this connection, as the store has it

    def find(self, store: SubscriptionStore | None, made: str, last: int, *, is_new: bool) -> None:
        """Find the place in the stream of the time `made`, which is at most `last`.

        `is_new`: the consumer is. Without a memory, everything may have been read that waits for an
        earlier consumer; with a damaged one, also what a new consumer gets.
        """
        self._store = store
        if self._made:
            saved: Sequence[Place] | None = [(self._made, max(self.seen, self.highest))]
        else:
            saved = () if store is None else store.load(self._session, _read)
        if made and saved and made == saved[0][0]:
            last = min(last, saved[0][1])
        elif is_new and saved is not None and not saved:
            last = 0
        self.highest = min(self.highest, last) if self._made == made else 0
        self._made, self.seen, self.kept = made, last, 0

    def keep_ahead(self, number: int) -> None:
        """Remember that the message `number` and the next ones may have been read."""
        self._keep(max(number, self.seen) + AHEAD)

    def keep_exactly(self) -> None:
        """Remember what was read, as no more is."""
        self._keep(max(self.seen, self.highest))

    def _keep(self, number: int) -> None:
        self.kept = number
        if self._store is not None and self._made:
            self._store.save(self._session, [f"{self._made} {number}"])


def _read(text: str) -> Place:
    made, _, number = text.rpartition(" ")
    return made, int(number)
