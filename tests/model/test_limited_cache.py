"""A cache with a limit of bytes."""

from __future__ import annotations

from gateway.model.limited_cache import ENTRY_OVERHEAD, LimitedCache


def test_a_full_cache_keeps_only_the_latest_entry() -> None:
    cache: LimitedCache[int, str] = LimitedCache(3 * (ENTRY_OVERHEAD + 10))
    for number in range(4):
        cache.add(number, "x", 10)
    assert cache == {3: "x"}


def test_an_entry_beyond_the_limit_is_not_kept() -> None:
    cache: LimitedCache[int, str] = LimitedCache(1_000)
    cache.add(1, "x", 2_000)
    cache.add(2, "y", 10)
    assert cache == {2: "y"}


def test_a_cleared_cache_has_all_its_room() -> None:
    cache: LimitedCache[int, str] = LimitedCache(3 * (ENTRY_OVERHEAD + 10))
    for number in range(2):
        cache.add(number, "x", 10)
    cache.clear()
    for number in range(3):
        cache.add(number, "y", 10)
    assert [*cache] == [0, 1, 2]
