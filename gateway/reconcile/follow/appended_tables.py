"""The rows that a micro-batch appends to the tables of a date: functions of Arrow tables.

Both tables have a folder for each batch. The newest row of a copy, and of a target's minute, is
the valid one; unchanged rows are not repeated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.segments.reading import open_parquet
from gateway.model.copy_class import TALLIES
from gateway.reconcile.classify.result_tables import EXCEPTIONS, MINUTE_KEYS, MINUTES
from gateway.reconcile.grouping import TARGET_KEYS, ascending, grouped
from gateway.reconcile.report.rows import Row

Key: TypeAlias = tuple[Any, ...]

WITHDRAWN: Final = "withdrawn"  # in place of a class: the copy is no exception any more


@dataclass(frozen=True, slots=True)
class AppendedTable:
    """A table that batches append to: a new row where one of the columns `compared` changed.

    A row whose key is no more gets the values of `gone`.
    """

    name: str
    schema: pa.Schema
    keys: Sequence[str]
    compared: Sequence[str]
    gone: Mapping[str, object]

    def before(self, folder: Path, batch: int) -> dict[Key, Row]:
        """Return the rows of a date after the batches before `batch`, by key."""
        newest: dict[Key, Row] = {}
        for number, part in sorted(batches(folder)):
            for path in sorted(part.glob("*.parquet")) if number < batch else ():
                with open_parquet(pa.OSFile(os.fsencode(path))) as file:
                    rows = file.read().rename_columns(self.schema.names).cast(self.schema)
                    newest |= self._by_key(rows)
        return {key: row for key, row in newest.items() if not self.gone.items() <= row.items()}

    def changed(self, now: pa.Table, before: Mapping[Key, Row]) -> pa.Table:
        """Return the rows that are new or changed, and those that are gone."""
        rows = self._by_key(now)
        compared = itemgetter(*self.compared)
        known = {key: compared(row) for key, row in before.items()}
        changed = [row for key, row in rows.items() if known.get(key) != compared(row)]
        gone = [{**row, **self.gone} for key, row in before.items() if key not in rows]
        return pa.Table.from_pylist([*changed, *gone], schema=self.schema)

    def _by_key(self, rows: pa.Table) -> dict[Key, Row]:
        return {tuple(row[name] for name in self.keys): row for row in rows.to_pylist()}


EXCEPTION_ROWS: Final = AppendedTable(
    "exceptions", EXCEPTIONS, (*TARGET_KEYS, "id"), ("class", "marked"), {"class": WITHDRAWN}
)
MINUTE_ROWS: Final = AppendedTable(
    "minutes", MINUTES, MINUTE_KEYS, TALLIES, dict.fromkeys(TALLIES, 0)
)


def printed(changed: pa.Table) -> list[Row]:
    """Count the changed exceptions by route, target and class, with the first minute of receipt."""
    keys = ["route", "target", "class"]
    since = pc.floor_temporal(changed["received_time"], unit="minute")
    ones = pa.array([1] * changed.num_rows, pa.int64())
    rows = changed.select(keys).append_column("since", since).append_column("copies", ones)
    found = grouped(rows, keys, {"since": "min", "copies": "sum"})
    return list(found.sort_by(ascending("since", *keys)).to_pylist())


def batches(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield number and folder of each batch of a table."""
    for part in folder.glob("batch=*"):
        yield int(part.name.removeprefix("batch=")), part
