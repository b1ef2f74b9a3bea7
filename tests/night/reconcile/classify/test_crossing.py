from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.reconcile.classify.crossing import Ranges

SPAN = st.tuples(st.integers(0, 9), st.integers(0, 3))
RANGES = st.lists(st.tuples(st.integers(0, 1), SPAN, SPAN, st.booleans()), max_size=8)

Range = tuple[int, tuple[int, int], tuple[int, int], bool]


def ranges(found: list[Range]) -> Ranges:
    flat = [(stream, *ids, *times, day) for stream, ids, times, day in found]
    stream, first, ids, begin, times, day = np.array(flat, np.int64).reshape(-1, 6).T
    owner = np.arange(len(stream))
    return Ranges(stream, owner, first, first + ids, begin, begin + times, day.astype(np.bool_))


def cross(one: Range, other: Range) -> bool:
    """Return whether a delivery of the day in a range may have overtaken one of the other range."""
    (stream, (first, ids), (begin, times), day), (theirs, (later, _), (start, _), today) = (
        one,
        other,
    )
    if stream != theirs or first > later:
        return False
    return (first + ids >= later and (day or today)) or (begin + times > start and today)


@given(RANGES)
def test_ranges_cross_by_id_or_time_when_one_of_the_day_may_be_late(found: list[Range]) -> None:
    expected = [
        any(
            cross(one, other) or cross(other, one)
            for place, other in enumerate(found)
            if place != number
        )
        for number, one in enumerate(found)
    ]

    assert ranges(found).crossing().tolist() == expected


@given(RANGES)
def test_ranges_of_one_owner_merge(found: list[Range]) -> None:
    owners = np.arange(len(found)) // 3

    merged = ranges(found).merged(owners)
    expected: dict[tuple[int, int], tuple[int, int, int, int, bool]] = {}
    for place, (stream, (first, ids), (begin, times), day) in enumerate(found):
        key = (stream, place // 3)
        mine = expected.get(key, (first, first + ids, begin, begin + times, day))
        expected[key] = (
            min(mine[0], first),
            max(mine[1], first + ids),
            min(mine[2], begin),
            max(mine[3], begin + times),
            mine[4] or day,
        )
    columns = (merged.first, merged.last, merged.begin, merged.end, merged.on_day)
    values = zip(*(each.tolist() for each in columns), strict=True)
    keys = zip(merged.stream.tolist(), merged.owner.tolist(), strict=True)
    assert dict(zip(keys, values, strict=True)) == expected
