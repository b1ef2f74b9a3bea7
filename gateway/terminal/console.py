"""Consoles for standard output and error: a terminal has its width, a file or pipe no limit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Final

from rich.console import Console
from rich.text import Text

_UNLIMITED: Final = 100_000  # columns


class _PipeConsole(Console):
    """A console whose reader may end first; rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Discard the rest; a command goes on without its progress, and not without its answer.

        Raises:
            BrokenPipeError: it is not standard error.
        """
        self.quiet = True
        discard(self.file)
        if not self.stderr:
            raise  # noqa: PLE0704  # rich calls this while it handles the error


def discard(stream: IO[str]) -> None:
    """Let `stream` take everything from now on, and pass on nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def whether_read_or_not() -> Iterator[None]:
    """Print in a block whose end does not depend on a reader of standard output, as `head`."""
    try:
        yield
        print(end="", flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console that prints texts as they are, without markup."""
    return unlimited_off_terminal(_PipeConsole(stderr=stderr, highlight=False, markup=False))


def unlimited_off_terminal(console: Console) -> Console:
    """Remove the limit of width where a console is not a terminal: cron and journald have none."""
    if not console.is_terminal:
        console.width = _UNLIMITED
    return console


def print_lines(lines: Iterable[Text], console: Console) -> None:
    """Print each line complete; the terminal wraps a line that is too long."""
    for line in lines:
        console.print(line, soft_wrap=True)
