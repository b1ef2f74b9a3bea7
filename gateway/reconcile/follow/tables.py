"""The rows that a micro-batch appends to the tables of a date: functions of Arrow tables.

Both tables have a folder for each batch. The newest row of a copy, and of a target's minute, is
the valid one; unchanged rows are not repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.segments.reading import open_parquet
from gateway.model.copy_class import TALLIES
from gateway.reconcile.classify.tables import EXCEPTIONS, MINUTE_KEYS, MINUTES
from gateway.reconcile.grouping import ascending, grouped
from gateway.reconcile.report.rows import Row

Key: TypeAlias = tuple[Any, ...]

WITHDRAWN: Final = "withdrawn"  # in place of a class: the copy is no exception any more
_COPY_KEYS: Final = ("gateway", "route", "target", "id")
_COMPARED: Final = ("class", "marked")  # a change in these columns is a new row


def exceptions_before(folder: Path, batch: int) -> dict[Key, Row]:
    """Return the exceptions of a date after the batches before `batch`, by copy."""
    newest = _newest(folder, batch, EXCEPTIONS, _COPY_KEYS)
    return {key: row for key, row in newest.items() if row["class"] != WITHDRAWN}


def minutes_before(folder: Path, batch: int) -> dict[Key, Row]:
    """Return the counts of a date after the batches before `batch`, by target and minute."""
    return _newest(folder, batch, MINUTES, MINUTE_KEYS)


def changed_exceptions(now: pa.Table, before: Mapping[Key, Row]) -> pa.Table:
    """Return the exceptions that are new or have another class, and the withdrawn ones."""
    rows = _by_key(now, _COPY_KEYS)
    changed = [row for key, row in rows.items() if _differs(row, before.get(key), _COMPARED)]
    gone = [{**row, "class": WITHDRAWN} for key, row in before.items() if key not in rows]
    return pa.Table.from_pylist([*changed, *gone], schema=EXCEPTIONS)


def changed_minutes(now: pa.Table, before: Mapping[Key, Row]) -> pa.Table:
    """Return the minutes with new or changed counts; zeros for a minute without copies now."""
    rows = _by_key(now, MINUTE_KEYS)
    changed = [row for key, row in rows.items() if _differs(row, before.get(key), TALLIES)]
    zeros = dict.fromkeys(TALLIES, 0)
    gone = [
        {**row, **zeros}
        for key, row in before.items()
        if key not in rows and any(row[name] for name in TALLIES)
    ]
    return pa.Table.from_pylist([*changed, *gone], schema=MINUTES)


def printed(changed: pa.Table) -> list[Row]:
    """Count the changed exceptions by route, target and class, with the first minute of receipt."""
    keys = ["route", "target", "class"]
    since = pc.floor_temporal(changed["received_time"], unit="minute")
    ones = pa.array([1] * changed.num_rows, pa.int64())
    rows = changed.select(keys).append_column("since", since).append_column("copies", ones)
    found = grouped(rows, keys, {"since": "min", "copies": "sum"})
    return list(found.sort_by(ascending("since", *keys)).to_pylist())


def _newest(folder: Path, batch: int, schema: pa.Schema, keys: Sequence[str]) -> dict[Key, Row]:
    """Return the newest row of each key; later batches were not committed."""
    newest: dict[Key, Row] = {}
    for number, part in sorted(batches(folder)):
        if number < batch:
            for path in sorted(part.glob("*.parquet")):
                with open_parquet(pa.OSFile(os.fsencode(path))) as file:
                    rows = file.read().rename_columns(schema.names).cast(schema)
                    newest |= _by_key(rows, keys)
    return newest


def batches(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield number and folder of each batch of a table."""
    for part in folder.glob("batch=*"):
        yield int(part.name.removeprefix("batch=")), part


def _by_key(rows: pa.Table, keys: Sequence[str]) -> dict[Key, Row]:
    return {tuple(row[name] for name in keys): row for row in rows.to_pylist()}


def _differs(row: Row, before: Row | None, names: Sequence[str]) -> bool:
    return before is None or any(row[name] != before[name] for name in names)
