from __future__ import annotations

import pyarrow as pa

from gateway.archive.journal.records import Rows
from gateway.archive.segments.pairs import every_pair_of, pairs_of
from gateway.archive.segments.tables import sort_rows, to_table
from tests.archive.samples import NOON, delivered, identity, received


def table(*rows: Rows) -> pa.Table:
    return sort_rows(to_table(rows)[0])


def one(number: int, time: int, name: str) -> Rows:
    return delivered([number], time=NOON + time, source_name=name)


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
    assert every_pair_of(rows).num_rows == 3
