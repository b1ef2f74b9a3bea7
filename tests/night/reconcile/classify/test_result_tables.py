"""The result tables of many groups against plain Python: Arrow keeps no order of groups."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from math import ceil

import pyarrow as pa
import pytest

from gateway.night.archive.segments.latency import BUCKETS
from gateway.night.reconcile.classify.result_tables import (
    EXCEPTIONS,
    LATENCIES,
    MINUTES,
    PERCENTILES,
    dead_letters,
    per_hour,
    percentiles,
    samples,
)

Group = tuple[datetime, str, str]

MIDNIGHT = datetime(2026, 3, 14, tzinfo=UTC)
MANY = [MIDNIGHT + timedelta(hours=hour) for hour in range(24)]


def histograms(routes: int) -> dict[Group, dict[int, int]]:
    """The copies of each bucket by hour, route and target."""
    rng = random.Random(routes)  # noqa: S311  # figures of a test
    return {
        (hour, f"route-{route}", target): {
            bucket: rng.randrange(1, 200) for bucket in rng.sample(range(BUCKETS), 5)
        }
        for hour in MANY
        for route in range(routes)
        for target in ("audit", "erp")
    }


def latencies(groups: dict[Group, dict[int, int]]) -> pa.Table:
    """The counts in any order, each in two parts, as several tasks send them."""
    rows = [
        {**dict(zip(LATENCIES.names, (*group, bucket), strict=False)), "copies": copies}
        for group, counts in groups.items()
        for bucket, all_copies in counts.items()
        for copies in (1, all_copies - 1)
    ]
    random.Random(1).shuffle(rows)  # noqa: S311  # an order of a test
    return pa.Table.from_pylist(rows, LATENCIES)


def longest(bucket: int) -> int:
    """The longest latency of a bucket, by the text of its module."""
    if bucket < 2:
        return bucket
    octave: int = 1 << bucket // 2
    return 2 * octave - 1 if bucket % 2 else octave + octave // 2 - 1


def plain_percentiles(counts: dict[int, int]) -> dict[str, int]:
    each = [bucket for bucket in sorted(counts) for _ in range(counts[bucket])]
    found = {
        name: longest(each[ceil(len(each) * share) - 1]) for name, share in PERCENTILES.items()
    }
    return {"timed": len(each), **found}


@pytest.mark.parametrize("routes", [1, 2, 5, 40])
def test_percentiles_are_those_of_plain_python(routes: int) -> None:
    groups = histograms(routes)

    found = percentiles(latencies(groups), "hour", "route", "target").to_pylist()

    assert [(row["hour"], row["route"], row["target"]) for row in found] == sorted(groups)
    for row in found:
        own = plain_percentiles(groups[row["hour"], row["route"], row["target"]])
        assert {name: row[name] for name in own} == own


def test_percentiles_of_all_routes_are_those_of_plain_python() -> None:
    groups = histograms(5)
    sums: dict[datetime, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (hour, _, _), counts in groups.items():
        for bucket, copies in counts.items():
            sums[hour][bucket] += copies

    found = percentiles(latencies(groups), "hour").to_pylist()

    assert found == [{"hour": hour, **plain_percentiles(sums[hour])} for hour in MANY]


def test_a_day_without_latencies_has_no_percentiles() -> None:
    assert percentiles(LATENCIES.empty_table(), "hour", "route").num_rows == 0
    assert per_hour(MINUTES.empty_table(), LATENCIES.empty_table(), "route").num_rows == 0


def letters(number: int) -> list[dict[str, object]]:
    """Dead letters of many rules; the example of a rule is the one with the smallest id."""
    return [
        {
            "class": "refused",
            "route": f"route-{each % 97:02}",
            "target": "erp",
            "rule": f"rule-{each % 2}",
            "id": f"{number - each:032x}",
            "name": f"a/{each}",
            "reason": f"text {each}",
        }
        for each in range(number)
    ]


def test_dead_letters_are_listed_by_route_and_rule_with_their_first_example() -> None:
    rows = letters(1_000)
    parts = [pa.Table.from_pylist(rows[at : at + 300], EXCEPTIONS) for at in range(0, 1_000, 300)]
    plain: dict[tuple[object, ...], list[dict[str, object]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: str(row["id"])):
        plain[row["class"], row["route"], row["target"], row["rule"]].append(row)

    found = dead_letters(iter(parts)).to_pylist()

    assert found == [
        {**{name: own[0][name] for name in ("class", "route", "target", "rule")},
         "copies": len(own),
         **{name: own[0][name] for name in ("id", "name", "reason")}}
        for _, own in sorted(plain.items(), key=lambda each: tuple(map(str, each[0])))
    ]  # fmt: skip


def test_samples_are_the_first_of_each_class() -> None:
    rows = [
        {**row, "class": name, "gateway": "edge", "received_time": MIDNIGHT}
        for row in letters(200)
        for name in ("missing", "altered", "refused")
    ]
    random.Random(2).shuffle(rows)  # noqa: S311  # an order of a test
    parts = [pa.Table.from_pylist(rows[at : at + 100], EXCEPTIONS) for at in range(0, 600, 100)]

    found = samples(iter(parts), 3).to_pylist()

    ids = sorted({str(row["id"]) for row in rows})[:3]
    assert [(row["class"], row["id"]) for row in found] == [
        (name, each) for name in ("altered", "missing", "refused") for each in ids
    ]
