from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from gateway.archive.journal.records import Rows
from gateway.archive.layout import hour_folder
from gateway.archive.storage import LocalStorage
from gateway.night.archive.parquet import PAIRS_KEY
from gateway.night.archive.segments import write
from gateway.night.archive.segments.pairs import every_pair_of
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.archive.segments.tables import sort_rows, to_table
from gateway.night.archive.segments.write import write_segment
from tests.archive.samples import NOON, delivered, identity, received


def table(*rows: Rows) -> pa.Table:
    return sort_rows(to_table(rows)[0])


def one(number: int, time: int, name: str) -> Rows:
    return delivered([number], time=NOON + time, source_name=name)


def test_pairs_are_the_names_with_their_first_and_last() -> None:
    pairs = every_pair_of(
        table(
            received([1, 2]),
            one(2, 9, name="s"),
            one(1, 4, name="s"),
            delivered([5], name="b.c", source_name="b/c"),
        )
    )

    names = ["a.b1", "a.b2", "b.c"]
    assert sorted(pairs["name"].to_pylist()) == names
    (row,) = [row for row in pairs.to_pylist() if row["name"] == "b.c"]
    assert (row["source_name"], row["system"], row["target"]) == ("b/c", "ems", "erp")
    assert (row["count"], row["first_id"], row["last_id"]) == (1, identity(5), identity(5))
    assert row["first_time"].timestamp() * 1_000_000 == NOON


def test_the_first_and_last_of_a_pair_are_by_id_and_by_time() -> None:
    pairs = every_pair_of(table(*(delivered([n], time=NOON - n, name="x") for n in (3, 1, 2))))

    (row,) = pairs.to_pylist()
    assert (row["count"], row["first_id"], row["last_id"]) == (3, identity(1), identity(3))
    times = (row["first_time"], row["last_time"])
    assert [round(time.timestamp() * 1_000_000) for time in times] == [NOON - 3, NOON - 1]


@pytest.mark.parametrize(("limit", "kept"), [(2, False), (3, True)])
def test_too_many_pairs_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, *, kept: bool
) -> None:
    monkeypatch.setattr(write, "MAX_PAIRS", limit)
    storage, path = LocalStorage(tmp_path), hour_folder(NOON) / "east-1-0-0000.parquet"
    write_segment(storage, path, [table(delivered([1, 2, 3], gateway="east"))], "east-1-0")

    with open_parquet(storage.open(path)) as file:
        assert (file.beside(PAIRS_KEY) is not None) is kept
