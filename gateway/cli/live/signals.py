"""Queues the signals of the process until its main thread handles them, and notices new files.

Kubernetes replaces the files of a mounted config map or secret, and sends no signal: a change of
configuration or secrets counts as one.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from types import FrameType
from typing import Final, TypeAlias

INTERVAL: Final = 2.0  # seconds between two looks
_State: TypeAlias = tuple[tuple[str, int, int, int], ...]  # path, inode, size, time of the change


class FileWatch:
    """The files at some paths, or directly in these folders, as they were seen last.

    Mutable: owned by one thread.
    """

    def __init__(self, paths: Sequence[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._clock = clock
        self._known = self._seen = self._look()
        self._next = clock() + INTERVAL

    def changed(self) -> bool:
        """Return true once after a change, when two looks have seen the same."""
        if not self._paths or self._clock() < self._next:
            return False
        self._next = self._clock() + INTERVAL
        before, self._seen = self._seen, self._look()
        if self._seen == self._known or self._seen != before:
            return False
        self._known = self._seen
        return True

    def _look(self) -> _State:
        return tuple(each for path in self._paths for each in _states(path))


def _states(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """Yield the files of a folder, or the file, also those behind links."""
    with suppress(OSError):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            with suppress(OSError):
                found = file.stat()
                yield str(file), found.st_ino, found.st_size, found.st_mtime_ns


STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
POLL_INTERVAL: Final = 0.2  # seconds; a signal delivered to another thread is noticed this late


class SignalQueue:
    """The received signals, in order; a signal that is already queued is not queued again.

    A handler runs in the main thread between any two bytecodes. If it takes a lock, as `Event.set`
    and logging do, it deadlocks when the interrupted code holds that lock. These handlers only put
    a number into a `SimpleQueue`, whose `put` is reentrant with its `get`.

    Mutable: owned by the main thread.
    """

    def __init__(self, changed: Callable[[], bool] = lambda: False) -> None:
        """Make a queue without signals; once `changed` returns true, it has a SIGHUP."""
        self._changed = changed
        self._received: SimpleQueue[int] = SimpleQueue()
        self._queued: set[int] = set()
        self._stopping = False

    def catch(self, *numbers: signal.Signals) -> None:
        """Queue these signals from now on. The second of STOP_SIGNALS ends the process at once."""
        for number in numbers:
            signal.signal(number, self._enqueue)

    def next(self, ended: Callable[[], bool] = lambda: False) -> int | None:
        """Wait for a signal and return its number; None once `ended` returns true."""
        while not ended():
            if self._changed():
                return signal.SIGHUP
            try:
                number = self._received.get(timeout=POLL_INTERVAL)
            except Empty:
                continue
            self._queued.discard(number)  # before it is handled: a later one is queued again
            return number
        return None

    def stop(self) -> None:
        """Stop the process as SIGTERM does; any thread may call it."""
        self._received.put(signal.SIGTERM)

    def _enqueue(self, number: int, _frame: FrameType | None) -> None:
        if number in STOP_SIGNALS:
            if self._stopping:
                os._exit(128 + number)
            self._stopping = True
        if number not in self._queued:
            self._queued.add(number)
            self._received.put(number)


@contextmanager
def stop_signals() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set; their earlier handlers are restored afterwards.

    A KeyboardInterrupt could end a call that holds a lock, and the next one would wait for ever.
    """
    stopping = Event()
    before = {number: signal.signal(number, lambda *_: stopping.set()) for number in STOP_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
