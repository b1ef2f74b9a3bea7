"""The most memory that processes had at one time, from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

PAUSE = 0.05  # seconds between two looks
PAGE = os.sysconf("SC_PAGE_SIZE")


class Most:
    """The most that `look` tells while it is entered, in MB; mutable, a thread looks."""

    def __init__(self, look: Callable[[], float]) -> None:
        self.megabytes = 0.0
        self._tell = look
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(PAUSE):
            self.megabytes = max(self.megabytes, self._tell())


def together(pid: int) -> float:
    """MB of a process and all below it."""
    return sum(map(resident, tree(pid))) / 2**20


def tree(pid: int) -> list[int]:
    """A process and all below it, as far as they still run."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = task.read_text().split()
        except OSError:  # it has ended
            continue
        for child in below:
            found += tree(int(child))
    return found


def resident(pid: int) -> int:
    """Bytes in memory that no file backs and nobody shares twice; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE
