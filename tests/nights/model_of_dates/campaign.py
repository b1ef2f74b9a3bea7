"""One world from its seed to its end, in memory where the machine has such a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import pytest

from gateway.archive import threads
from tests.nights.model_of_dates.judge import Judge
from tests.nights.model_of_dates.whole_nights import WholeNights
from tests.nights.model_of_dates.worlds import World

_MEMORY = Path("/dev/shm")  # noqa: S108  # a private folder is made in it


class _OneThread:
    """Does at once what a pool of threads would do: no request of a world waits for a network."""

    def __init__(self, _: int) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(
        self, function: Callable[[object], object], items: Iterable[object]
    ) -> Iterator[object]:
        return map(function, items)


@contextmanager
def _without_threads() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "ThreadPoolExecutor", _OneThread)
        yield


def judged_world(seed: int, dates: int = 20) -> tuple[Judge, list[str]]:
    """Return the verdicts of the world of `seed`, and what happened in it."""
    with _without_threads(), TemporaryDirectory(dir=_place()) as folder:
        world, judge = World(Path(folder), seed, dates, troubles=0.2), Judge()
        world.run(judge.night)
        world.heal()
        world.next_date()
        judge.night(world, whole=True)
        return judge, world.log


def whole_world(seed: int, dates: int, troubles: float = 0.1) -> tuple[WholeNights, list[str]]:
    """Return the verdicts of whole nights of the world of `seed`; needs a Spark session."""
    with TemporaryDirectory(dir=_place()) as folder:
        world, nights = World(Path(folder), seed, dates, troubles=troubles), WholeNights()
        world.run(nights.night)
        world.heal()
        world.next_date()
        nights.night(world)
        return nights, world.log


def _place() -> Path | None:
    return _MEMORY if os.access(_MEMORY, os.W_OK) else None
