"""Writes sorted rows as segments, each with its id sets and its name pairs in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
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
    staged_path,
)
from gateway.archive.schema import Leg
from gateway.archive.storage import Storage
from gateway.night.archive.parquet import (
    PAIRS_KEY,
    ROW_GROUP_ROWS,
    SETS_KEY,
    append_tables,
    row_group_writer,
)
from gateway.night.archive.seals.seal import SegmentEntry
from gateway.night.archive.segments.pairs import MAX_PAIRS, every_pair_of
from gateway.night.archive.segments.sets import blocks_of

VERSION_KEY: Final = b"gateway.schema"  # in the metadata of a Parquet file
JOURNAL_KEY: Final = b"gateway.journal"  # stem of the journal, or name of the merge

_LONGEST_GAP: Final = 400  # days; an earlier begin is not a time of a gateway


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
        path = hour_folder(hour * HOUR) / f"{journal}-{number:04}.parquet"
        entry = write_segment(storage, path, [part], journal)
        assert entry is not None  # noqa: S101  # it has rows of this hour
        yield entry


def write_segment(
    storage: Storage, path: Path, parts: Iterable[pa.Table], journal: str, *, merged: bool = False
) -> SegmentEntry | None:
    """Write a segment of sorted `parts` with its sets and pairs; return its entry for a seal.

    A `merged` one has a row group for each part and goes to its staging folder. Without rows
    nothing is written, and there is no entry.

    Raises:
        OSError: the storage cannot be written.
    """
    following = iter(parts)
    if (first := next(following, None)) is None:
        return None
    content = pa.BufferOutputStream()
    metadata = {VERSION_KEY: str(SCHEMA_VERSION), JOURNAL_KEY: journal}
    times: list[pa.Array] = []
    sets: list[pa.Table] = []
    pairs: list[pa.Table] = []
    dates: set[str] = set()
    with row_group_writer(first.schema.with_metadata(metadata), content) as writer:
        for number, part in enumerate(chain([first], following)):
            writer.write_table(part, row_group_size=len(part) if merged else ROW_GROUP_ROWS)
            times += part["time"].cast(pa.int64()).chunks
            sets.append(blocks_of(part, number))
            own = every_pair_of(part)
            if merged:  # streams are compared by part
                own = own.append_column("part", pa.array([number] * len(own), pa.int32()))
            pairs.append(own)
            dates.update(dates_of(part))
        beside = {SETS_KEY: pa.concat_tables(sets)}
        if merged or len(pairs[0]) <= MAX_PAIRS:
            beside[PAIRS_KEY] = pa.concat_tables(pairs)
        append_tables(writer, content, beside)
    file = storage.put(staged_path(path) if merged else path, content.getvalue())
    time = pa.chunked_array(times, pa.int64())
    ends = pc.min_max(time)
    return SegmentEntry(
        path=path.as_posix(),
        rows=len(time),
        size=file.size,
        sha256=file.sha256,
        first=ends["min"].as_py() or 0,
        last=ends["max"].as_py() or 0,
        misplaced=_count_misplaced(time, path),
        concerns=tuple(sorted(dates)),
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
        begins = pc.coalesce(gaps["begin"].cast(pa.int64()), ends)
        for begin, end in zip(begins.to_pylist(), ends.to_pylist(), strict=True):
            if end is not None:
                last = end // DAY
                days.update(range(max(begin // DAY, last - _LONGEST_GAP), last + 1))
    valid = (day * DAY for day in days if day is not None and 0 <= day < MAX_TIME // DAY)
    return tuple(sorted(day_of(time).isoformat() for time in valid))


def _count_misplaced(time: pa.ChunkedArray, path: Path) -> int:
    """Return the number of times that are not in the hour of the folder of `path`."""
    hours = pc.divide(pc.fill_null(time, -HOUR), HOUR)
    return sum(
        each["counts"]
        for each in pc.value_counts(hours).to_pylist()
        if not 0 <= each["values"] * HOUR < MAX_TIME
        or hour_folder(each["values"] * HOUR) != path.parent
    )
