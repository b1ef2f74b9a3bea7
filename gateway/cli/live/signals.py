"""What signals ask of the process, kept until its main thread has time for it."""

from __future__ import annotations

import os
import signal
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

ENDS: Final = (signal.SIGTERM, signal.SIGINT)
LOOK = 0.2  # seconds after which a signal is seen that the system gave to another thread


class Signals:
    """The signals that came, in their order; mutable, of the main thread alone.

    One that comes again before it was begun is not kept twice, as with the system's own.

    A handler runs in the main thread between any two of its steps. One that takes a lock, as
    `Event.set` and a log line do, waits for ever when the step before holds it. So these handlers
    only put a number into a `SimpleQueue`, whose `put` may come in the middle of its `get`.
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[int] = SimpleQueue()
        self._waiting: set[int] = set()
        self._ending = False

    def catch(self, *numbers: signal.Signals) -> None:
        """Keep these from now on. The second of ENDS ends the process at once."""
        for number in numbers:
            signal.signal(number, self._keep)

    def next(self) -> int:
        """Wait for a signal; its number."""
        while True:
            try:
                number = self._asked.get(timeout=LOOK)
            except Empty:
                continue
            self._waiting.discard(number)  # what comes before this is done by what follows
            return number

    def _keep(self, number: int, _frame: FrameType | None) -> None:
        if number in ENDS:
            if self._ending:
                os._exit(128 + number)
            self._ending = True
        if number not in self._waiting:
            self._waiting.add(number)
            self._asked.put(number)
