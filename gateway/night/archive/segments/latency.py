"""Latency histograms with half-octave buckets, whose counts add up over blocks.

Bucket 2n holds microseconds from 2**n up to 1.5 * 2**n, bucket 2n + 1 the rest up to 2**(n + 1).
The first two buckets hold 0 and 1, the last all longer latencies. A block has a list of counts
by bucket without trailing zeros; the list is empty when no latency is known.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.night.archive.intervals import Numbers

BUCKETS: Final = 80  # the last begins at 9 days


def buckets(latencies: Numbers) -> Numbers:
    """Return the bucket of each latency in microseconds; a negative latency counts as 0."""
    spent = np.clip(latencies, 0, 1 << BUCKETS // 2)
    octave = np.maximum(np.frexp(spent.astype(np.float64))[1].astype(np.int64) - 1, 1)
    half = (spent >> (octave - 1)) & 1
    return np.where(spent < 2, spent, np.minimum(2 * octave + half, BUCKETS - 1))  # noqa: PLR2004  # see the module docstring


def histograms(groups: Numbers, bucket: Numbers, copies: Numbers, number: int) -> pa.ListArray:
    """Return the histogram of each of `number` groups.

    `groups`, `bucket` and `copies` have an element for each count, in any order.
    """
    keys, index = np.unique(groups * BUCKETS + bucket, return_inverse=True)
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, index, copies)
    group, at = keys // BUCKETS, keys % BUCKETS
    lengths = np.zeros(number, np.int64)
    lengths[group] = at + 1  # keys ascend, so the last bucket of a group overwrites the others
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros(offsets[-1], np.int64)
    values[offsets[group] + at] = sums
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


def nonzero_counts(lists: pa.ChunkedArray) -> tuple[Numbers, Numbers, Numbers]:
    """Return row, bucket and copies of every nonzero count in `lists`; a null list has none."""
    whole: Any = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(whole), 0).to_numpy().astype(np.int64)
    copies = whole.flatten().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    bucket = np.arange(len(copies), dtype=np.int64) - starts
    nonzero = copies != 0
    return rows[nonzero], bucket[nonzero], copies[nonzero]
