"""Converts closed journals into Parquet segments: `python -m gateway.archive.segments ARCHIVE`.

Segment names follow from the journal's name and content: a repeated conversion writes the same
files, and removes the journal last. A journal that a gateway still writes is skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.durable import sync_folder
from gateway.archive.journal.file import claim_journal, discard_journal, remove_done
from gateway.archive.journal.records import Damage, Rows, is_journal, read_records
from gateway.archive.layout import (
    DAMAGED,
    HOUR,
    NAMES,
    converted_journals,
    digest_path,
    gateway_start,
    hour_folder,
    journals,
    oldest_kept,
    pairs_path,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.retention import remove_days
from gateway.archive.segments.digest import digests_of, pairs_of
from gateway.archive.segments.parquet import sort_rows, to_table
from gateway.archive.storage import LocalStorage, Storage, open_storage
from gateway.clock import today
from gateway.errors import ArchiveError

_SEGMENT_ROWS: Final = 500_000  # in memory at once, as a table
_BATCH_ROWS: Final = 20_000  # in memory at once, as Python objects
_MAX_TIME: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is invalid
_MAX_FINDINGS: Final = 20  # of one journal; the others are counted


@dataclass(slots=True)
class Conversion:
    """The result of converting one journal.

    Mutable: owned by `convert`, which fills it.
    """

    journal: Path
    rows: int = 0
    lost_values: int = 0  # values of a type that their column cannot hold
    size: int = 0  # bytes of the written files
    damages: list[Damage] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        """Whether durable rows may be unreadable; a torn tail is only an unfinished write."""
        return any(not damage.torn for damage in self.damages)

    def report_lines(self) -> list[str]:
        """Return a line for each problem, at most `_MAX_FINDINGS` for damages."""
        lines = [
            f"{self.journal}: "
            + ("torn tail cut" if damage.torn else "damaged record skipped")
            + f" at offset {damage.offset}, {damage.size} bytes"
            for damage in self.damages[:_MAX_FINDINGS]
        ]
        if len(self.damages) > _MAX_FINDINGS:
            more = len(self.damages) - _MAX_FINDINGS
            lines.append(f"{self.journal}: {more} more damaged records")
        if self.lost_values:
            lines.append(f"{self.journal}: {self.lost_values} values fit no column and are null")
        return lines


def convert(root: Path, journal: Path, storage: Storage | None = None) -> Conversion | None:
    """Convert `journal` to segments and remove it; return None when it is in use or gone.

    The segments go to `storage`, or to `root` without one. A journal with a damaged record is
    converted without that record, and kept as `.damaged`.

    Raises:
        ArchiveError: the file is no journal; it is renamed to `.damaged`.
        OSError: the segments cannot be written; the journal stays.
    """
    file = claim_journal(journal)
    if file is None:
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read()
        if not is_journal(data):
            _set_aside(journal)
            raise ArchiveError(f"{journal}: is not a journal; it was renamed to {DAMAGED}")
        conversion = Conversion(journal)
        numbers = count()
        for table in _segment_tables(data, conversion):
            stem = f"{journal.stem}-{next(numbers):04}"
            conversion.size += write_rows(
                storage or LocalStorage(root), table, stem, gateway_start(journal)
            )
            conversion.rows += table.num_rows
            del table  # frees its memory before the next one is built
        if conversion.damaged:
            _set_aside(journal)
        else:
            discard_journal(journal)
        sync_folder(journal.parent)
    return conversion


def _segment_tables(data: bytes, conversion: Conversion) -> Iterator[pa.Table]:
    """Yield the sorted rows of one segment after the other, with one table in memory at a time."""
    tables: list[pa.Table] = []
    collected = 0
    for batches in _grouped(_batches(data, conversion)):
        table, lost = to_table(batches)
        conversion.lost_values += lost
        tables.append(table)
        collected += table.num_rows
        if collected >= _SEGMENT_ROWS:
            yield _merged(tables)
            collected = 0
    if tables:
        yield _merged(tables)


def _merged(tables: list[pa.Table]) -> pa.Table:
    """Return all rows of `tables`, sorted, and clear the list to free its memory."""
    merged = pa.concat_tables(tables)
    tables.clear()
    return sort_rows(merged)


def _grouped(batches: Iterator[Rows]) -> Iterator[list[Rows]]:
    """Yield lists of batches with about `_BATCH_ROWS` rows each."""
    group: list[Rows] = []
    collected = 0
    for rows in batches:
        group.append(rows)
        collected += rows.count
        if collected >= _BATCH_ROWS:
            yield group
            group, collected = [], 0
    if group:
        yield group


def _batches(data: bytes, conversion: Conversion) -> Iterator[Rows]:
    for record in read_records(data):
        if isinstance(record, Damage):
            conversion.damages.append(record)
        else:
            yield from record


def write_rows(storage: Storage, table: pa.Table, stem: str, start: int) -> int:
    """Write a segment for each hour of the sorted `table`; return the bytes of all files.

    A row with an invalid time goes into the hour of `start`, the gateway's start in microseconds.

    Raises:
        OSError: the storage cannot be written.
    """
    times = table["time"].cast(pa.int64())
    valid = pc.and_(pc.greater_equal(times, 0), pc.less(times, _MAX_TIME))
    times = pc.if_else(pc.fill_null(valid, False), times, start)
    hours = pc.divide(times, HOUR)
    size = 0
    distinct = sorted(pc.unique(hours).to_pylist())
    for hour in distinct:
        part = table if len(distinct) == 1 else table.filter(pc.equal(hours, hour))
        path = hour_folder(Path(), hour * HOUR) / f"{stem}.parquet"
        size += write_segment(storage, path, part)
    return size


def write_segment(storage: Storage, path: Path, rows: pa.Table) -> int:
    """Write a segment of sorted `rows` with its pairs and its digest; return their bytes.

    The digest is written last: a digest without its segment means a removed segment.

    Raises:
        OSError: the storage cannot be written.
    """
    size = storage.write(path, rows)
    if (pairs := pairs_of(rows)) is not None:
        size += storage.write(pairs_path(Path(), path), pairs)
    return size + storage.write(digest_path(Path(), path), digests_of(rows))


def _set_aside(journal: Path) -> None:
    journal.rename(journal.with_suffix(DAMAGED))


def main(arguments: Sequence[str]) -> int:
    """Convert journals, then remove old days; return 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m gateway.archive.segments")
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help="folder of the journals")
    parser.add_argument("journals", metavar="JOURNAL", type=Path, nargs="*", help="default: all")
    parser.add_argument(
        "--to", metavar="URL", default="", help="write the segments there (default: ARCHIVE)"
    )
    parser.add_argument("--keep-days", metavar="N", type=int, help="remove older days")
    parser.add_argument("--nice", metavar="N", type=int, default=0, help="lower the priority by N")
    try:
        args = parser.parse_intermixed_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    with suppress(OSError):
        os.nice(args.nice)
    location = ArchiveLocation(args.archive, args.to)
    status = 0
    waiting = args.journals or journals(location.local)
    for failed, line in _convert_all(location, waiting, args.keep_days):
        status |= failed
        print(line, file=sys.stderr)  # noqa: T201  # the parent process logs it
    return status


