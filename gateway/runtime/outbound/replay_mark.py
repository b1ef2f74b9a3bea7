"""A file by which a command that sends beside a running gateway says so.

Its size is a count. Made odd: before such a command sends its first message; the command holds the
lock of the file from then on. Made even: when its connections are closed. Read: by the gateway
before it leaves out a message that equals the last one. After a command that was killed: the count
is odd and nobody holds the lock, so the gateway makes it even.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from gateway.errors import SpoolError
from gateway.file_lock import try_lock, wait_lock


@dataclass(slots=True)
class ReplayMark:
    """The mark of a gateway; without a `path` nobody sends beside it.

    Mutable: a command that sends has the file open.
    """

    path: Path | None = None
    _file: FileIO | None = field(default=None, init=False)

    @property
    def count(self) -> int:
        """The count: odd while a command sends; another one than before when one has sent."""
        try:
            found = self.path.stat().st_size if self.path else 0
            return found + self._ended() if found % 2 else found
        except OSError:
            return 0

    def _ended(self) -> int:
        """Make the odd count of a killed command even; return what it grew by.

        A gateway that may not write the file leaves it odd.
        """
        try:
            with self._opened() as file:
                if try_lock(file.fileno()) and _size(file) % 2:
                    return file.write(b".")
        except OSError:
            pass
        return 0

    def begin(self) -> None:
        """Say that messages will be sent, when no other command sends any more.

        Raises:
            SpoolError: the file cannot be written, or locked.
        """
        if self.path is None:
            return
        with self._reported():
            self._file = self._opened()
            wait_lock(self._file.fileno())
            self._file.write(b"." * (2 if _size(self._file) % 2 else 1))

    def end(self) -> None:
        """Say that nothing is on its way any more.

        Raises:
            SpoolError: the file cannot be written.
        """
        if self._file is not None:
            with self._reported(), self._file:
                self._file.write(b".")
            self._file = None

    def _opened(self) -> FileIO:
        assert self.path is not None  # noqa: S101  # the callers have looked
        return FileIO(self.path, "ab")

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise SpoolError(f"{self.path}: cannot be written: {reason}") from error


def _size(file: FileIO) -> int:
    return os.fstat(file.fileno()).st_size
