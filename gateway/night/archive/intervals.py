"""Sets of 64-bit numbers as sorted intervals, with vectorized set operations.

The intervals of a set are disjoint and not adjacent, and include both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set: interval n holds the numbers from `first[n]` to `last[n]`."""

    first: Numbers
    last: Numbers


EMPTY: Final = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def from_ids(ids: Numbers) -> Intervals:
    """Return the set of `ids`, which are in any order and may repeat."""
    ordered = np.sort(ids)
    intervals, _ = from_sorted(np.zeros(len(ordered), np.int64), ordered)
    return intervals


def from_sorted(groups: Numbers, ids: Numbers) -> tuple[Intervals, Numbers]:
    """Return the sets of many groups in one sequence, and the group of each interval.

    `groups` ascend, and so do the ids of a group; an id may repeat.
    """
    if not len(ids):
        return EMPTY, groups
    near = (ids[1:] - ids[:-1]).view(np.uint64) <= 1
    begins = np.append(True, ~(near & (groups[1:] == groups[:-1])))
    ends = np.append(begins[1:], True)
    return Intervals(ids[begins], ids[ends]), groups[begins]


def count(intervals: Intervals) -> int:
    """Return how many numbers the set has."""
    wide = (intervals.last - intervals.first).view(np.uint64)
    return int(wide.sum()) + len(wide)


def union(first: Numbers, last: Numbers) -> Intervals:
    """Return the set of the numbers in any interval; they overlap and stand in any order."""
    if not len(first):
        return EMPTY
    order = np.argsort(first, kind="stable")
    first, top = first[order], np.maximum.accumulate(last[order])
    before, begin = top[:-1], first[1:]
    # The sum may wrap around at the largest number, where nothing begins behind it.
    begins = np.append(True, (begin > before) & (begin != before + 1))
    return Intervals(first[begins], top[np.append(begins[1:], True)])


def overlapping(first: Numbers, last: Numbers, intervals: Intervals) -> Flags:
    """Return whether each interval from `first` to `last` has a number of the set."""
    if not len(intervals.first):
        return np.zeros(len(first), np.bool_)
    at = np.searchsorted(intervals.last, first)
    inside = at < len(intervals.first)
    found: Flags = inside & (intervals.first[np.where(inside, at, 0)] <= last)
    return found


def contains(intervals: Intervals, ids: Numbers) -> Flags:
    """Return whether each id is in the set."""
    return overlapping(ids, ids, intervals)
