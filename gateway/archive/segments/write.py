"""Writes sorted rows as segments, each with its id sets and its name pairs in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.layout import (
    DAY,
    HOUR,
    MAX_TIME,
    SCHEMA_VERSION,
    day_of,
    hour_folder,
)
from gateway.archive.parquet import (
    PAIRS_KEY,
    ROW_GROUP_ROWS,
    SETS_KEY,
    append_tables,
    row_group_writer,
)
from gateway.archive.schema import Leg
from gateway.archive.seals.seal import SegmentEntry
from gateway.archive.segments.pairs import pairs_of
from gateway.archive.segments.sets import blocks_of
from gateway.archive.storage import Storage

VERSION_KEY: Final = b"gateway.schema"  # in the metadata of a Parquet file
JOURNAL_KEY: Final = b"gateway.journal"  # stem of the journal, or name of the merge

_LONGEST_GAP: Final = 400  # days; an earlier begin is no time of a gateway


def write_rows(
    storage: Storage, rows: pa.Table, journal: str, number: int, start: int
) -> Iterator[SegmentEntry]:
    """Write a segment for each hour of the sorted `rows`, and yield its entry.

    The stem of a segment is the `journal` with `number`. A row with an invalid time goes into the
    hour of `start`, in microseconds.

    Raises:
        OSError: the storage cannot be written.
    """
    times = rows["time"].cast(pa.int64())
    valid = pc.fill_null(pc.and_(pc.greater_equal(times, 0), pc.less(times, MAX_TIME)), False)
    hours = pc.divide(pc.if_else(valid, times, start), HOUR)
    distinct = sorted(pc.unique(hours).to_pylist())
    for hour in distinct:
        part = rows if len(distinct) == 1 else rows.filter(pc.equal(hours, hour))
        path = hour_folder(Path(), hour * HOUR) / f"{journal}-{number:04}.parquet"
        yield write_segment(storage, path, part, journal)


def write_segment(storage: Storage, path: Path, rows: pa.Table, journal: str) -> SegmentEntry:
    """Write a segment of sorted `rows` with its sets and pairs; return its entry for a seal.

    Raises:
        OSError: the storage cannot be written.
    """
    content = pa.BufferOutputStream()
    metadata = {VERSION_KEY: str(SCHEMA_VERSION), JOURNAL_KEY: journal}
    with row_group_writer(rows.schema.with_metadata(metadata), content) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        pairs = pairs_of(rows)
        beside = {SETS_KEY: blocks_of(rows)} | ({} if pairs is None else {PAIRS_KEY: pairs})
        append_tables(writer, content, beside)
    file = storage.put(path, content.getvalue())
    times = pc.min_max(rows["time"].cast(pa.int64()))
    return SegmentEntry(
        path=path.as_posix(),
        rows=rows.num_rows,
        size=file.size,
        sha256=file.sha256,
        first=times["min"].as_py() or 0,
        last=times["max"].as_py() or 0,
        misplaced=_count_misplaced(rows, path),
        concerns=dates_of(rows),
    )


def dates_of(rows: pa.Table) -> tuple[str, ...]:
    """Return the dates that `rows` concern: of their receipts, and all that their gaps cover."""
    times = rows["time"].cast(pa.int64())
    receipts = pc.coalesce(rows["received"].cast(pa.int64()), times)
    receipts = receipts.filter(pc.greater_equal(receipts, 0))  # the division is towards zero
    days = set(pc.unique(pc.divide(receipts, DAY)).to_pylist())
    gaps = rows.filter(pc.equal(rows["leg"], Leg.GAP.value))
    if gaps.num_rows:
        ends = gaps["time"].cast(pa.int64())
        begins = pc.coalesce(gaps["source_time"].cast(pa.int64()), ends)
        for begin, end in zip(begins.to_pylist(), ends.to_pylist(), strict=True):
            if end is not None:
                last = end // DAY
                days.update(range(max(begin // DAY, last - _LONGEST_GAP), last + 1))
    valid = (day * DAY for day in days if day is not None and 0 <= day < MAX_TIME // DAY)
    return tuple(sorted(day_of(time).isoformat() for time in valid))


def _count_misplaced(rows: pa.Table, path: Path) -> int:
    """Return the number of rows whose time is not in the hour of the folder of `path`."""
    hours = pc.divide(pc.fill_null(rows["time"].cast(pa.int64()), -1), HOUR)
    return sum(
        each["counts"]
        for each in pc.value_counts(hours).to_pylist()
        if not 0 <= each["values"] * HOUR < MAX_TIME
        or hour_folder(path.parents[2], each["values"] * HOUR) != path.parent
    )
