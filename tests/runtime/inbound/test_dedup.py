"""The duplicate filter: which identities it finds, for how long, and at what cost."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import pairwise

import pytest

from gateway.runtime.inbound import dedup
from gateway.runtime.inbound.dedup import (
    EVICTION_BATCH,
    MAX_IDENTITIES,
    BatchCompletion,
    DuplicateFilter,
)


def find_all(
    duplicates: DuplicateFilter, identities: Iterable[int], completion: BatchCompletion
) -> list[BatchCompletion | None]:
    return [duplicates.find_or_add(("a.b", f"ID:{number}"), completion) for number in identities]


def test_an_identity_belongs_to_the_batch_that_had_it_first() -> None:
    duplicates, first, second = DuplicateFilter(), BatchCompletion(), BatchCompletion()
    assert find_all(duplicates, [1, 2, 1], first) == [None, None, first]
    assert find_all(duplicates, [2, 3], second) == [first, None]


@pytest.mark.parametrize(("later", "known"), [(29.0, True), (31.0, False)])
def test_an_identity_is_found_only_within_the_given_time(
    monkeypatch: pytest.MonkeyPatch, later: float, *, known: bool
) -> None:
    now = [0.0, later]
    monkeypatch.setattr(dedup, "monotonic", lambda: now.pop(0))
    duplicates, first, second = DuplicateFilter(), BatchCompletion(), BatchCompletion()
    duplicates.find_or_add("x", first, 30.0)
    assert duplicates.find_or_add("x", second, 30.0) is (first if known else None)
    assert duplicates.find_or_add("x", second, 30.0) is (first if known else second)


@pytest.mark.parametrize("surplus", [0, EVICTION_BATCH - 1, EVICTION_BATCH, 3 * EVICTION_BATCH + 7])
def test_the_latest_identities_are_always_found(surplus: int) -> None:
    duplicates, completion = DuplicateFilter(), BatchCompletion()
    find_all(duplicates, range(MAX_IDENTITIES + surplus), completion)
    again = find_all(duplicates, range(surplus, MAX_IDENTITIES + surplus), BatchCompletion())
    assert again == [completion] * MAX_IDENTITIES


def test_the_oldest_identities_are_evicted() -> None:
    duplicates = DuplicateFilter()
    find_all(duplicates, range(MAX_IDENTITIES + EVICTION_BATCH), BatchCompletion())
    assert find_all(duplicates, range(EVICTION_BATCH), BatchCompletion()) == [None] * EVICTION_BATCH


def test_identities_of_an_earlier_run_are_completed() -> None:
    duplicates, called = DuplicateFilter(), list[str]()
    duplicates.remember(["x"])
    found = duplicates.find_or_add("x", BatchCompletion())
    assert found is not None
    found.when_done(lambda: called.append("completed"))
    assert called == ["completed"]


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


def test_evictions_do_not_slow_the_filter() -> None:
    """The factor of 8 is beyond noise; a dict emptied from its front was 40 times slower."""
    duplicates, completion, spent = DuplicateFilter(), BatchCompletion(), list[float]()
    for first in range(0, 4 * MAX_IDENTITIES, MAX_IDENTITIES):
        began = time.thread_time()
        find_all(duplicates, range(first, first + MAX_IDENTITIES), completion)
        spent.append(time.thread_time() - began)
    assert spent[-1] < 8 * spent[0]
