"""Lock files of the reconciliation: one writer of an archive or an output folder at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from typing import Final

from gateway.errors import ReconcileError
from gateway.file_lock import FileLock, FileLockedError

_ARCHIVE_LOCK: Final = "_compacting.lock"


@contextmanager
def archive_lock(root: Path) -> Iterator[None]:
    """Hold the lock of jobs that replace files of the archive at `root`.

    Raises:
        ReconcileError: another job holds it, or the folder cannot be written.
    """
    with exclusive(root / _ARCHIVE_LOCK, "another compaction is running; wait for it"):
        yield


@contextmanager
def exclusive(path: Path, conflict: str) -> Iterator[None]:
    """Hold the lock file `path`, which names its holder.

    `conflict` completes the error text when it is locked: what is running, and what to do.

    Raises:
        ReconcileError: another process holds it, or the folder cannot be written.
    """
    try:
        lock = FileLock(path, conflict)
    except FileLockedError as error:
        raise ReconcileError(f"{error}{_holder(path)}") from error
    except OSError as error:
        raise ReconcileError(f"{path}: cannot be written: {error.strerror}") from error
    with lock:
        path.write_text(f"process {os.getpid()} on {gethostname()} since {_clock()}\n", "utf-8")
        yield


def _holder(path: Path) -> str:
    with suppress(OSError):
        return f"; it is {path.read_text('utf-8', errors='replace').strip()}"
    return ""


def _clock() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
