"""The rows of one day as dictionaries, read file by file with one batch in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.compaction.current import current_files
from gateway.archive.segments.reading import open_parquet
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError

Row: TypeAlias = dict[str, Any]  # the columns of schema.COLUMNS, with values as pyarrow reads them

ALL_HOURS: Final = range(24)


def row_files(storage: Storage, day: date, hours: range = ALL_HOURS) -> list[Path]:
    """Return the files with the rows of `day` in `hours`.

    Raises:
        ArchiveError: the archive cannot be reached.
    """
    try:
        files = current_files(storage, day)
    except OSError as error:
        raise ArchiveError(f"archive: cannot be read: {error}") from error
    return [each.at for each in files if _hour(each.path) in hours]


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
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> ArchiveError:
    return ArchiveError(f"{path}: is damaged, or no segment: {error}")


def _hour(segment: Path) -> int:
    return int(segment.parent.name.removeprefix("hour="))
