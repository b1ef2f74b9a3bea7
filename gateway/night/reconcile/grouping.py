"""Groups of the rows of Arrow tables, whose columns keep their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.night.archive.intervals import Flags, Numbers

TARGET_KEYS: Final = ("gateway", "route", "target")  # of a copy
RUN_KEYS: Final = (*TARGET_KEYS, "run")  # of the ids that one process gave


def grouped(rows: pa.Table, keys: Sequence[str], columns: Mapping[str, str]) -> pa.Table:
    """Return a row for each value of `keys`, in any order: Arrow keeps none of many groups.

    `columns` have the function of each column.
    """
    found = rows.group_by(list(keys)).aggregate(list(columns.items()))
    names = [*keys, *(f"{name}_{function}" for name, function in columns.items())]
    return found.select(names).rename_columns([*keys, *columns])


def summed(rows: pa.Table, keys: Sequence[str], columns: Iterable[str]) -> pa.Table:
    """Return the sums of `columns` for each value of `keys`, sorted by these."""
    found = grouped(rows, keys, dict.fromkeys(columns, "sum"))
    return found.sort_by(ascending(*keys))


def firsts(rows: pa.Table, keys: Sequence[str]) -> Numbers:
    """Return the place of the first row of each value of `keys`, by which `rows` are sorted."""
    begins = np.zeros(rows.num_rows, np.bool_)
    begins[:1] = True
    for name in keys:
        codes = rows[name].combine_chunks().dictionary_encode(null_encoding="encode").indices
        begins[1:] |= np.diff(codes.to_numpy()) != 0
    return np.flatnonzero(begins)


def total(table: pa.Table, *names: str) -> int:
    """Return the sum of all numbers in some columns."""
    return sum(pc.sum(table[name]).as_py() or 0 for name in names)


def filled(schema: pa.Schema, number: int, columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of `number` rows; `columns` have arrays, or a value for all rows.

    A column of `schema` that is not there is null.
    """
    arrays = []
    for field in schema:
        found = columns.get(field.name)
        if not isinstance(found, pa.Array | pa.ChunkedArray):
            found = pa.repeat(pa.scalar(found, field.type), number)
        arrays.append(found.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def positions(rows: pa.Table, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Numbers]]:
    """Yield the distinct values of `keys` in any order, each with the places of its rows."""
    numbered = rows.select(list(keys)).append_column("row", pa.array(np.arange(rows.num_rows)))
    groups = numbered.group_by(list(keys), use_threads=False).aggregate([("row", "list")])
    for group in groups.to_batches():
        lists = group["row_list"]
        for place, key in enumerate(group.select(list(keys)).to_pylist()):
            yield tuple(key.values()), lists[place].values.to_numpy()


def with_values(rows: pa.Table, **values: str) -> Flags:
    """Return which rows have these values of columns."""
    found = np.ones(rows.num_rows, np.bool_)
    for name, value in values.items():
        found &= pc.fill_null(pc.equal(rows[name], value), False).to_numpy()
    return found


def ascending(*names: str) -> list[tuple[str, str]]:
    """Return the order of `names` for `pa.Table.sort_by`."""
    return [(name, "ascending") for name in names]
