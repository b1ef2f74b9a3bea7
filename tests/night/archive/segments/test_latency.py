from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.archive.segments.latency import BUCKETS, buckets, histograms, nonzero_counts


def slow_bucket(latency: int) -> int:
    """The bucket of a latency in Python integers."""
    if latency < 2:
        return max(latency, 0)
    octave = latency.bit_length() - 1
    second_half = 2 * latency >= 3 << octave
    return min(2 * octave + second_half, BUCKETS - 1)


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 2**41) | st.integers(0, 20)))
def test_a_latency_is_in_the_bucket_of_its_half_octave(latencies: list[int]) -> None:
    found = buckets(np.array(latencies, np.int64)).tolist()

    assert found == [slow_bucket(each) for each in latencies]


def test_histograms_add_up() -> None:
    lists = pa.chunked_array([pa.array([[2, 0, 1], None, [], [0, 4]], pa.list_(pa.int64()))])
    rows, bucket, copies = nonzero_counts(lists)

    assert histograms(rows, bucket, copies, 4).to_pylist() == [[2, 0, 1], [], [], [0, 4]]
    assert histograms(rows * 0, bucket, copies, 1).to_pylist() == [[2, 4, 1]]
    assert histograms(rows[:0], bucket[:0], copies[:0], 1).to_pylist() == [[]]
