"""Progress of a long command: a status line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from rich.console import Console

ShowStep: TypeAlias = Callable[[str], None]


@contextmanager
def progress(console: Console) -> Iterator[ShowStep]:
    """A function that shows the next step; completed steps stay visible with their times."""
    began = monotonic()

    def print_step(text: str) -> None:
        console.print(f"{monotonic() - began:5.1f} s  {text}", highlight=False, markup=False)

    if not console.is_terminal:
        yield print_step
        return
    with console.status("") as status:

        def show_step(text: str) -> None:
            print_step(text)
            status.update(text)

        yield show_step
