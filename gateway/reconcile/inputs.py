"""Which files of the archive a date is reconciled from, each looked at before Spark sees it.

A file that cannot be read is left out and reported; nothing is skipped without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.layout import damaged_journals, day_folder, journals, segments, started
from gateway.archive.parquet import SCHEMA
from gateway.archive.schema import REQUIRED
from gateway.reconcile.findings import Finding, Weight, error, warning

_WORKERS: Final = 8  # footers read at once
_HOURS: Final = 24
_CONVERT: Final = "a running gateway will, or python -m gateway.archive.segments ARCHIVE"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Readable files: of the date, of the hours before it and of those after it."""

    day: list[Path]
    before: list[Path]
    after: list[Path]
    findings: list[Finding]
    open_journals: bool

    @property
    def size(self) -> int:
        """Bytes of all the files."""
        return sum(path.stat().st_size for path in (*self.day, *self.before, *self.after))


def find_inputs(root: Path, day: date, margin: int, *, whole: bool = False) -> Inputs:
    """The files of `day` and of `margin` hours on either side; `whole` reads every page."""
    fault = partial(_page_fault if whole else _footer_fault, root)
    hours = min(margin, _HOURS)
    groups = [
        segments(root, day),
        segments(root, day - _DAY, range(_HOURS - hours, _HOURS)) if day > date.min else [],
        segments(root, day + _DAY, range(hours)) if day < date.max else [],
    ]
    findings: list[Finding] = []
    readable: list[list[Path]] = []
    with ThreadPoolExecutor(_WORKERS) as pool:
        for paths in groups:
            faults = list(pool.map(fault, paths))
            findings += [found for found in faults if found is not None]
            readable.append(
                [
                    path
                    for path, found in zip(paths, faults, strict=True)
                    if found is None or found.weight is Weight.WARNING
                ]
            )
    findings += _strangers(root, day) + _missing_hours(root, day, groups[0])
    findings += _damaged_journals(root, day)
    waiting = _open_journals(root, day)
    there, before, after = readable
    return Inputs(there, before, after, [*findings, *waiting], open_journals=bool(waiting))


def _footer_fault(root: Path, path: Path) -> Finding | None:
    place = str(path.relative_to(root))
    try:
        if path.stat().st_size == 0:
            return error("empty-file", place, "the file has no content")
        metadata = pq.read_metadata(path)
        found = metadata.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as fault:
        return error("unreadable-file", place, f"not a whole Parquet file: {_first_line(fault)}")
    if metadata.num_rows == 0:
        return warning("empty-file", place, "the file has no rows")
    return _schema_fault(place, found)


def _schema_fault(place: str, found: pa.Schema) -> Finding | None:
    if absent := [name for name in REQUIRED if name not in found.names]:
        return error("foreign-file", place, f"no archive segment: no column {', '.join(absent)}")
    if wrong := [name for name in found.names if not _fits(name, found)]:
        return error("foreign-file", place, f"another type in column {', '.join(wrong)}")
    if absent := [name for name in SCHEMA.names if name not in found.names]:
        return warning("older-schema", place, f"no column {', '.join(absent)}; read as null")
    return None


def _fits(name: str, found: pa.Schema) -> bool:
    if name not in SCHEMA.names:
        return True  # a newer gateway's column
    here, wanted = found.field(name).type, SCHEMA.field(name).type
    return bool(here == wanted or (pa.types.is_nested(here) and here.id == wanted.id))


def _page_fault(root: Path, path: Path) -> Finding | None:
    if (found := _footer_fault(root, path)) is not None and found.weight is Weight.ERROR:
        return found
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError) as fault:
        place = str(path.relative_to(root))
        return error("unreadable-file", place, f"a page is damaged: {_first_line(fault)}")
    return found


def _first_line(fault: BaseException) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]


def _missing_hours(root: Path, day: date, paths: Sequence[Path]) -> list[Finding]:
    there = sorted({int(path.parent.name.removeprefix("hour=")) for path in paths})
    gaps = [hour for hour in range(there[0], there[-1]) if hour not in there] if there else []
    if not gaps:
        return []
    place = str(day_folder(root, day).relative_to(root))
    listed = ", ".join(f"{hour:02}" for hour in gaps)
    return [warning("missing-hour", place, f"no segment in hour {listed}: idle, or lost")]


def _strangers(root: Path, day: date) -> list[Finding]:
    """What lies in the day's folder and is in no hour of it: rows that nobody would read."""
    hours = {f"hour={hour:02}" for hour in range(_HOURS)}
    return [
        error("foreign-file", str(path.relative_to(root)), "is not in the folder of an hour")
        for path in sorted(day_folder(root, day).glob("*"))
        if path.name not in hours and not path.name.startswith((".", "_"))
    ]


def _open_journals(root: Path, day: date) -> list[Finding]:
    return [
        warning("open-journal", str(path.relative_to(root)), f"not converted yet; {_CONVERT}")
        for path in journals(root)
        if _may_hold(path, day)
    ]


def _damaged_journals(root: Path, day: date) -> list[Finding]:
    return [
        error("damaged-journal", str(path.relative_to(root)), "parts of it could not be read")
        for path in damaged_journals(root)
        if _may_hold(path, day)
    ]


def _may_hold(journal: Path, day: date) -> bool:
    """Whether its gateway started before the end of `day`."""
    end = datetime.combine(day, time.max, UTC).timestamp()
    return started(journal) <= end * 1_000_000
