from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.archive.journal.records import Rows
from gateway.archive.segments.digest import MINUTE, add_up, digests_of, disordered_streams, pairs_of
from gateway.archive.segments.latency import BUCKETS, buckets
from gateway.archive.segments.parquet import sort_rows, to_table
from tests.archive.samples import NOON, dead, delivered, identity, received

ALL = 2**64 - 1
WORDS = [f"{of}_{word}" for of in ("id", "content") for word in range(4)]


def table(*rows: Rows) -> pa.Table:
    return sort_rows(to_table(rows)[0])


def slow_mix(value: int, constants: tuple[int, int, int, int, int]) -> int:
    first, by, second, times, third = constants
    value = ((value ^ value >> first) * by) & ALL
    value = ((value ^ value >> second) * times) & ALL
    return value ^ value >> third


def slow_left(value: int) -> int:
    return slow_mix(value & ALL, (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31))


def slow_right(value: int) -> int:
    return slow_mix(value & ALL, (33, 0xFF51AFD7ED558CCD, 33, 0xC4CEB9FE1A85EC53, 33))


def slow_lanes(identity: bytes, content: bytes | None) -> list[int]:
    """The eight lanes of one row by the specification, in Python integers."""
    a, b = int.from_bytes(identity[:8]), int.from_bytes(identity[8:])
    c, d = int.from_bytes((content or bytes(16))[:8]), int.from_bytes((content or bytes(16))[8:])
    left, right = (
        slow_left(slow_left(a + 0x9E3779B97F4A7C15) ^ b),
        slow_right(slow_right(b + 0xD1B54A32D192ED03) ^ a),
    )
    content_left = slow_left(slow_left(left + c) ^ d)
    content_right = slow_right(slow_right(right + d) ^ c)
    halves = (left, right, content_left, content_right)
    return [part for half in halves for part in (half >> 32, half & 0xFFFFFFFF)]


