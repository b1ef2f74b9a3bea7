"""The reconciliation of one date in a micro-batch, up to the watermark.

It uses the transforms of the nightly job, and appends only rows that changed since the previous
batch to the tables of the date, each of which has a folder for each batch. The newest row of a
copy, and of a target's minute, is the valid one. A repeated batch replaces its earlier output.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from operator import itemgetter
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from gateway.archive.findings import Finding
from gateway.archive.layout import DAY, SECOND, SPOOLED_DAYS
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage
from gateway.errors import ReconcileError
from gateway.model.copy_class import EXCEPTION_CLASSES, TALLIES, CopyClass
from gateway.night.archive.parquet import encoded
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.classify.evidence import joined
from gateway.night.reconcile.classify.result_tables import (
    EXCEPTIONS,
    MINUTE_KEYS,
    MINUTES,
    counting,
)
from gateway.night.reconcile.classify.survey import survey
from gateway.night.reconcile.follow.state import FollowedDay
from gateway.night.reconcile.grouping import TARGET_KEYS, ascending, grouped, summed, total
from gateway.night.reconcile.input.inputs import Inputs, Scope, unreadable_segments
from gateway.night.reconcile.report.result_folder import unquoted
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.root_cause import SPARK_FAULTS, root_cause
from gateway.terminal.progress import ShowStep

Key: TypeAlias = tuple[Any, ...]

_MAX_LINES: Final = 20  # printed for a batch
_MAX_BATCH_FOLDERS: Final = 60  # of the minutes of a date; then one batch replaces them all
_WITHDRAWN: Final = {"class": "withdrawn"}  # the copy is no longer an exception


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
    "exceptions", EXCEPTIONS, (*TARGET_KEYS, "id"), ("class", "marked"), _WITHDRAWN
)
MINUTE_ROWS: Final = AppendedTable(
    "minutes", MINUTES, MINUTE_KEYS, TALLIES, dict.fromkeys(TALLIES, 0)
)


def printed(changed: pa.Table) -> list[Row]:
    """Count the changed exceptions by route, target and class, with the first minute of receipt."""
    keys = ["route", "target", "class"]
    since = pc.floor_temporal(changed["received_time"], unit="minute")
    rows = counting(changed.select(keys).append_column("since", since))
    found = grouped(rows, keys, {"since": "min", "copies": "sum"})
    return list(found.sort_by(ascending("since", *keys)).to_pylist())


def batches(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield number and folder of each batch of a table."""
    for part in folder.glob("batch=*"):
        yield int(part.name.removeprefix("batch=")), part


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """The archive to follow, and the options; the watermark lags by `late` seconds."""

    root: Path
    output: Path
    master: str = "local[*]"
    late: int = 300
    spooled_days: int = SPOOLED_DAYS
    strict: bool = False
    every: float = 15.0  # seconds between two batches
    once: bool = False  # stop after the existing files


@dataclass(slots=True)
class DayReconciler:
    """Reconciles the dates of one batch, and collects damaged files in `damaged`.

    Mutable: owned by the thread of the batch.
    """

    spark: SparkSession
    options: FollowOptions
    number: int
    print_line: ShowStep  # for new exceptions
    last: Mapping[str, int]  # gateway -> its newest row, microseconds
    now: int  # microseconds
    damaged: list[Finding]
    outdated: list[Path] = field(default_factory=list)  # folders to remove after the commit

    def reconcile(self, day: date, inputs: Inputs, *, sealed: bool) -> FollowedDay:
        """Reconcile a date; in a sealed date no copy is in flight.

        Repeats without the file when a file is damaged, or removed by a compaction.

        Raises:
            ReconcileError: Spark failed, and no file is the cause.
        """
        known = {each.place: each for each in self.damaged}
        found = [known[place] for each in inputs.all if (place := str(each.path)) in known]
        usable = inputs.without(known)
        if not usable.day:
            return FollowedDay(day, findings=found, answered=False)
        try:
            routes = self._reconcile(day, usable, sealed=sealed)
        except SPARK_FAULTS as fault:
            storage = LocalStorage(self.options.root.resolve())
            absent, damaged = unreadable_segments(storage, usable)
            if not absent and not damaged:
                reason = root_cause(fault)
                raise ReconcileError(f"spark: the batch failed: {reason}") from fault
            self.damaged += damaged
            return self.reconcile(day, inputs.without(absent), sealed=sealed)
        finally:
            self.spark.catalog.clearCache()
        return FollowedDay(day, routes, found)

    def _reconcile(self, day: date, inputs: Inputs, *, sealed: bool) -> Sequence[Row]:
        """Append the changed rows of the date; return its counts by route."""
        options = self.options
        since = self.now - options.spooled_days * DAY
        # By writer the time of receipt from which an outcome may still be absent.
        waiting = {name: at - options.late * SECOND + 1 for name, at in self.last.items()}
        location = ArchiveLocation(options.root.resolve())
        scope = Scope(location, day, options.late, since, {} if sealed else waiting)
        found = survey(self.spark, scope, inputs)
        copies = joined(self.spark, scope, inputs, found)
        minutes = MINUTES.empty_table()
        exceptions = EXCEPTIONS.empty_table()
        if copies is not None:
            passed = replace(copies, classes=copies.classes.where("not recent"))
            minutes = result_tables.minutes_of(result_tables.counted(passed.classes).toArrow())
            if number := total(minutes, *EXCEPTION_CLASSES):
                exceptions = passed.exceptions(number).toArrow().cast(EXCEPTIONS)
        minutes = result_tables.with_proven(minutes, found.proven)
        self._print(printed(self._append(EXCEPTION_ROWS, day, exceptions)))
        self._append(MINUTE_ROWS, day, minutes)
        return list(summed(minutes, ("route", "target"), TALLIES).to_pylist())

    def _append(self, rows: AppendedTable, day: date, now: pa.Table) -> pa.Table:
        """Write the rows that changed, replacing those of an interrupted attempt; return them."""
        folder = self.options.output / rows.name / f"date={day}"
        older = [part for number, part in batches(folder) if number != self.number]
        if rows is MINUTE_ROWS and len(older) >= _MAX_BATCH_FOLDERS:
            self.outdated += older
        else:
            now = rows.changed(now, rows.before(folder, self.number))
        path = folder / f"batch={self.number}"
        rmtree(path, ignore_errors=True)
        if now.num_rows:
            LocalStorage(path).put(Path("part-00000.parquet"), encoded(unquoted(now)))
        return now

    def _print(self, groups: Sequence[Row]) -> None:
        """Print exceptions; copies in flight are in the table only."""
        listed = [row for row in groups if row["class"] != CopyClass.IN_FLIGHT.value]
        for row in listed[:_MAX_LINES]:
            self.print_line(_line(row))
        if len(listed) > _MAX_LINES:
            self.print_line(f"... and more; {self.options.output / 'exceptions'} has all")


def _line(row: Row) -> str:
    since = row["since"]
    at = f"{since:%Y-%m-%d %H:%M}" if isinstance(since, datetime) else "?"
    return f"{at} {row['route'] or '-'} -> {row['target'] or '-'}: {row['copies']} {row['class']}"
