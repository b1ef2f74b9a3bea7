"""Counts the functions of the gateway that one message enters, from its source to its answer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import gateway

FOLDER: Final = f"{Path(gateway.__file__).parent}/"


class FrameCounter:
    """The functions of `gateway/` that are entered while a message passes, by file and name.

    Comprehensions and lambdas belong to their function.
    Mutable: every thread that was started under `counting` adds to it.
    """

    def __init__(self) -> None:
        self._entered: set[str] = set()
        self._tests = threading.get_ident()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        is_ours = file.startswith(FOLDER) and threading.get_ident() != self._tests
        if event == "call" and is_ours and not name.endswith(">"):
            self._entered.add(f"{file.removeprefix(FOLDER)} {name}")

    def fewest(self, relay: Callable[[], None], times: int = 20) -> set[str]:
        """Return the functions of the relay with the fewest: without time-outs of quiet sources."""
        found: list[set[str]] = []
        for _ in range(times):
            self._entered.clear()
            relay()
            found.append({*self._entered})
        return min(found, key=len)


@contextmanager
def counting() -> Iterator[FrameCounter]:
    """Count in all threads that are started within."""
    counter = FrameCounter()
    threading.setprofile(counter.note)
    try:
        yield counter
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
