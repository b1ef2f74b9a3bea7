from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.archive.intervals import from_ids
from gateway.night.reconcile.classify.sets import BlockIds
from tests.night.archive.interval_ids import to_ids

BLOCKS = 4
INTERVALS = st.lists(
    st.tuples(st.integers(0, BLOCKS - 1), st.booleans(), st.integers(0, 12), st.integers(0, 6)),
    max_size=8,
)
FLAGS = st.lists(st.booleans(), min_size=BLOCKS, max_size=BLOCKS).map(np.array)


def block_ids(intervals: list[tuple[int, bool, int, int]]) -> BlockIds:
    block, settled, first, length = np.array(intervals, np.int64).reshape(-1, 4).T
    return BlockIds(BLOCKS, block, settled.astype(np.bool_), first, first + length)


@given(INTERVALS)
def test_a_block_shares_ids_when_a_settled_one_is_anywhere_else(
    intervals: list[tuple[int, bool, int, int]],
) -> None:
    expected = [False] * BLOCKS
    for number, (block, settled, first, length) in enumerate(intervals):
        others = intervals[:number] + intervals[number + 1 :]
        if settled and any(a <= first + length and first <= a + n for _, _, a, n in others):
            expected[block] = True

    assert block_ids(intervals).shared_blocks().tolist() == expected


@given(INTERVALS, FLAGS, FLAGS, FLAGS)
def test_ids_are_joined_unless_they_are_settled_in_a_proven_block(
    intervals: list[tuple[int, bool, int, int]],
    whole: np.ndarray[tuple[int], np.dtype[np.bool_]],
    on_day: np.ndarray[tuple[int], np.dtype[np.bool_]],
    proven: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    expected = {
        each
        for block, settled, first, length in intervals
        if whole[block] or (on_day[block] and not (settled and proven[block]))
        for each in range(first, first + length + 1)
    }

    found = block_ids(intervals).unproven(whole, on_day, proven)
    assert to_ids(found).tolist() == sorted(expected)


@given(INTERVALS, st.lists(st.integers(0, 20), max_size=6))
def test_blocks_are_found_by_their_ids(
    intervals: list[tuple[int, bool, int, int]], ids: list[int]
) -> None:
    expected = [False] * BLOCKS
    for block, _, first, length in intervals:
        expected[block] |= any(first <= each <= first + length for each in ids)

    found = block_ids(intervals).blocks_with(from_ids(np.array(ids, np.int64)))
    assert found.tolist() == expected
