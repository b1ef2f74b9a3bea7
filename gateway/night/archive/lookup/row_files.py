"""The rows of one day as dictionaries, read file by file with one batch in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import days_in
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.current import current_files
from gateway.night.archive.segments.reading import open_parquet

Row: TypeAlias = dict[str, Any]  # the columns of schema.COLUMNS, with values as pyarrow reads them

# The first and the last year of Python's calendar, in microseconds since 1970-01-01 UTC.
_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_799_999_999
ALL_HOURS: Final = range(24)


def row_days(storage: Storage) -> list[date]:
    """Return the dates that have rows.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    try:
        return days_in(storage.names(Path()))
    except OSError as error:
        raise ArchiveError(f"archive: cannot be read: {error}") from error


def row_files(storage: Storage, day: date, hours: range = ALL_HOURS) -> list[Path]:
    """Return the files with the rows of `day` in `hours`.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    try:
        files = current_files(storage, day)
    except OSError as error:
        raise ArchiveError(f"archive: cannot be read: {error}") from error
    return [each.at for each in files if int(each.path.parent.name.removeprefix("hour=")) in hours]


def find_batches(
    storage: Storage, path: Path, wanted: pc.Expression, rows: int, columns: list[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of a file that `wanted` selects by its `columns`, at most `rows` at a time.

    Raises:
        ArchiveError: the file is damaged, or no segment.
    """
    try:
        with open_parquet(storage.open(path)) as file:
            yield from file.batches(rows, columns, wanted)
    except (pa.ArrowException, OSError) as error:
        raise ArchiveError(f"{path}: is damaged, or no segment: {error}") from error


def find_rows(
    storage: Storage,
    paths: Iterable[Path],
    wanted: pc.Expression,
    rows: int,
    columns: list[str] | None = None,
) -> Iterator[Row]:
    """Yield the rows of many files as `find_batches` does, each as a dictionary."""
    for path in paths:
        for batch in find_batches(storage, path, wanted, rows, columns):
            yield from _python_rows(batch)


def _python_rows(batch: pa.Table) -> list[Row]:
    """Return the rows of a batch; a time that Python has no value for is None.

    The time of sending is that of a publisher, which may be wrong by thousands of years.
    """
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            numbers = batch[field.name].cast(pa.int64())
            fits = pc.and_(pc.less_equal(numbers, _LAST), pc.greater_equal(numbers, _FIRST))
            batch = batch.set_column(place, field.name, pc.if_else(fits, batch[field.name], None))
    rows: list[Row] = batch.to_pylist()
    return rows