def _convert_all(
    location: ArchiveLocation, waiting: Sequence[Path], keep_days: int | None
) -> Iterator[tuple[bool, str]]:
    """Do all the work; yield whether a step failed, and a line that reports it."""
    try:
        storage = open_storage(location)
        for path in converted_journals(location.local):
            try:
                remove_done(path)
            except OSError as error:  # the waiting journals are converted nevertheless
                yield True, str(error)
        for path in waiting:
            yield from _convert(location, path, storage)
        for path in sorted((location.local / NAMES).glob("*.jsonl")):
            storage.upload(Path(NAMES) / path.name, path)
        if keep_days is not None:
            for day in remove_days(storage, oldest_kept(keep_days, today())).days:
                yield False, f"{day} is removed, as the archive keeps {keep_days} days"
    except (ArchiveError, OSError) as error:
        yield True, str(error)


def _convert(location: ArchiveLocation, path: Path, storage: Storage) -> Iterator[tuple[bool, str]]:
    try:
        conversion = convert(location.local, path, storage)
    except ArchiveError as error:
        yield True, str(error)
    except OSError as error:
        if location.url:  # the storage is not reachable: the other journals would fail, too
            raise
        yield True, str(error)
    else:
        for line in conversion.report_lines() if conversion else ():
            yield False, line
