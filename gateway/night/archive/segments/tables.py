"""Archive rows as Arrow tables: the schema, rows of journals as columns, and the sort order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import COLUMNS, REQUIRED
from gateway.night.archive.segments.id_columns import words

TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "string": pa.string(),
        "binary": pa.binary(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "list": pa.list_(pa.string()),
        "counts": pa.list_(pa.int64()),
        "map": pa.map_(pa.string(), pa.string()),
    }
)


def schema_of(columns: Mapping[str, str], required: Sequence[str] = ()) -> pa.Schema:
    """Return the Arrow schema of columns of `gateway.archive.schema`."""
    return pa.schema(
        pa.field(name, TYPES[kind], nullable=name not in required) for name, kind in columns.items()
    )


SCHEMA: Final = schema_of(COLUMNS, REQUIRED)


def to_table(batches: Sequence[Rows]) -> tuple[pa.Table, int]:
    """Return the rows of many batches as a table, and the number of values that fit no column."""
    arrays, lost = [], 0
    counts = [rows.count for rows in batches]
    batch = np.repeat(np.arange(len(batches)), counts)  # the batch of each row
    for field in SCHEMA:
        array = _shared_column(batches, field, batch)
        if array is None:
            values = chain.from_iterable(rows.values(field.name) for rows in batches)
            array, misfits = _array(list(values), field.type)
            lost += misfits
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=SCHEMA), lost


def _shared_column(
    batches: Sequence[Rows], field: pa.Field, batch: npt.NDArray[np.int64]
) -> pa.Array:
    """Return a column from one value for each batch; None when rows differ or a value misfits.

    Faster for most columns: a value is converted once for each batch.
    """
    if any(field.name in rows.columns for rows in batches):
        return None
    values, lost = _array([rows.common.get(field.name) for rows in batches], field.type)
    if lost:
        return None
    if values.null_count == len(values):
        return pa.nulls(len(batch), field.type)
    return values.take(pa.array(batch))


def _array(values: Sequence[Cell], kind: pa.DataType) -> tuple[pa.Array, int]:
    """Return the values with null in place of each misfit, and the number of misfits."""
    try:
        return pa.array(_pairs(values, kind), kind), 0
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        if len(values) == 1:
            return pa.nulls(1, kind), 1
    parts = [_array([value], kind) for value in values]
    return pa.concat_arrays([array for array, _ in parts]), sum(lost for _, lost in parts)


def _pairs(values: Sequence[Cell], kind: pa.DataType) -> Sequence[object]:
    """Return the values as Arrow takes them: a map as a list of pairs.

    Raises:
        TypeError: a value is not a map, for some of which Arrow ends the process.
    """
    if not pa.types.is_map(kind):
        return values
    if any(value is not None and not isinstance(value, Mapping) for value in values):
        raise TypeError("a value is no map")
    return [list(value.items()) if isinstance(value, Mapping) else None for value in values]


def sort_rows(table: pa.Table) -> pa.Table:
    """Sort by route, leg and id, so that a query for one of them skips row groups."""
    group = np.zeros(len(table), np.int64)
    for name in ("route", "leg"):
        codes = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        rank = np.argsort(pc.sort_indices(codes.dictionary).to_numpy())
        group = group * len(rank) + rank[codes.indices.to_numpy()]
    first, last = (half.view(np.uint64) for half in words(table["id"]))
    order = np.lexsort((last, first, group))  # fast, because the ids of a run ascend
    return table.take(pa.array(order))
