"""Progress of a long command: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

# Takes the text of the step, and optionally the share of the step that is done, 0 to 1.
ShowStep: TypeAlias = Callable[..., None]

_BAR_WIDTH: Final = 20  # columns; the text of a step needs the others
_LINE_SECONDS: Final = 60  # between two lines of one step without a terminal


@contextmanager
def progress(console: Console, clock: Callable[[], float] = monotonic) -> Iterator[ShowStep]:
    """A function that shows the next step; completed steps stay visible with their times.

    A call with the text of the current step updates its share.
    """
    if not console.is_terminal:
        yield _Lines(console, clock).show_step
        return
    lines = _Lines(console, clock, every=float("inf"))
    bar = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(_BAR_WIDTH), TaskProgressColumn(),
        TimeElapsedColumn(), console=console, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=None)

        def show_step(text: str, share: float | None = None) -> None:
            lines.show_step(text)
            bar.update(
                task,
                description=text,
                total=None if share is None else 1.0,
                completed=0.0 if share is None else share,
            )

        yield show_step


@dataclass(slots=True)
class _Lines:
    """Prints a line at each new step, and a line with the share at most every `every` seconds.

    Thread-safe: guarded by self._lock.
    """

    console: Console
    clock: Callable[[], float]
    every: float = _LINE_SECONDS
    _began: float = field(init=False)
    _text: str = ""
    _printed: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def show_step(self, text: str, share: float | None = None) -> None:
        with self._lock:
            now = self.clock()
            if text == self._text and (share is None or now - self._printed < self.every):
                return
            self._text, self._printed = text, now
            done = "" if share is None else f" ({share:.0%})"
            line = f"{now - self._began:5.1f} s  {text}{done}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
