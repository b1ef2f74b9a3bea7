"""One journal file: records are appended, made durable, and removed after their conversion.

An open journal is locked, so that no converter takes it. The lock ends with its process.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Final

from gateway.archive.durable import sync_folder
from gateway.archive.journal.records import MAGIC
from gateway.archive.layout import DONE
from gateway.file_lock import try_lock

_TRUNCATE_STEP: Final = 1 << 20  # bytes of a converted journal that are freed at once
_TRUNCATE_INTERVAL: Final = 0.01  # seconds


class Journal:
    """An open journal: its descriptor, and the size of its acknowledged content.

    Mutable: owned by the thread that writes it.
    """

    def __init__(self, path: Path) -> None:
        """Create and lock `path`.

        Raises:
            OSError: the file exists, or cannot be written.
        """
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640)
        try:
            _lock_new(path, self._file)
            _write(self._file, MAGIC)
            sync_folder(path.parent)
        except OSError:
            os.close(self._file)
            path.unlink(missing_ok=True)
            raise
        self._valid_size = len(MAGIC)
        self._has_torn_tail = False

    @property
    def size(self) -> int:
        return self._valid_size

    @property
    def empty(self) -> bool:
        return self._valid_size == len(MAGIC)

    def append(self, records: bytes, *, sync: bool) -> None:
        """Write complete records; with `sync` they are durable afterwards.

        The first call after an OSError cuts the incomplete write.

        Raises:
            OSError: an unknown part was written; none of the records counts.
        """
        if self._has_torn_tail:
            os.ftruncate(self._file, self._valid_size)
        self._has_torn_tail = True
        _write(self._file, records)
        if sync:
            os.fdatasync(self._file)
        self._valid_size += len(records)
        self._has_torn_tail = False

    def sync(self) -> None:
        """Make all appended records durable."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Cut an incomplete write, make the rest durable, and unlock; never raises."""
        try:
            os.ftruncate(self._file, self._valid_size)
            os.fdatasync(self._file)
        except OSError:
            pass  # acknowledged records are durable already; the converter cuts a torn tail
        finally:
            os.close(self._file)


def claim_journal(path: Path) -> int | None:
    """Lock a closed journal for conversion; return its descriptor, which the caller closes.

    Return None when a gateway writes the journal, or another converter has it.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    # A converter may have renamed the file between the opening and the lock.
    if try_lock(file) and _is_same_file(path, file):
        return file
    os.close(file)
    return None


def discard_journal(path: Path) -> None:
    """Remove a converted journal; from its rename to `.done` on, no converter takes it again.

    A file that cannot be removed now is left to the next converter.
    """
    done = path.with_suffix(DONE)
    path.rename(done)
    sync_folder(path.parent)  # before the truncation: else a crash could leave a part to convert
    with suppress(OSError):
        remove_done(done)


def remove_done(done: Path) -> None:
    """Remove a converted journal in steps of a megabyte.

    Some disks discard freed blocks at once (ext4 with `discard`), and the next flush waits for
    all of them: 50 ms for 64 MB.
    """
    with suppress(FileNotFoundError):  # another converter may remove it at the same time
        for size in range(done.stat().st_size - _TRUNCATE_STEP, 0, -_TRUNCATE_STEP):
            os.truncate(done, size)
            sleep(_TRUNCATE_INTERVAL)
        done.unlink()


def _lock_new(path: Path, file: int) -> None:
    """Lock a new journal; a converter may have taken it since its creation."""
    if not (try_lock(file) and _is_same_file(path, file)):
        raise BlockingIOError(errno.EWOULDBLOCK, "a converter has the new journal", str(path))


def _is_same_file(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
