"""The duplicate filter: which identities it finds, for how long, and at what cost."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from gateway.model.message import Message
from gateway.runtime.delivery.duplicates import (
    MAX_SIZE,
    DuplicateFilter,
    Identity,
    SettledBatch,
    copy_id,
)
from gateway.runtime.delivery.earlier_batch import EarlierBatch
from tests.model.test_memory_size import taken

MAX_IDENTITIES = 50_000  # that the filter remembers, with names and ids of a usual length
SURPLUS = 20_000  # that it surely evicts


def find_all(
    duplicates: DuplicateFilter,
    identities: Iterable[int],
    batch: EarlierBatch,
) -> list[EarlierBatch | None]:
    return [duplicates.find_or_add(identity(number), batch) for number in identities]


def identity(number: int) -> Identity:
    return "plant/line-7/temperature", f"ID:{number:032}", b"0123456789abcdef"


def test_long_names_and_ids_take_no_more_memory() -> None:
    def fill() -> DuplicateFilter:
        duplicates, batch = DuplicateFilter(), SettledBatch()
        for number in range(2_000):
            key = f"{number}" + "x" * 60_000
            duplicates.find_or_add((key, key[:30_000], bytes(16)), batch)
        return duplicates

    assert taken(fill) < MAX_SIZE


def test_another_payload_is_no_duplicate() -> None:
    duplicates, first, second = (
        DuplicateFilter(),
        SettledBatch(),
        SettledBatch(),
    )
    assert duplicates.find_or_add(("a", "id", b"one"), first) is None
    assert duplicates.find_or_add(("a", "id", b"two"), second) is None


def test_the_id_of_a_copy_is_that_of_no_other_message() -> None:
    """A receiver drops doubles by it: a forger of an identity must not choose another's id."""
    own = copy_id("plant", "id-1", Message("a", b"one"))

    assert copy_id("plant", "id-1", Message("a", b"one")) == own
    others = {
        copy_id("plant", "id-1", Message("a", b"two")),
        copy_id("plant", "id-1", Message("b", b"one")),
        copy_id("plant", "id-2", Message("a", b"one")),
        copy_id("cloud", "id-1", Message("a", b"one")),
    }
    assert len(others - {own}) == 4


def test_an_identity_belongs_to_the_batch_that_had_it_first() -> None:
    duplicates, first, second = (
        DuplicateFilter(),
        SettledBatch(),
        SettledBatch(),
    )
    assert find_all(duplicates, [1, 2, 1], first) == [None, None, first]
    assert find_all(duplicates, [2, 3], second) == [first, None]


@pytest.mark.parametrize(("later", "known"), [(29.0, True), (31.0, False)])
def test_an_identity_is_found_only_within_the_given_time(later: float, *, known: bool) -> None:
    duplicates, first, second = DuplicateFilter(), SettledBatch(0.0), SettledBatch(later)
    duplicates.find_or_add(identity(1), first, 30.0)
    assert duplicates.find_or_add(identity(1), second, 30.0) is (first if known else None)
    assert duplicates.find_or_add(identity(1), second, 30.0) is (first if known else second)


@pytest.mark.parametrize("surplus", [0, SURPLUS, 3 * SURPLUS + 7])
def test_the_latest_identities_are_always_found(surplus: int) -> None:
    duplicates, batch = DuplicateFilter(), SettledBatch()
    find_all(duplicates, range(MAX_IDENTITIES + surplus), batch)
    again = find_all(duplicates, range(surplus, MAX_IDENTITIES + surplus), SettledBatch())
    assert again == [batch] * MAX_IDENTITIES


def test_the_oldest_identities_are_evicted() -> None:
    duplicates = DuplicateFilter()
    find_all(duplicates, range(MAX_IDENTITIES + SURPLUS), SettledBatch())
    assert find_all(duplicates, range(100), SettledBatch()) == [None] * 100


def test_identities_of_an_earlier_run_are_settled() -> None:
    duplicates, called = DuplicateFilter(), list[str]()
    duplicates.remember([identity(1)])
    found = duplicates.find_or_add(identity(1), SettledBatch())
    assert found is not None
    found.when_settled(lambda: called.append("settled"))
    assert called == ["settled"]


def test_evictions_do_not_slow_the_filter() -> None:
    """The factor of 8 is beyond noise; a dict emptied from its front was 40 times slower."""
    duplicates, batch, spent = (
        DuplicateFilter(),
        SettledBatch(),
        list[float](),
    )
    for first in range(0, 4 * MAX_IDENTITIES, MAX_IDENTITIES):
        began = time.thread_time()
        find_all(duplicates, range(first, first + MAX_IDENTITIES), batch)
        spent.append(time.thread_time() - began)
    assert spent[-1] < 8 * spent[0]


@pytest.mark.parametrize(
    "added",
    [
        pytest.param([4, 2], id="one-was-there"),
        pytest.param([4, 5, 4], id="twice-in-the-batch"),
    ],
)
def test_a_batch_is_new_as_a_whole_or_adds_nothing(added: list[int]) -> None:
    duplicates = DuplicateFilter()
    assert duplicates.add_new([identity(number) for number in (1, 2, 3)], SettledBatch())

    assert not duplicates.add_new([identity(number) for number in added], SettledBatch())
    assert duplicates.find_or_add(identity(4), SettledBatch()) is None
