"""Counts log lines that say the same again, so that a fault that repeats does not bury others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

MOST = 1_000  # different lines counted at a time; what comes beside them is said each time

Facts = Callable[[logging.LogRecord], dict[str, object]]


@dataclass(slots=True)
class _Counted:
    since: float  # seconds since 1970
    last: logging.LogRecord
    times: int = 0  # after the first


class Repeats(logging.Filter):
    """Lets the first of equal lines pass and says the number of the others after `seconds`.

    Lines are equal when logger, level, text and facts are. Mutable: it counts, and `counting`
    turns it off. Time is that of the records. What no later line brings out, a timer does.
    """

    def __init__(
        self, seconds: float, facts: Facts, say: Callable[[logging.LogRecord], object]
    ) -> None:
        super().__init__()
        self.counting = True
        self._seconds, self._facts, self._say = seconds, facts, say
        self._counted: dict[tuple[object, ...], _Counted] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.counting or self._seconds <= 0 or hasattr(record, "repeated"):
            return True
        key = (record.name, record.levelno, record.getMessage(), repr(self._facts(record)))
        with self._lock:
            over = self._take_over(record.created)
            passes = self._first(key, record)
        for summary in over:
            self._say(summary)
        return passes

    def flush(self) -> None:
        """Say the numbers of all that is counted, and begin anew."""
        with self._lock:
            over = self._take_over(float("inf"))
        for summary in over:
            self._say(summary)

    def _first(self, key: tuple[object, ...], record: logging.LogRecord) -> bool:
        counted = self._counted.get(key)
        if counted is None:
            if len(self._counted) < MOST:
                self._counted[key] = _Counted(record.created, record)
            return True
        counted.times += 1
        counted.last = record
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._flush_late)
            self._timer.daemon = True
            self._timer.start()
        return False

    def _flush_late(self) -> None:
        with self._lock:
            self._timer = None
        self.flush()

    def _take_over(self, now: float) -> list[logging.LogRecord]:
        """Forget the lines whose time is over; one line for each that was repeated."""
        over = {
            key: each
            for key, each in self._counted.items()
            if not 0 <= now - each.since < self._seconds
        }
        for key in over:
            del self._counted[key]
        return [_summary(each) for each in over.values() if each.times]


def _summary(counted: _Counted) -> logging.LogRecord:
    """The last line, with the number of those that were not said; its time is when it was."""
    last = dict(counted.last.__dict__)
    times = counted.times
    text = f"{counted.last.getMessage()} (repeated {times} {'time' if times == 1 else 'times'})"
    last |= {"msg": text, "args": None, "exc_info": None, "exc_text": None, "repeated": times}
    return logging.makeLogRecord(last)
