"""The room of a small disk: what SQLite writes beyond it fails, in the middle of a write.

The limit of a process for the size of a file (RLIMIT_FSIZE) stops the real writes of SQLite: pages,
the log, checkpoints, and what a failed commit leaves, are its own.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit


class SmallDisk:
    """The files of one folder, and their room in bytes; None without a limit.

    Mutable: faults set the fields.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.room: int | None = None
        self.read_only = False

    def used(self) -> int:
        """The bytes of all files."""
        return sum(map(_size, self.folder.glob("*")))

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Let the file grow in the block as far as there is room; other files do not grow."""
        if self.room is None and not self.read_only:
            yield
            return
        old = getrlimit(RLIMIT_FSIZE)
        setrlimit(RLIMIT_FSIZE, (0 if self.read_only else _size(path) + self._free(), old[1]))
        try:
            yield
        finally:
            setrlimit(RLIMIT_FSIZE, old)

    def write(self, path: Path, data: bytes) -> None:
        """Write a whole file.

        Raises:
            OSError: there is no room for it, or the disk is read-only.
        """
        self.check_writable()
        if self.room is not None and len(data) > self._free():
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_bytes(data)

    def check_writable(self) -> None:
        """Raise OSError if the disk is read-only."""
        if self.read_only:
            raise OSError(errno.EROFS, "Read-only file system")

    def _free(self) -> int:
        return max(0, (self.room or 0) - self.used())


class DiskPath(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A path whose file a read-only disk keeps."""

    disk: Callable[[], SmallDisk | None] = staticmethod(lambda: None)

    def unlink(self, missing_ok: bool = False) -> None:
        if (disk := self.disk()) is not None:
            disk.check_writable()
        super().unlink(missing_ok)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
