"""Exclusive file locks between processes, by `flock`; the end of a process releases its locks."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLockedError(OSError):
    """Another process holds the lock; the text names the file and says what to do."""


def _open_closed_to_others(path: str, flags: int) -> int:
    """Open a file; whoever may read it could lock it."""
    return os.open(path, flags, 0o640)


def try_lock(file: int) -> bool:
    """Lock an open file until its descriptor is closed; return False when it is locked already.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_share(file: int) -> bool:
    """Share an open file with others that share it; return False when it is locked.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class FileLock:
    """A lock file that is locked until `close`, or until the end of a `with` block."""

    def __init__(self, path: Path, conflict: str) -> None:
        """Create `path` when it is absent, and lock it.

        `conflict` completes the error text: what holds the lock, and what to do.

        Raises:
            FileLockedError: another process, or another lock of this one, holds the lock.
            OSError: the file cannot be opened.
        """
        self._file = open(path, "ab", opener=_open_closed_to_others)  # noqa: SIM115  # `Path.open` has no opener
        try:
            if not try_lock(self._file.fileno()):
                raise FileLockedError(f"{path}: {conflict}")
        except OSError:
            self._file.close()
            raise

    def close(self) -> None:
        """Release the lock; the file stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
