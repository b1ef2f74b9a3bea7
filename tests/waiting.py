"""Waiting for something to become true, without sleeping longer than needed and not for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 60.0  # seconds; a machine that others keep busy takes long for anything


def until(
    done: Callable[[], bool],
    what: str = "it did not happen",
    seconds: float = PATIENCE,
    every: float = 0.005,
) -> None:
    """Return when `done`, which is asked `every` so many seconds, is true.

    Raises:
        AssertionError: it was not within `seconds`.
    """
    tick = threading.Event()
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        tick.wait(every)
