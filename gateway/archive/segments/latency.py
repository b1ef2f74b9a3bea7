"""How long deliveries took, as counts by half octave that add up: arrays to arrays.

Bucket 2n holds microseconds from 2**n up to 1.5 * 2**n, bucket 2n + 1 the rest up to 2**(n + 1);
the first two hold 0 and 1, the last all that is longer. A row of a digest has a list of counts by
bucket, without the zeros behind the last; none where nothing was timed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BUCKETS: Final = 80  # the last begins at 9 days
COUNTS: Final = pa.list_(pa.int64())

Numbers = npt.NDArray[np.int64]


def buckets(latencies: Numbers) -> Numbers:
    """The bucket of each latency in microseconds; a clock that was set back gives 0."""
    spent = np.clip(latencies, 0, 1 << BUCKETS // 2)
    octave = np.maximum(np.frexp(spent.astype(np.float64))[1].astype(np.int64) - 1, 1)
    half = (spent >> (octave - 1)) & 1
    return np.where(spent < 2, spent, np.minimum(2 * octave + half, BUCKETS - 1))  # noqa: PLR2004  # as told above


def counted(groups: Numbers, bucket: Numbers, copies: Numbers, number: int) -> pa.ListArray:
    """The lists of `number` groups, of so many copies in a bucket of a group each; in any order."""
    places, which = np.unique(groups * BUCKETS + bucket, return_inverse=True)
    sums = np.zeros(len(places), np.int64)
    np.add.at(sums, which, copies)
    group, at = places // BUCKETS, places % BUCKETS
    lengths = np.zeros(number, np.int64)
    lengths[group] = at + 1  # places rise, so the last of a group is what stays
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.zeros(offsets[-1], np.int64)
    values[offsets[group] + at] = sums
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


def timed(lists: pa.ChunkedArray) -> tuple[Numbers, Numbers, Numbers]:
    """Row, bucket and copies of every count in `lists` but the zeros; a null has none."""
    whole: Any = lists.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(whole), 0).to_numpy().astype(np.int64)
    copies = whole.flatten().to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    bucket = np.arange(len(copies), dtype=np.int64) - starts
    some = copies != 0
    return rows[some], bucket[some], copies[some]
