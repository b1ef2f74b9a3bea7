"""One job at a time replaces files of an archive: a lock in its folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gateway.errors import ReconcileError

_LOCK: Final = "_compacting.lock"


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the lock of the archive at `root`; it ends with the process too.

    Raises:
        ReconcileError: another job holds it, or it cannot be made.
    """
    try:
        lock = (root / _LOCK).open("w")
    except OSError as fault:
        raise ReconcileError(f"{root}: cannot be written: {fault.strerror}") from fault
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise ReconcileError(f"{root}: another compaction is at work; wait for it") from fault
        yield
