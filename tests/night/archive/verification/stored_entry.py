"""The entry of a segment for a seal, from its stored files and the statistics in its footer."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from gateway.archive.storage import Storage
from gateway.night.archive.seals.seal import SegmentEntry
from gateway.night.archive.seals.store import digest_of
from gateway.night.archive.segments.write import dates_of


def make_entry(storage: Storage, path: Path) -> SegmentEntry:
    """Return the entry of the segment `path`, whose rows are all of the hour of its folder."""
    file = digest_of(storage, path)
    assert file is not None
    with storage.open(path) as opened:
        parquet = pq.ParquetFile(opened)
        footer, concerns = parquet.metadata, dates_of(parquet.read())
    first, last = _time_range(footer)
    return SegmentEntry(
        path=path.as_posix(),
        rows=footer.num_rows,
        size=file.size,
        sha256=file.sha256,
        first=first,
        last=last,
        misplaced=0,
        concerns=concerns,
    )


def _time_range(footer: pq.FileMetaData) -> tuple[int, int]:
    """Return the earliest and the latest `time`, in microseconds; zeros without rows."""
    column = footer.schema.names.index("time")
    groups = range(footer.num_row_groups)
    found = [footer.row_group(group).column(column).statistics for group in groups]
    known = [each for each in found if each is not None and each.has_min_max]
    return (
        min((each.min_raw for each in known), default=0),
        max((each.max_raw for each in known), default=0),
    )
