from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.journal.records import (
    MAGIC,
    Cell,
    Damage,
    Rows,
    pack,
    pack_mapping,
    read_records,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def batches(draw: st.DrawFn) -> Rows:
    count = draw(st.integers(0, 4))
    columns: dict[str, Sequence[Cell]] = {
        "name": draw(st.lists(TEXTS, min_size=count, max_size=count)),
        "id": draw(st.lists(st.binary(max_size=16), min_size=count, max_size=count)),
    }
    return Rows(count, {"route": draw(TEXTS), "time": draw(st.integers(0, 2**63 - 1))}, columns)


RECORDS = st.lists(st.lists(batches(), max_size=3), max_size=5)


@given(RECORDS)
def test_packed_records_are_read_back(records: list[list[Rows]]) -> None:
    data = MAGIC + b"".join(map(pack, records))

    assert list(read_records(data)) == records


@given(st.lists(st.sampled_from(["one", "two", "both"]), max_size=6))
def test_a_shared_list_is_written_once(columns: list[str]) -> None:
    lists: dict[str, Sequence[Cell]] = {"one": ["x" * 100], "two": ["y" * 100]}
    names = {"one": ["name"], "two": ["source_name"], "both": ["name", "source_name"]}
    batches = [
        Rows(1, {}, dict.fromkeys(names[each], lists["two" if each == "two" else "one"]))
        for each in columns
    ]

    record = pack(batches)

    assert list(read_records(record, 0)) == [batches]
    assert record.count(b"x" * 100) + record.count(b"y" * 100) == len(
        {id(values) for rows in batches for values in rows.columns.values()}
    )


@given(RECORDS, st.data())
def test_a_journal_cut_anywhere_keeps_its_whole_records(
    records: list[list[Rows]], data: st.DataObject
) -> None:
    whole = MAGIC + b"".join(map(pack, records))
    end = data.draw(st.integers(len(MAGIC), len(whole)))

    got = list(read_records(whole[:end]))

    kept = [record for record in got if not isinstance(record, Damage)]
    assert kept == records[: len(kept)]
    covered = len(MAGIC) + sum(len(pack(record)) for record in kept)
    torn = [Damage(covered, end - covered, torn=True)] if end > covered else []
    assert got[len(kept) :] == torn


@given(st.binary(max_size=200), st.data())
def test_a_damaged_record_costs_no_later_record(noise: bytes, data: st.DataObject) -> None:
    record = pack([Rows(1, {"route": "r"}, {"name": ["n"]})])
    whole = bytearray(MAGIC + record * 3)
    at = data.draw(st.integers(len(MAGIC) + len(record), len(MAGIC) + 2 * len(record)))
    noise = noise[: len(MAGIC) + 2 * len(record) - at]
    whole[at : at + len(noise)] = noise

    got = list(read_records(bytes(whole)))

    assert sum(not isinstance(found, Damage) for found in got) >= 2


@pytest.mark.parametrize("number", [-1, 1])
def test_a_column_that_refers_to_no_list_is_damage(number: int) -> None:
    body: Any = [[1, {}, {"name": ["n"]}], [1, {}, {"name": number}]]

    (found,) = read_records(MAGIC + pack_mapping(body))

    assert isinstance(found, Damage)


@given(st.binary(max_size=300))
def test_no_bytes_raise(noise: bytes) -> None:
    found = list(read_records(MAGIC + noise))

    assert all(isinstance(each, Damage) for each in found)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        pytest.param(Rows(2, {}, {"name": ["a"]}), "'name' has 1 of 2 values", id="short"),
        pytest.param(Rows(0, {"colour": "red"}, {}), r"unknown columns \['colour'\]", id="unknown"),
    ],
)
def test_wrong_rows_are_refused(rows: Rows, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pack([rows])


def test_a_lone_surrogate_does_not_stop_the_archive() -> None:
    (found,) = read_records(pack([Rows(1, {}, {"name": ["a\udc80"]})]), 0)

    assert found == [Rows(1, {}, {"name": ["a\\udc80"]})]
