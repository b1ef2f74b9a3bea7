"""A cache with a limit of bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.limited_cache import ENTRY_OVERHEAD, LimitedCache

ROOM = 1_000  # entries


def test_a_full_cache_drops_every_fourth_entry() -> None:
    cache: LimitedCache[int, str] = LimitedCache(8 * (ENTRY_OVERHEAD + 10))
    for number in range(9):
        cache.add(number, "x", 10)
    assert [*cache] == [1, 2, 3, 5, 6, 7, 8]


def test_an_entry_beyond_the_limit_is_not_kept() -> None:
    cache: LimitedCache[int, str] = LimitedCache(1_000)
    cache.add(1, "x", 10)
    cache.add(2, "y", 10)
    assert cache.add(1, "long", 2_000) == "long"
    assert cache == {2: "y"}


def test_a_cleared_cache_has_all_its_room() -> None:
    cache: LimitedCache[int, str] = LimitedCache(3 * (ENTRY_OVERHEAD + 10))
    for number in range(2):
        cache.add(number, "x", 10)
    cache.clear()
    for number in range(3):
        cache.add(number, "y", 10)
    assert [*cache] == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5_000), st.booleans()), max_size=60))
def test_the_entries_never_take_more_than_the_limit(added: list[tuple[int, int, bool]]) -> None:
    """Also when one is added again, or was taken out."""
    cache: LimitedCache[int, int] = LimitedCache(4_000)
    for key, size, is_taken in added:
        cache.add(key, size, size)
        assert sum(each + ENTRY_OVERHEAD for each in cache.values()) <= 4_000
        assert (key in cache) is (size + ENTRY_OVERHEAD <= 4_000)
        if is_taken:
            cache.pop(key, None)


def in_turn(entries: int) -> Iterable[int]:
    return (each % entries for each in range(20 * entries))


def by_chance(entries: int) -> Iterable[int]:
    chance = random.Random(1)  # noqa: S311  # not for security
    return (chance.randrange(entries) for _ in range(20 * entries))


@pytest.mark.parametrize(("wanted", "least"), [(in_turn, 0.6), (by_chance, 0.75)])
def test_a_few_more_entries_than_it_has_room_for_are_mostly_there(
    wanted: Callable[[int], Iterable[int]], least: float
) -> None:
    entries = ROOM * 11 // 10
    cache: LimitedCache[int, int] = LimitedCache(ROOM * (ENTRY_OVERHEAD + 10))
    hits = 0
    for each in wanted(entries):
        if each in cache:
            hits += 1
        else:
            cache.add(each, each, 10)

    assert hits > least * 20 * entries
