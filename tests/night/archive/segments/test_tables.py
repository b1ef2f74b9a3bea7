"""Conversion of rows to tables: shared values and batches make no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.journal.records import Cell, Rows
from gateway.night.archive.segments.tables import sort_rows, to_table

TEXTS = st.text(max_size=3)
CELLS: Mapping[str, st.SearchStrategy[Cell]] = {
    "gateway": st.just("g"),
    "route": TEXTS,
    "leg": st.sampled_from(["received", "delivered", "dead"]),
    "endpoint": TEXTS,
    "system": TEXTS,
    "name": TEXTS,
    "id": st.binary(min_size=16, max_size=16),
    "time": st.integers(0, 2**40),
    "targets": st.lists(TEXTS, max_size=2),
    "rule": st.none() | TEXTS,
    "attempt": st.integers(0, 5) | st.just(2**40),  # does not fit
    "headers": st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2),
}


@st.composite
def batches(draw: st.DrawFn) -> Rows:
    count = draw(st.integers(0, 4))
    common = {name: draw(cells) for name, cells in CELLS.items()}
    own = draw(st.sets(st.sampled_from([*CELLS])))
    columns = {name: [draw(CELLS[name]) for _ in range(count)] for name in own}
    return Rows(count, {name: common[name] for name in common.keys() - own}, columns)


def expanded(batch: Rows) -> Rows:
    names = batch.common.keys() | batch.columns.keys()
    return Rows(batch.count, {}, {name: batch.values(name) for name in names})


@given(st.lists(batches(), min_size=1, max_size=5))
def test_a_shared_value_equals_one_for_each_row(given: Sequence[Rows]) -> None:
    table, lost = to_table(given)
    same, as_many = to_table([expanded(batch) for batch in given])

    assert table.equals(same)
    assert lost == as_many


@given(st.lists(batches(), min_size=1, max_size=5))
def test_rows_are_sorted_by_route_leg_and_id(given: Sequence[Rows]) -> None:
    table, _ = to_table(given)
    keys = ("route", "leg", "id")
    rows = sort_rows(table).select(keys).to_pylist()

    assert rows == sorted(table.select(keys).to_pylist(), key=lambda row: [row[k] for k in keys])
