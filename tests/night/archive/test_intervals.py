from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.archive.intervals import (
    Intervals,
    contains,
    count,
    from_ids,
    from_sorted,
    overlapping,
    union,
)
from tests.night.archive.interval_ids import to_ids

LEAST, MOST = -(2**63), 2**63 - 1

NEAR = st.integers(-12, 12)
EXTREME = st.integers(LEAST, LEAST + 3) | st.integers(MOST - 3, MOST)
IDS = st.lists(NEAR, max_size=20) | st.lists(NEAR | EXTREME, max_size=8)


def of(ids: Iterable[int]) -> Intervals:
    return from_ids(np.array([*ids], np.int64))


def listed(intervals: Intervals) -> list[tuple[int, int]]:
    return list(zip(intervals.first.tolist(), intervals.last.tolist(), strict=True))


def assert_is(intervals: Intervals, ids: Iterable[int]) -> None:
    """Assert the ids, and that the intervals are disjoint and not adjacent."""
    assert to_ids(intervals).tolist() == sorted(ids)
    pairs = listed(intervals)
    assert all(first <= last for first, last in pairs)
    assert all(one[1] + 1 < other[0] for one, other in pairwise(pairs))


@given(IDS)
def test_a_set_has_the_ids_it_was_made_of(ids: list[int]) -> None:
    assert_is(of(ids), set(ids))
    assert count(of(ids)) == len(set(ids))


@given(IDS, IDS)
def test_operations_are_those_of_sets(one: list[int], other: list[int]) -> None:
    a, b = of(one), of(other)

    both = union(np.append(a.first, b.first), np.append(a.last, b.last))
    assert_is(both, {*one} | {*other})
    assert contains(a, np.array(other, np.int64)).tolist() == [each in one for each in other]


@given(st.lists(st.tuples(NEAR, st.integers(0, 6)), max_size=8), IDS)
def test_intervals_may_overlap_before_their_union(
    spans: list[tuple[int, int]], ids: list[int]
) -> None:
    first = np.array([begin for begin, _ in spans], np.int64)
    last = np.array([begin + length for begin, length in spans], np.int64)
    ranges = [range(begin, begin + length + 1) for begin, length in spans]

    assert_is(union(first, last), {each for span in ranges for each in span})
    assert overlapping(first, last, of(ids)).tolist() == [
        any(each in span for each in ids) for span in ranges
    ]


@given(st.lists(st.tuples(st.integers(0, 3), NEAR | EXTREME), max_size=20))
def test_groups_have_sets_of_their_own(pairs: list[tuple[int, int]]) -> None:
    pairs.sort()
    groups, ids = np.array(pairs, np.int64).reshape(-1, 2).T
    found, owner = from_sorted(groups, ids)

    for group in range(4):
        own = Intervals(found.first[owner == group], found.last[owner == group])
        assert_is(own, {each for where, each in pairs if where == group})


def test_the_whole_range_has_two_to_the_64_numbers() -> None:
    every = Intervals(np.array([LEAST]), np.array([MOST]))

    assert count(every) == 2**64
    assert listed(union(np.array([LEAST, 0]), np.array([MOST, MOST]))) == [(LEAST, MOST)]
