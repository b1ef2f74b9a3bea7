"""What a long command is doing now: a status line on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias

from rich.console import Console

Say: TypeAlias = Callable[[str], None]


@contextmanager
def progress(console: Console) -> Iterator[Say]:
    """A function that announces the next step; the steps done stay visible."""
    began = monotonic()

    def line(text: str) -> None:
        console.print(f"{monotonic() - began:5.1f} s  {text}", highlight=False, markup=False)

    if not console.is_terminal:
        yield line
        return
    with console.status("") as status:

        def say(text: str) -> None:
            line(text)
            status.update(text)

        yield say
