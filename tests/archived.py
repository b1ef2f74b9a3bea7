"""Segments and rows of an archive, also of one whose gateway stopped in little time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa

from gateway.archive.layout import day_folder, days, journals, listed
from gateway.archive.storage import LocalStorage, Storage
from gateway.errors import ArchiveError
from gateway.night.archive.lookup.row_files import Row, row_files
from gateway.night.archive.segments import convert
from gateway.night.archive.segments.reading import open_parquet
from tests.waiting import until


def segments(root: Path, day: date, hours: range = range(24)) -> list[Path]:
    """Return the segments of `day`, by hour and name; names with a leading dot or `_` are none."""
    return [
        path
        for hour in hours
        for path in listed(day_folder(root, day) / f"hour={hour:02}")
        if not path.name.startswith((".", "_"))
    ]


def read_rows(archive: Path | Storage, day: date) -> Iterator[Row]:
    """Yield the rows of `day`, file by file; a path is the folder of a local archive.

    Raises:
        ArchiveError: a file is damaged or no segment; the text names it.
    """
    storage = LocalStorage(archive) if isinstance(archive, Path) else archive
    for path in row_files(storage, day):
        try:
            with open_parquet(storage.open(path)) as file:
                for batch in file.batches(1_000):
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(f"{path}: is damaged, or no segment: {error}") from error


def convert_journals(root: Path, to: str = "") -> None:
    """Convert the journals that a killed or slow gateway left; `to` is the URL of its bucket.

    Converters of a gateway outlive it, and hold their journals until they are done.

    Raises:
        AssertionError: a journal cannot be converted.
    """
    if left := journals(root):
        assert convert.main([*map(str, (root, *left)), "--to", to]) == 0
    until(lambda: not journals(root), "a converter leaves journals", 300)


def archived(folder: Path) -> list[Row]:
    """Return the rows of all days in the archive of the gateway in `folder`."""
    root = folder / "archive"
    convert_journals(root)
    return [row for day in days(root) for row in read_rows(root, day)]
