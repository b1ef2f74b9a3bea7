"""Waiting for something to become true, without sleeping longer than needed and not for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def until(done: Callable[[], bool], seconds: float = 20) -> None:
    """Return when `done` is true.

    Raises:
        AssertionError: it was not within `seconds`.
    """
    tick = threading.Event()
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        tick.wait(0.005)
