"""A file by which a command that sends beside a running gateway says so.

Its size is a count. Made odd: before such a command sends its first message. Made even: when its
connections are closed. Read: by the gateway before it leaves out a message that equals the last
one. A killed command leaves it odd, until the next one ends: then nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gateway.errors import SpoolError


@dataclass(frozen=True, slots=True)
class ReplayMark:
    """The mark of a gateway; without a `path` nobody sends beside it."""

    path: Path | None = None

    @property
    def count(self) -> int:
        """The count: odd while a command sends; another one than before when one has sent."""
        try:
            return self.path.stat().st_size if self.path else 0
        except OSError:
            return 0

    def begin(self) -> None:
        """Say that messages will be sent.

        Raises:
            SpoolError: the file cannot be written.
        """
        self._add(2 if self.count % 2 else 1)

    def end(self) -> None:
        """Say that nothing is on its way any more.

        Raises:
            SpoolError: the file cannot be written.
        """
        self._add(1)

    def _add(self, number: int) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("ab") as file:
                file.write(b"." * number)
        except OSError as error:
            raise SpoolError(f"{self.path}: cannot be written: {error.strerror}") from error
