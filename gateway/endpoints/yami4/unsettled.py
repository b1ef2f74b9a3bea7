"""What a YAMI4 source handed out and nobody settled yet; the broker keeps nothing for us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Condition

from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement


@dataclass(frozen=True, slots=True)
class _Open:
    """A batch handed out; `numbers` are the places of its messages in the stream."""

    numbers: Sequence[int]
    messages: Sequence[Message]
    size: int


class Unsettled:
    """Keeps batches until they are settled; those to be tried again come first, in their order.

    Used by the thread that receives and the threads that settle.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = Condition()
        self._open: dict[int, _Open] = {}
        self._again: list[tuple[int, Message]] = []
        self._size = 0  # bytes in `_open` and `_again`
        self._size_again = 0
        self._next_number = self._next_batch = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is handed out that could come back."""
        return not self._open and not self._again

    def wait_for_room(self, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(
                lambda: self._size < self._limit or bool(self._again), timeout
            )

    def hand_out(self, messages: Sequence[Message], size: int) -> Batch:
        """Make a batch of messages that have just arrived in `size` bytes."""
        with self._changed:
            first, self._next_number = self._next_number, self._next_number + len(messages)
            self._size += size
            return self._make(range(first, self._next_number), messages, size)

    def hand_out_again(self) -> Batch | None:
        """Make a batch of what is to be tried again, if there is any."""
        with self._changed:
            if not self._again:
                return None
            rows = sorted(self._again, key=lambda row: row[0])
            self._again.clear()
            size, self._size_again = self._size_again, 0
            return self._make([number for number, _ in rows], [each for _, each in rows], size)

    def start_over(self) -> None:
        """Take back all that is handed out; settling it does nothing from now on."""
        with self._changed:
            for batch in self._open.values():
                self._take_back(batch, range(len(batch.messages)))
            self._open.clear()

    def _make(self, numbers: Sequence[int], messages: Sequence[Message], size: int) -> Batch:
        key = self._next_batch
        self._next_batch += 1
        self._open[key] = _Open(numbers, messages, size)

        def settle(settlements: Sequence[Settlement]) -> None:
            self._settle(key, settlements)

        return Batch(messages, settle)

    def _settle(self, key: int, settlements: Sequence[Settlement]) -> None:
        with self._changed:
            batch = self._open.pop(key, None)
            if batch is None:
                return
            retried = [n for n, each in enumerate(settlements) if each.outcome is Outcome.RETRY]
            kept = self._take_back(batch, retried)
            self._size -= batch.size - kept
            self._changed.notify_all()

    def _take_back(self, batch: _Open, places: Sequence[int]) -> int:
        """Queue the messages at `places` again; returns about how many bytes that is."""
        for place in places:
            message = batch.messages[place]
            headers = replace(message.headers, redelivered=True)
            self._again.append((batch.numbers[place], replace(message, headers=headers)))
        size = batch.size * len(places) // (len(batch.messages) or 1)
        self._size_again += size
        return size
