"""The folder of the results of a date: its tables, its summary and its report.

They are written to a hidden folder, which replaces the earlier results at the end: a failed run
leaves those whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from gateway.archive.durable import make_folders
from gateway.archive.layout import day_folder, reconciled_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import LocalStorage, Storage
from gateway.errors import ReconcileError
from gateway.night.archive.archive_lock import exclusive_in
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.parquet import encoded
from gateway.night.archive.remote_lock import CheckHeld
from gateway.night.archive.segments.reading import open_parquet
from gateway.night.reconcile.classify import result_tables
from gateway.night.reconcile.grouping import ascending
from gateway.night.reconcile.input.executors import write_parts
from gateway.night.reconcile.report.charts import HOURS
from gateway.night.reconcile.report.html import page
from gateway.night.reconcile.report.report import REPORT_PAGE, Report
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.summary import SUMMARY, from_json, to_json

_NEW: Final = ".new-"  # before the name of the hidden folder
_FEW: Final = 20_000  # rows that this process writes, and no Python of executors
_UNQUOTED: Final = re.compile("[ -]")  # in names of classes


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """The results of one date, in `folder` of `location`, which is absolute for executors."""

    location: ArchiveLocation
    storage: Storage
    folder: Path

    @property
    def page(self) -> str:
        """The path or the URL of the report."""
        root = self.location.url.partition("?")[0] or str(self.location.local)
        return f"{root.rstrip('/')}/{self.folder.as_posix()}/{REPORT_PAGE}"

    @property
    def new(self) -> Path:
        """The hidden folder in which the results are written."""
        return self.folder.with_name(f"{_NEW}{self.folder.name}")

    def locked(self) -> AbstractContextManager[CheckHeld]:
        """Let one process at a time write these results; see `exclusive_in`.

        Raises:
            ReconcileError: another process writes them; the text names it.
            OSError: the folder cannot be written.
        """
        if not self.location.url:
            make_folders(self.location.local / self.folder.parent)
        path = self.folder.with_name(f".{self.folder.name}.lock")
        conflict = "another gateway reconcile writes these results; wait for its end"
        return exclusive_in(self.location, self.storage, path, conflict)

    def clear(self) -> None:
        """Remove the results of an interrupted run."""
        self.storage.remove(self.new)

    def write(self, name: str, table: pa.Table) -> None:
        """Write a table of results; no column needs quotes in a query."""
        path = self.new / name / "part-00000.parquet"
        self.storage.put(path, encoded(unquoted(table)))

    def write_frame(self, name: str, frame: DataFrame, number: int, schema: pa.Schema) -> None:
        """Write a table of `number` rows; executors write a long one."""
        if number <= _FEW:
            self.write(name, frame.toArrow().cast(schema) if number else schema.empty_table())
        else:
            write_parts(frame, self.location, self.new / name, schema)

    def written(self, name: str, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a written table file by file; an empty table when there are none."""
        yield schema.empty_table()
        for path, _ in self.storage.files(self.new / name):
            with open_parquet(self.storage.open(path)) as file:
                yield file.read().cast(schema)

    def publish(self, report: Report) -> None:
        """Write the summary and its page, and replace the earlier results."""
        self.storage.put(self.new / SUMMARY, to_json(report).encode())
        self.storage.put(self.new / REPORT_PAGE, page(report).encode())
        self.storage.replace(self.folder, self.new)

    def earlier(self) -> Report | None:
        """Return the report of the earlier results; None without a readable one."""
        with suppress(ReconcileError):
            return from_json(self.storage.read(self.folder / SUMMARY) or b"")
        return None


def results_of(archive: OpenArchive, day: date, output: Path | None) -> ResultFolder:
    """Return the folder of the results of `day`, in the archive or in the local folder `output`."""
    if output is None:
        return ResultFolder(archive.location, archive.storage, reconciled_folder(Path(), day))
    root = output.resolve()
    return ResultFolder(ArchiveLocation(root), LocalStorage(root), day_folder(Path(), day))


def unquoted(table: pa.Table) -> pa.Table:
    """Return `table` with names of columns that need no quotes in a query."""
    return table.rename_columns([_UNQUOTED.sub("_", each) for each in table.column_names])


def first_rows(table: pa.Table) -> list[Row]:
    """Return the rows that the report lists."""
    return list(table.slice(0, result_tables.MAX_ROWS).to_pylist())


def hours_of_worst(hours: pa.Table, routes: Sequence[Row]) -> list[Row]:
    """Return all hours of the first of `routes`, up to the limit of rows."""
    keys = [hours.schema.field(name) for name in ("route", "target")]
    worst = pa.Table.from_pylist(list(routes[: result_tables.MAX_ROWS // HOURS]), pa.schema(keys))
    found = hours.join(worst, worst.column_names, join_type="left semi")
    return list(found.sort_by(ascending("route", "target", "hour")).to_pylist())
