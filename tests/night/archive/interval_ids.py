"""The numbers of a set of intervals, for comparison with those of a model."""

from __future__ import annotations

import numpy as np

from gateway.night.archive.intervals import Intervals, Numbers


def to_ids(intervals: Intervals) -> Numbers:
    """Return all numbers of the set in ascending order."""
    lengths = intervals.last - intervals.first + 1
    before = np.cumsum(lengths) - lengths
    return np.repeat(intervals.first - before, lengths) + np.arange(lengths.sum(), dtype=np.int64)
