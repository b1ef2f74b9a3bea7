"""Requests to the storage of an archive, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_THREADS: Final = 16  # requests to a remote storage wait, and hashing needs no lock
T = TypeVar("T")
R = TypeVar("R")


def in_threads(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the results of `function`, in the order of `items`; the first error is raised."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, items))
