"""The completion of batches that wait for each other."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gateway.runtime.inbound.completion import BatchCompletion


def test_a_long_chain_of_waiting_batches_completes() -> None:
    completions, completed = [BatchCompletion() for _ in range(10_000)], list[str]()
    for earlier, later in pairwise(completions):
        earlier.when_done(later.complete)
    completions[-1].when_done(lambda: completed.append("the last"))

    completions[0].complete()

    assert completed == ["the last"]


def test_a_failing_callback_does_not_block_the_others() -> None:
    first, second, completed = BatchCompletion(), BatchCompletion(), list[str]()

    def fail() -> None:
        raise OSError("the disk is full")

    first.when_done(fail)
    first.when_done(second.complete)
    second.when_done(lambda: completed.append("second"))
    with pytest.raises(OSError, match="disk"):
        first.complete()

    assert completed == ["second"]
