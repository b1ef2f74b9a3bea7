"""The files that this process opens, by an audit hook."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_OPENED: list[str] = []
_COUNTING = {"on": False}


def _count(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _COUNTING["on"]:
        _OPENED.append(str(arguments[0]))


@cache
def _add_hook() -> None:
    sys.addaudithook(_count)  # stays for the life of the process


@contextmanager
def opened_files() -> Iterator[list[str]]:
    """The paths that this process opens within the block."""
    _add_hook()
    _OPENED.clear()
    _COUNTING["on"] = True
    yield _OPENED
    _COUNTING["on"] = False
