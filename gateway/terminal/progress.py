"""Progress of a long command: a bar on a terminal, elsewhere a line a minute.

It goes to standard error, so that standard output has the answer alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.terminal.units import duration

if TYPE_CHECKING:
    from rich.console import Console

# Takes the text of the step, and optionally the share of the step that is done, 0 to 1.
ShowStep: TypeAlias = Callable[..., object]

_BAR_WIDTH: Final = 20  # columns; the text of a step needs the others
_LINE_SECONDS: Final = 60  # between two lines of one step without a terminal
_ESTIMATE_SECONDS: Final = 1  # of a step before its time left is known


@contextmanager
def progress(
    console: Console, clock: Callable[[], float] = monotonic, *, steps: bool = True
) -> Iterator[ShowStep]:
    """Yield a function that shows the current step, its share, and the time that it has left.

    A call with the text of the current step updates its share. With `steps`, each step has a line
    with the time of its begin.
    """
    if not console.is_interactive:
        yield _Steps(console, clock, steps=steps).show_step
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415  # slow

    shown = _Steps(console, clock, steps=steps, every=float("inf"))
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(_BAR_WIDTH),
        TaskProgressColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),
    )
    with bar:
        task = bar.add_task("", total=None, left="")

        def show_step(text: str, share: float | None = None, /) -> None:
            left = shown.show_step(text, share)
            total = None if share is None else 1.0
            bar.update(task, description=text, total=total, completed=share or 0.0, left=left)

        yield show_step


@dataclass(slots=True)
class _Steps:
    """Prints a line at each new step, and a line with the share at most every `every` seconds.

    Thread-safe: guarded by self._lock.
    """

    console: Console
    clock: Callable[[], float]
    steps: bool
    every: float = _LINE_SECONDS
    _began: float = field(init=False)
    _text: str = ""
    _printed: float = 0.0
    _since: tuple[float, float] = (0.0, 0.0)  # time and share from which the speed is taken
    _share: float = 0.0
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def show_step(self, text: str, share: float | None = None) -> str:
        """Return the time left, as text; an empty text when it is unknown."""
        with self._lock:
            now = self.clock()
            new, self._text = text != self._text, text
            if new or share is None or share < self._share:  # Spark has begun another job
                self._since = (now, share or 0.0)
            self._share = share or 0.0
            left = self._left(now)
            if new:
                self._printed = now
            due = share is not None and now - self._printed >= self.every
            if due or (new and self.steps):
                self._printed = now
                done = (
                    "" if share is None else f" ({', '.join(filter(None, (f'{share:.0%}', left)))})"
                )
                line = f"{now - self._began:5.1f} s  {text}{done}"
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
            return left

    def _left(self, now: float) -> str:
        """Return the time left at the mean speed of the step."""
        time, share = self._since
        if now - time < _ESTIMATE_SECONDS or self._share <= share:
            return ""
        return f"{duration((now - time) * (1 - self._share) / (self._share - share))} left"
