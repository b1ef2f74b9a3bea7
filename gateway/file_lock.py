"""Exclusive file locks between processes, by `flock`; the end of a process releases its locks."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

_WITHOUT_LOCKS: Final = frozenset(  # NFS: no lock daemon; a lock of a file opened for reading
    {errno.ENOLCK, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP}
)


class FileLockedError(OSError):
    """Another process holds the lock; the text names the file and says what to do."""


def _open_closed_to_others(path: str, flags: int) -> int:
    """Open a file that is not a symbolic link; whoever may read it could lock it.

    A pipe without a reader is an error and not waited for.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o640)


def try_lock(file: int) -> bool:
    """Lock an open file until its descriptor is closed; return False when it is locked already.

    Raises:
        OSError: the file system has no locks.
    """
    return _flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_share(file: int) -> bool:
    """Share an open file with others that share it; return False when it is locked.

    Raises:
        OSError: the file system has no locks.
    """
    return _flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def wait_lock(file: int) -> None:
    """Lock an open file, or a folder, until its descriptor is closed; wait for its holder.

    Raises:
        OSError: the file system has no locks.
    """
    _flock(file, fcntl.LOCK_EX)


def _flock(file: int, operation: int) -> bool:
    try:
        fcntl.flock(file, operation)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _WITHOUT_LOCKS:
            text = "the file system has no locks (flock), as NFS; use a disk of this machine"
            raise OSError(error.errno, text) from error
        raise
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
        self._path = path
        is_there = False
        while not is_there:  # its holder may remove the file after it was opened here
            self._file = open(path, "ab", opener=_open_closed_to_others)  # noqa: SIM115  # `Path.open` has no opener
            try:
                if not try_lock(self._file.fileno()):
                    raise FileLockedError(f"{path}: {conflict}")
                is_there = os.fstat(self._file.fileno()).st_nlink > 0
            finally:
                if not is_there:
                    self._file.close()

    def write(self, text: str) -> None:
        """Replace the content of the locked file, also where its name leads elsewhere by now."""
        self._file.truncate(0)
        self._file.write(text.encode())
        self._file.flush()

    def remove(self) -> None:
        """Remove the file, and release the lock."""
        with suppress(OSError):  # its folder is gone, or is no longer ours
            self._path.unlink()
        self.close()

    def close(self) -> None:
        """Release the lock; the file stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
