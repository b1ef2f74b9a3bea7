"""Measures the peak memory of processes, from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

INTERVAL = 0.05  # seconds between two measurements
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """The highest value of `measure` within the block, in MB.

    Mutable: `megabytes` is owned by the measuring thread.
    """

    def __init__(self, measure: Callable[[], float]) -> None:
        self.megabytes = 0.0
        self._measure = measure
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(INTERVAL):
            self.megabytes = max(self.megabytes, self._measure())


def tree_megabytes(pid: int) -> float:
    """Return the memory of a process and its descendants, in MB."""
    return sum(map(resident, tree(pid))) / 2**20


def tree(pid: int) -> list[int]:
    """Return the ids of a process and its running descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # the process has ended
            continue
        for child in children:
            found += tree(int(child))
    return found


def resident(pid: int) -> int:
    """Return the resident bytes without shared pages; 0 when the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES
