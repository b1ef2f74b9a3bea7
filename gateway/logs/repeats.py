"""Suppression of repeated log lines: equal lines are counted and summarised in one line."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_COUNTED_LINES: Final = 1_000  # distinct lines counted at a time; further ones are all logged

Fields: TypeAlias = Callable[[logging.LogRecord], dict[str, object]]


@dataclass(slots=True)
class _CountedLine:
    since: float  # seconds since 1970
    last: logging.LogRecord
    repeats: int = 0  # after the first


class RepeatFilter(logging.Filter):
    """Passes the first of equal lines and emits the number of repeats after `seconds`.

    Lines are equal when logger, level, text and fields are. Time is that of the records. A summary
    is emitted with the next line, or by a timer if no line follows. `counting` turns it off.
    Thread-safe: guarded by self._lock.
    """

    def __init__(
        self, seconds: float, fields: Fields, emit: Callable[[logging.LogRecord], object]
    ) -> None:
        super().__init__()
        self.counting = True
        self._seconds, self._fields, self._emit = seconds, fields, emit
        self._counted: dict[tuple[object, ...], _CountedLine] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.counting or self._seconds <= 0 or hasattr(record, "repeated"):
            return True
        key = (record.name, record.levelno, record.getMessage(), repr(self._fields(record)))
        with self._lock:
            summaries = self._pop_expired(record.created)
            passes = self._count(key, record)
        for summary in summaries:
            self._emit(summary)
        return passes

    def flush(self) -> None:
        """Emit all summaries now and count from zero."""
        with self._lock:
            summaries = self._pop_expired(float("inf"))
        for summary in summaries:
            self._emit(summary)

    def _count(self, key: tuple[object, ...], record: logging.LogRecord) -> bool:
        """Count the line; return whether it is logged itself."""
        counted = self._counted.get(key)
        if counted is None:
            if len(self._counted) < MAX_COUNTED_LINES:
                self._counted[key] = _CountedLine(record.created, record)
            return True
        counted.repeats += 1
        counted.last = record
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._flush_by_timer)
            self._timer.daemon = True
            self._timer.start()
        return False

    def _flush_by_timer(self) -> None:
        with self._lock:
            self._timer = None
        self.flush()

    def _pop_expired(self, now: float) -> list[logging.LogRecord]:
        """Remove the lines whose time is over and return the summaries of the repeated ones."""
        expired = {
            key: each
            for key, each in self._counted.items()
            if not 0 <= now - each.since < self._seconds
        }
        for key in expired:
            del self._counted[key]
        return [_summary(each) for each in expired.values() if each.repeats]


def _summary(counted: _CountedLine) -> logging.LogRecord:
    """The last repeated line, with its own time and the number of repeats."""
    last = dict(counted.last.__dict__)
    count = counted.repeats
    text = f"{counted.last.getMessage()} (repeated {count} {'time' if count == 1 else 'times'})"
    last |= {"msg": text, "args": None, "exc_info": None, "exc_text": None, "repeated": count}
    return logging.makeLogRecord(last)
