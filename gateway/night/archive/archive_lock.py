"""Locks of the jobs that write to an archive: one at a time, also for a folder of their results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname
from typing import Final

from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import RemoteStorage, Storage, open_storage
from gateway.errors import ReconcileError
from gateway.file_lock import FileLock, FileLockedError
from gateway.night.archive.remote_lock import CheckHeld, remote_lock

_ARCHIVE_LOCK: Final = Path("_compacting.lock")


def archive_lock(location: ArchiveLocation) -> AbstractContextManager[CheckHeld]:
    """Hold the lock of jobs that replace files of an archive; see `exclusive_in`.

    Raises:
        ReconcileError: another job holds it, or the folder cannot be written.
        OSError: the storage cannot be reached.
    """
    conflict = "another compaction is running; wait for its end"
    return exclusive_in(location, open_storage(location), _ARCHIVE_LOCK, conflict)


@contextmanager
def exclusive_in(
    location: ArchiveLocation, storage: Storage, path: Path, conflict: str
) -> Iterator[CheckHeld]:
    """Hold the lock `path` of an archive: a file, or in the `storage` of a remote one a folder.

    The yielded function raises ReconcileError when the lock was lost, as a remote one can be: call
    it before the results are replaced. `conflict` completes the error text when the lock is held:
    what is running, and what to do.

    Raises:
        ReconcileError: another process holds it, or the folder cannot be written.
        OSError: the storage cannot be reached.
    """
    if isinstance(storage, RemoteStorage):
        place = location.url.partition("?")[0].rstrip("/")
        with remote_lock(storage, path, _holder(), place=place, conflict=conflict) as check_held:
            yield check_held
        return
    with exclusive(location.local / path, conflict):
        yield _held


@contextmanager
def exclusive(path: Path, conflict: str) -> Iterator[None]:
    """Hold the lock file `path`, which names its holder; it is removed at the end.

    `conflict` completes the error text when it is locked: what is running, and what to do.

    Raises:
        ReconcileError: another process holds it, or the folder cannot be written.
    """
    try:
        lock = FileLock(path, conflict)
    except FileLockedError as error:
        raise ReconcileError(f"{error}{_named_holder(path)}") from error
    except OSError as error:
        raise ReconcileError(f"{path}: cannot be locked: {error.strerror}") from error
    try:
        lock.write(f"{_holder()}\n")
        yield
    finally:
        lock.remove()


def _held() -> None:
    """A file lock ends only with its process."""


def _holder() -> str:
    return (
        f"process {os.getpid()} on {gethostname()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    )


def _named_holder(path: Path) -> str:
    with suppress(OSError):
        return f"; it is {path.read_text('utf-8', errors='replace').strip()}"
    return ""
