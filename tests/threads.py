"""Tests that recurse deeply run on a thread, as the gateway's own code does.

A JVM that an earlier test started in this process limits the main thread to its own small stack
(`-Xss`); a deeper recursion there ends the process. Other threads keep the stack they have.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")


def on_a_thread(test: Callable[P, None]) -> Callable[P, None]:
    """Run the test on a thread of its own; its failure is the test's."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, *args, **kwargs).result()

    return run
