"""One journal file: records are appended and made durable; it converts nothing.

The file is locked while it is open, so that no converter takes a journal that is still written,
and a lock never outlives its process.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Final

from gateway.archive.journal.records import MAGIC
from gateway.archive.layout import DONE

_STEP: Final = 1 << 20  # bytes of a converted journal that go at once
_PAUSE: Final = 0.01  # seconds between two steps


class Journal:
    """Mutable: it owns a descriptor and knows how much of the file is good."""

    def __init__(self, path: Path) -> None:
        """Create `path`.

        Raises:
            OSError: it exists, or cannot be written.
        """
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(self._file, MAGIC)
            sync_folder(path.parent)
        except OSError:
            os.close(self._file)
            path.unlink()
            raise
        self._good = len(MAGIC)
        self._dirty = False

    @property
    def size(self) -> int:
        return self._good

    @property
    def empty(self) -> bool:
        return self._good == len(MAGIC)

    def append(self, records: bytes, *, sync: bool) -> None:
        """Write whole records; the next call after an OSError first cuts what this one left.

        Raises:
            OSError: unknown how much was written; none of it counts.
        """
        if self._dirty:
            os.ftruncate(self._file, self._good)
        self._dirty = True
        _write(self._file, records)
        if sync:
            os.fdatasync(self._file)
        self._good += len(records)
        self._dirty = False

    def sync(self) -> None:
        os.fdatasync(self._file)

    def close(self) -> None:
        """Give the journal up: cut what failed, make the rest durable, unlock. Never raises."""
        try:
            os.ftruncate(self._file, self._good)
            os.fdatasync(self._file)
        except OSError:
            pass  # what was acknowledged is durable already; a torn tail is cut by the converter
        finally:
            os.close(self._file)


def take(path: Path) -> int | None:
    """A locked descriptor of a journal nobody writes or converts, to be closed; None otherwise."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    if not _is_still(path, file):  # converted between the opening and the lock
        os.close(file)
        return None
    return file


def discard(path: Path) -> None:
    """Remove a journal that is converted; from its new name on nobody converts it again.

    What cannot be removed now is left to the next converter, which tells of it if it must.
    """
    done = path.with_suffix(DONE)
    path.rename(done)
    sync_folder(path.parent)  # before it shrinks: else a crash could leave a part to be converted
    with suppress(OSError):
        remove(done)


def remove(done: Path) -> None:
    """Remove a converted journal a little at a time.

    Where freed blocks are discarded at once (ext4 with `discard`) the next flush waits for all of
    them: 50 ms for 64 MB.
    """
    with suppress(FileNotFoundError):  # another converter may clear up, too
        for size in range(done.stat().st_size - _STEP, 0, -_STEP):
            os.truncate(done, size)
            sleep(_PAUSE)
        done.unlink()


def sync_folder(path: Path) -> None:
    """Make the names in `path` durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_still(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