def slow_digests(rows: pa.Table) -> dict[tuple[Any, ...], list[int]]:
    """Count and lanes by route, target, leg and minute, row by row."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, target in slow_targets(rows.to_pylist()):
        at = int((row["received"] or row["time"]).timestamp()) // 60
        sums = found.setdefault((row["route"], target, row["leg"], at), [0] * 9)
        for index, value in enumerate([1, *slow_lanes(row["id"], row["hash"])]):
            sums[index] += value
    return found


def slow_targets(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    for row in rows:
        named = [] if row["target"] else row["targets"] or []
        yield from ((row, target) for target in named or [row["target"] or ""])


def quick_digests(rows: pa.Table) -> dict[tuple[Any, ...], list[int]]:
    return {
        (row["route"], row["target"], row["leg"], int(row["minute"].timestamp()) // 60): [
            row[name] for name in ("count", *WORDS)
        ]
        for row in digests_of(rows).to_pylist()
    }


IDS = st.binary(max_size=20) | st.binary(min_size=16, max_size=16)
HASHES = st.none() | st.binary(min_size=16, max_size=16)
TIMES = st.integers(NOON, NOON + 3 * MINUTE)


@st.composite
def any_rows(draw: st.DrawFn) -> Rows:
    count = draw(st.integers(0, 6))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    common = {
        "gateway": "edge", "route": draw(st.sampled_from(["", "r"])), "endpoint": "e",
        "leg": draw(st.sampled_from(["received", "delivered", "dead", "observed"])),
        "system": "mqtt", "target": draw(st.sampled_from([None, "", "erp"])),
    }  # fmt: skip
    columns = {
        "id": column(IDS),
        "hash": column(HASHES),
        "time": column(TIMES),
        "received": column(st.none() | TIMES),
        "targets": column(st.none() | st.lists(st.sampled_from(["erp", "audit"]), max_size=2)),
        "name": column(st.sampled_from(["a", "b"])),
    }
    return Rows(count, common, columns)


@given(st.lists(any_rows(), max_size=4))
@settings(deadline=None)
def test_sums_are_those_of_a_slow_model(rows: list[Rows]) -> None:
    padded = to_table(rows)[0]
    at = padded.schema.get_field_index("id")
    ids = [value[:16].ljust(16, b"\0") for value in padded["id"].to_pylist()]
    whole = padded.set_column(at, padded.schema.field("id"), pa.array(ids, pa.binary()))

    assert quick_digests(padded) == slow_digests(whole)


@given(st.lists(any_rows(), max_size=5), st.integers(0, 5))
@settings(deadline=None)
def test_digests_of_parts_add_up_to_that_of_the_whole(rows: list[Rows], cut: int) -> None:
    parts = [digests_of(to_table(part)[0]) for part in (rows[:cut], rows[cut:])]
    added = add_up(pa.concat_tables(parts)).drop_columns("disordered")

    assert added.equals(digests_of(to_table(rows)[0]).drop_columns("disordered"))


def test_the_hash_never_changes() -> None:
    (row,) = digests_of(table(received([7]))).to_pylist()

    assert [row[name] for name in WORDS] == [
        4024697017, 869834722, 3280531093, 29356595,
        1924602780, 1497135120, 341655368, 2180693292,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "ids", "contents"),
    [
        pytest.param([delivered([1, 2, 3])], True, True, id="all-there"),
        pytest.param([delivered([3, 1]), dead(2)], True, True, id="one-dead"),
        pytest.param([delivered([1, 2])], False, False, id="missing"),
        pytest.param([delivered([1, 2, 3, 3])], False, False, id="twice"),
        pytest.param([delivered([1, 2, 2])], False, False, id="one-for-another"),
        pytest.param([delivered([1, 2, 3], hash=bytes(16))], True, False, id="altered"),
    ],
)
def test_both_legs_agree_unless_something_happened(
    ends: list[Rows], ids: bool, contents: bool
) -> None:
    found = digests_of(table(received([1, 2, 3]), *ends)).to_pylist()

    sums = {leg: Counter[str]() for leg in ("received", "ends")}
    for row in found:
        side = sums["received" if row["leg"] == "received" else "ends"]
        side.update({name: row[name] for name in WORDS})
    same = {name: sums["received"][name] == sums["ends"][name] for name in WORDS}
    assert all(same[f"id_{word}"] for word in range(4)) is ids
    assert all(same[f"content_{word}"] for word in range(4)) is contents


def test_an_outcome_counts_in_the_minute_of_the_receipt() -> None:
    late = NOON + 59 * MINUTE
    found = digests_of(
        table(
            received([1, 2], ("erp", "audit"), NOON, received=NOON + 5, redelivered=True),
            delivered([1], "erp", late, received=NOON + 5, attempt=3, outcome="converted"),
            delivered([2], "erp", NOON + 7, received=NOON + 5),
        )
    ).to_pylist()

    facts = ("count", "converted", "redelivered", "retried", "slowest")
    assert [(row["target"], row["leg"], *(row[fact] for fact in facts)) for row in found] == [
        ("audit", "received", 2, 0, 2, 0, 0),
        ("erp", "delivered", 2, 1, 0, 1, late - NOON - 5),
        ("erp", "received", 2, 0, 2, 0, 0),
    ]
    assert {row["minute"].timestamp() * 1_000_000 for row in found} == {NOON}


def one(number: int, time: int, name: str = "a", target: str = "erp") -> Rows:
    return delivered([number], target, NOON + time, source_name=name)


@pytest.mark.parametrize(
    ("rows", "disordered"),
    [
        pytest.param([one(1, 0), one(2, 1), one(3, 1)], 0, id="in-order"),
        pytest.param([one(1, 5), one(2, 1), one(3, 5)], 1, id="overtaken"),
        pytest.param([one(1, 5), one(2, 1), one(3, 2)], 2, id="overtaken-by-two"),
        pytest.param([one(1, 5), one(2, 1, name="b")], 0, id="other-name"),
        pytest.param([one(1, 5), one(2, 1, target="audit")], 0, id="other-target"),
        pytest.param([one(1, 5), one(1, 3)], 0, id="twice"),
        pytest.param([received([1], time=NOON + 5), received([2])], 0, id="received"),
    ],
)
def test_outcomes_out_of_order_are_counted(rows: list[Rows], disordered: int) -> None:
    found = digests_of(table(*rows)).to_pylist()

    assert sum(row["disordered"] for row in found) == disordered


def test_streams_out_of_order_are_listed() -> None:
    late = delivered([1], "erp", NOON + 9, gateway="west", source_name="a")
    rows = [
        delivered([2], "erp", NOON + 8, gateway="west", source_name="a"),
        delivered([3], "erp", NOON + 8, gateway="west", source_name="b"),
        delivered([4], "audit", NOON + 8, gateway="west", source_name="a"),
        received([5], time=NOON + 1, gateway="west"),
    ]

    assert disordered_streams(table(late, *rows)).to_pylist() == [
        {"gateway": "west", "route": "orders", "target": "erp", "source_name": "a"}
    ]
    assert disordered_streams(table(*rows)).to_pylist() == []


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


def test_latencies_of_deliveries_are_counted_by_bucket() -> None:
    latencies = [0, 1, 1, 5, 6, 6, -7]
    ends = [
        delivered([number], time=NOON + latency, received=NOON)
        for number, latency in enumerate(latencies)
    ]
    others = [
        received([1], received=NOON),
        dead(8, time=NOON + 9, received=NOON),
        delivered([9], "audit", NOON + 3),  # of an older gateway: its latency is unknown
    ]
    found = digests_of(table(*ends, *others))

    known = {(row["target"], row["leg"]): row["latency"] for row in found.to_pylist()}
    assert known == {
        ("erp", "delivered"): [2, 2, 0, 0, 1, 2],
        ("erp", "received"): [],
        ("erp", "dead"): [],
        ("audit", "delivered"): [],
    }
    place = found.schema.get_field_index("latency")
    nothing = pa.nulls(len(found), found.schema.field("latency").type)
    older = found.set_column(place, "latency", nothing)  # of a gateway that did not count them
    assert add_up(pa.concat_tables([found, older]))["latency"].equals(found["latency"])
    twice = add_up(pa.concat_tables([found, found])).filter(pc.equal(found["target"], "erp"))
    assert [4, 4, 0, 0, 2, 4] in twice["latency"].to_pylist()


def test_rows_of_an_older_gateway_count_by_the_time_they_have() -> None:
    new = table(received([1]), delivered([1]))
    old = new.drop_columns(["received", "source_name"])

    assert digests_of(old).equals(digests_of(new))
    pairs = pairs_of(old)
    assert pairs is not None
    assert pairs["source_name"].to_pylist() == [None]


def test_pairs_are_the_names_with_their_first_and_last() -> None:
    pairs = pairs_of(
        table(
            received([1, 2]),
            one(2, 9, name="s"),
            one(1, 4, name="s"),
            delivered([5], name="b.c", source_name="b/c"),
        )
    )

    assert pairs is not None
    names = ["a.b1", "a.b2", "b.c"]
    assert sorted(pairs["name"].to_pylist()) == names
    (row,) = [row for row in pairs.to_pylist() if row["name"] == "b.c"]
    assert (row["source_name"], row["system"], row["target"]) == ("b/c", "ems", "erp")
    assert (row["count"], row["first_id"], row["last_id"]) == (1, identity(5), identity(5))
    assert row["first_time"].timestamp() * 1_000_000 == NOON


def test_the_first_and_last_of_a_pair_are_by_id_and_by_time() -> None:
    pairs = pairs_of(table(*(delivered([n], time=NOON - n, name="x") for n in (3, 1, 2))))

    assert pairs is not None
    (row,) = pairs.to_pylist()
    assert (row["count"], row["first_id"], row["last_id"]) == (3, identity(1), identity(3))
    times = (row["first_time"], row["last_time"])
    assert [round(time.timestamp() * 1_000_000) for time in times] == [NOON - 3, NOON - 1]


def test_too_many_pairs_are_not_kept() -> None:
    rows = table(delivered([1, 2, 3]))

    assert pairs_of(rows, 2) is None
    assert pairs_of(rows, 3) is not None
    assert pairs_of(rows, None) is not None
