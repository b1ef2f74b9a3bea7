"""Turns closed journals into Parquet segments: `python -m gateway.archive.segments ARCHIVE`.

Names follow from the journal's name and its content, so converting again after a crash writes
the same files, and the journal goes last. It refuses a journal that somebody still writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.journal import sync_folder, take
from gateway.archive.layout import DAMAGED, HOUR, hour_folder, journals, started
from gateway.archive.parquet import sort_rows, to_table, write_segment
from gateway.archive.records import MAGIC, Damage, Rows, read_records
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
    files: list[Path] = field(default_factory=list)
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


def convert(root: Path, journal: Path) -> Conversion | None:
    """Segments of `journal`, which is then gone; None when it is in use, or gone already.

    A journal with a damage in its middle is converted as far as it goes and kept as `.damaged`.

    Raises:
        ArchiveError: it is no journal; it is set aside as `.damaged`.
        OSError: the segments cannot be written; the journal stays.
    """
    file = take(journal)
    if file is None:
        return None
    with os.fdopen(file, "rb") as opened:
        data = opened.read()
        if not MAGIC.startswith(data[: len(MAGIC)]):
            _set_aside(journal)
            raise ArchiveError(f"{journal}: is not a journal; it was set aside as {DAMAGED}")
        conversion = Conversion(journal)
        for number, table in enumerate(_chunks(data, conversion)):
            _write(root, table, number, conversion)
        if conversion.damaged:
            _set_aside(journal)
        else:
            journal.unlink()
        sync_folder(journal.parent)
    return conversion


def _chunks(data: bytes, conversion: Conversion) -> Iterator[pa.Table]:
    """The rows of one file after the other; rows become a table in gulps, as objects are large."""
    tables: list[pa.Table] = []
    waiting = 0
    for gulp in _gulps(_batches(data, conversion)):
        table, lost = to_table(gulp)
        conversion.lost += lost
        tables.append(table)
        waiting += table.num_rows
        if waiting >= _CHUNK:
            yield pa.concat_tables(tables)
            tables, waiting = [], 0
    if tables:
        yield pa.concat_tables(tables)


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


def _write(root: Path, table: pa.Table, number: int, conversion: Conversion) -> None:
    """One file for each hour of `table`."""
    times = table["time"].cast(pa.int64())
    good = pc.and_(pc.greater_equal(times, 0), pc.less(times, _LATEST))
    times = pc.if_else(pc.fill_null(good, False), times, started(conversion.journal))
    hours = pc.divide(times, HOUR)
    for hour in sorted(pc.unique(hours).to_pylist()):
        part = sort_rows(table.filter(pc.equal(hours, hour)))
        name = f"{conversion.journal.stem}-{number:04}.parquet"
        path = hour_folder(root, hour * HOUR) / name
        write_segment(part, path)
        conversion.files.append(path)
        conversion.rows += part.num_rows


def _set_aside(journal: Path) -> None:
    journal.rename(journal.with_suffix(DAMAGED))


def main(arguments: Sequence[str]) -> int:
    """Convert the journals named after ARCHIVE, or all; 1 when one of them needs a look."""
    if not arguments:
        print("usage: python -m gateway.archive.segments ARCHIVE [JOURNAL...]", file=sys.stderr)  # noqa: T201
        return 2
    root = Path(arguments[0])
    status = 0
    for journal in map(Path, arguments[1:]) if arguments[1:] else journals(root):
        try:
            conversion = convert(root, journal)
        except (ArchiveError, OSError) as error:
            findings = [str(error)]
            status = 1
        else:
            findings = conversion.findings() if conversion else []
        for line in findings:
            print(line, file=sys.stderr)  # noqa: T201  # the process that started us logs it
    return status


if __name__ == "__main__":
    with suppress(OSError):
        os.nice(10)  # the messages go first
    sys.exit(main(sys.argv[1:]))
