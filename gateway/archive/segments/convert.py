"""Turns closed journals into Parquet segments: `python -m gateway.archive.segments ARCHIVE`.

Names follow from the journal's name and its content, so converting again after a crash writes
the same files, and the journal goes last. It refuses a journal that somebody still writes.
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

from gateway.archive.journal.file import discard, remove, sync_folder, take
from gateway.archive.journal.records import Damage, Rows, is_journal, read_records
from gateway.archive.layout import (
    DAMAGED,
    HOUR,
    NAMES,
    converted_journals,
    digest_path,
    hour_folder,
    journals,
    pairs_path,
    started,
)
from gateway.archive.location import Place
from gateway.archive.retention import forget
from gateway.archive.segments.digest import digests_of, pairs_of
from gateway.archive.segments.parquet import sort_rows, to_table
from gateway.archive.storage import Here, Store, open_store
from gateway.clock import today
from gateway.errors import ArchiveError

_CHUNK: Final = 500_000  # rows in memory at once
_GULP: Final = 20_000  # rows as Python objects at once
_LATEST: Final = 4_102_444_800_000_000  # 2100-01-01; a later time is a mistake
_SHOWN: Final = 20  # findings of one journal that are reported one by one


@dataclass(slots=True)
class Conversion:
    """What became of one journal; filled while it is converted."""

    journal: Path
    rows: int = 0
    lost: int = 0  # values that fit no column
    size: int = 0  # bytes of the files
    damages: list[Damage] = field(default_factory=list)

    @property
    def damaged(self) -> bool:
        """Whether something durable may be unreadable; a torn tail is only an unfinished write."""
        return any(not damage.torn for damage in self.damages)

    def findings(self) -> list[str]:
        lines = [
            f"{self.journal}: "
            + ("torn tail cut" if damage.torn else "damaged record skipped")
            + f" at offset {damage.offset}, {damage.size} bytes"
            for damage in self.damages[:_SHOWN]
        ]
        if len(self.damages) > _SHOWN:
            lines.append(f"{self.journal}: {len(self.damages) - _SHOWN} more damaged records")
        if self.lost:
            lines.append(f"{self.journal}: {self.lost} values fit no column and are null")
        return lines


def convert(root: Path, journal: Path, store: Store | None = None) -> Conversion | None:
    """Segments of `journal`, which is then gone; None when it is in use, or gone already.

    They go to `store`, or to `root` itself. A journal with a damage in its middle is converted as
    far as it goes and kept as `.damaged`.

    Raises:
        ArchiveError: it is no journal; it is set aside as `.damaged`.
        OSError: the segments cannot be written; the journal stays.
    """
    file = take(journal)
    if file is None:
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read()
        if not is_journal(data):
            _set_aside(journal)
            raise ArchiveError(f"{journal}: is not a journal; it was set aside as {DAMAGED}")
        conversion = Conversion(journal)
        numbers = count()
        for table in _chunks(data, conversion):
            stem = f"{journal.stem}-{next(numbers):04}"
            conversion.size += write_rows(store or Here(root), table, stem, started(journal))
            conversion.rows += table.num_rows
            del table  # before the next is made
        if conversion.damaged:
            _set_aside(journal)
        else:
            discard(journal)
        sync_folder(journal.parent)
    return conversion


def _chunks(data: bytes, conversion: Conversion) -> Iterator[pa.Table]:
    """The rows of one file after the other, sorted, and no two in memory at once.

    Rows become a table in gulps, as objects are large.
    """
    tables: list[pa.Table] = []
    waiting = 0
    for gulp in _gulps(_batches(data, conversion)):
        table, lost = to_table(gulp)
        conversion.lost += lost
        tables.append(table)
        waiting += table.num_rows
        if waiting >= _CHUNK:
            yield _whole(tables)
            waiting = 0
    if tables:
        yield _whole(tables)


def _whole(tables: list[pa.Table]) -> pa.Table:
    """All rows of `tables`, sorted; they are let go."""
    whole = pa.concat_tables(tables)
    tables.clear()
    return sort_rows(whole)


def _gulps(batches: Iterator[Rows]) -> Iterator[list[Rows]]:
    gulp: list[Rows] = []
    held = 0
    for rows in batches:
        gulp.append(rows)
        held += rows.count
        if held >= _GULP:
            yield gulp
            gulp, held = [], 0
    if gulp:
        yield gulp


def _batches(data: bytes, conversion: Conversion) -> Iterator[Rows]:
    for record in read_records(data):
        if isinstance(record, Damage):
            conversion.damages.append(record)
        else:
            yield from record


def write_rows(store: Store, table: pa.Table, stem: str, start: int) -> int:
    """One segment for each hour of `table`; how many bytes they take with their digests.

    Its rows are sorted. A row whose time cannot be lies in the hour of `start`, microseconds.

    Raises:
        OSError: the store cannot be written.
    """
    times = table["time"].cast(pa.int64())
    good = pc.and_(pc.greater_equal(times, 0), pc.less(times, _LATEST))
    times = pc.if_else(pc.fill_null(good, False), times, start)
    hours = pc.divide(times, HOUR)
    size = 0
    different = sorted(pc.unique(hours).to_pylist())
    for hour in different:
        part = table if len(different) == 1 else table.filter(pc.equal(hours, hour))
        size += keep(store, hour_folder(Path(), hour * HOUR) / f"{stem}.parquet", part)
    return size


def keep(store: Store, path: Path, rows: pa.Table) -> int:
    """Write a segment of sorted `rows` and what belongs to it; how many bytes that takes.

    The digest goes last, so that one that is there has its segment and its pairs beside it.

    Raises:
        OSError: the store cannot be written.
    """
    size = store.write(path, rows)
    if (pairs := pairs_of(rows)) is not None:
        size += store.write(pairs_path(Path(), path), pairs)
    return size + store.write(digest_path(Path(), path), digests_of(rows))


def _set_aside(journal: Path) -> None:
    journal.rename(journal.with_suffix(DAMAGED))


def main(arguments: Sequence[str]) -> int:
    """Convert journals, then remove old days; 1 when one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m gateway.archive.segments")
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help="the folder of the journals")
    parser.add_argument("journals", metavar="JOURNAL", type=Path, nargs="*", help="all if absent")
    parser.add_argument(
        "--to", metavar="URL", default="", help="where the segments go, if not there"
    )
    parser.add_argument("--keep-days", metavar="N", type=int, help="remove what is older")
    parser.add_argument("--nice", metavar="N", type=int, default=0, help="give way to others")
    try:
        args = parser.parse_intermixed_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    with suppress(OSError):
        os.nice(args.nice)
    place = Place(args.archive, args.to)
    status = 0
    for failed, line in _work(place, args.journals or journals(place.local), args.keep_days):
        status |= failed
        print(line, file=sys.stderr)  # noqa: T201  # the process that started us logs it
    return status


def _work(
    place: Place, waiting: Sequence[Path], keep_days: int | None
) -> Iterator[tuple[bool, str]]:
    """Everything there is to do, telling for each thing a person should know whether it failed."""
    try:
        store = open_store(place)
        for path in converted_journals(place.local):
            try:
                remove(path)
            except OSError as error:  # the journals that wait are not to blame
                yield True, str(error)
        for path in waiting:
            yield from _convert(place, path, store)
        for path in sorted((place.local / NAMES).glob("*.jsonl")):
            store.copy(Path(NAMES) / path.name, path)
        if keep_days is not None:
            for day in forget(store, keep_days, today()):
                yield False, f"{day} is removed, as the archive keeps {keep_days} days"
    except (ArchiveError, OSError) as error:
        yield True, str(error)


def _convert(place: Place, path: Path, store: Store) -> Iterator[tuple[bool, str]]:
    try:
        conversion = convert(place.local, path, store)
    except ArchiveError as error:
        yield True, str(error)
    except OSError as error:
        if place.url:  # it is away: the other journals would wait for the same
            raise
        yield True, str(error)
    else:
        for line in conversion.findings() if conversion else ():
            yield False, line
