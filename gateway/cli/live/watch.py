"""Notices changes of configuration and secrets, so that no signal is needed for a reload.

Kubernetes replaces the files of a mounted config map or secret, and sends no signal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
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
    """Yield the files of a folder, or the file; those behind links, too."""
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError:
        return
    for file in files:
        try:
            found = file.stat()
        except OSError:
            continue
        yield str(file), found.st_ino, found.st_size, found.st_mtime_ns
