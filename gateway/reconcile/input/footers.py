"""What a file's own footer says: whether it is ours, whole, and of which time; no rows are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.layout import digest_path, pairs_path
from gateway.archive.schema import REQUIRED
from gateway.archive.segments.parquet import SCHEMA
from gateway.reconcile.findings import Finding, error, warning

_ROWS: Final = b"segment.rows"  # a digest's note of the segment it was made of
_BYTES: Final = b"segment.bytes"


@dataclass(frozen=True, slots=True)
class Segment:
    """A readable file of rows, and beside it what it adds up to, where that is there and its own.

    Times are microseconds; `gateway` is None when the rows are of several.
    """

    path: Path
    rows: int
    size: int
    first: int | None = None
    last: int | None = None
    gateway: str | None = None
    digest: Path | None = None
    pairs: Path | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """A file that was looked at: usable unless `segment` is None; what is wrong with it."""

    segment: Segment | None
    findings: tuple[Finding, ...] = ()


def look(root: Path, path: Path, *, whole: bool = False) -> Looked:
    """One file of rows and its digest, by their footers; `whole` reads every page as well."""
    place = str(path.relative_to(root))
    try:
        size = path.stat().st_size
        if size == 0:
            return Looked(None, (error("empty-file", place, "the file has no content"),))
        metadata = pq.read_metadata(path)
        found = metadata.schema.to_arrow_schema()
        if whole:
            _read_pages(path)
    except FileNotFoundError:
        return Looked(None, (error("lost-file", place, "its manifest names it; it is gone"),))
    except (pa.ArrowException, OSError) as fault:
        reason = f"not a whole Parquet file, or a page is damaged: {_first_line(fault)}"
        return Looked(None, (error("unreadable-file", place, reason),))
    if metadata.num_rows == 0:
        nothing = warning("empty-file", place, "the file has no rows")
        return Looked(Segment(path, 0, size), (nothing,))
    odd = _schema_fault(place, found)
    if odd is not None and odd.rule == "foreign-file":
        return Looked(None, (odd,))
    first, last = _span(metadata, "time")
    gateway = _only(metadata, "gateway")
    segment = Segment(path, metadata.num_rows, size, first, last, gateway)
    return _with_digest(root, segment, (odd,) if odd is not None else ())


def _with_digest(root: Path, segment: Segment, findings: tuple[Finding, ...]) -> Looked:
    """The segment with its digest; what is wrong with that, unless more is wrong already."""
    digest, pairs = digest_path(root, segment.path), pairs_path(root, segment.path)
    if (found := _digest_fault(segment, digest)) is not None:
        rule, text = found
        place = str(digest.relative_to(root))
        fault = warning(rule, place, f"{text}; the minutes of its segment are joined in full")
        return Looked(segment, findings or (fault,))
    own = pairs if pairs.exists() else None
    return Looked(replace(segment, digest=digest, pairs=own), findings)


def _digest_fault(segment: Segment, digest: Path) -> tuple[str, str] | None:
    try:
        notes = pq.read_metadata(digest).metadata or {}
        if _is_stale(notes, segment, digest):
            return "stale-digest", "is of other rows than its segment"
    except FileNotFoundError:
        return "missing-digest", "is absent"
    except (pa.ArrowException, OSError) as fault:
        return "unreadable-digest", f"cannot be read: {_first_line(fault)}"
    return None


def _is_stale(notes: dict[bytes, bytes], segment: Segment, digest: Path) -> bool:
    """By the note it has of its segment; without one by age, as it is written after it."""
    if _ROWS in notes and _BYTES in notes:
        noted = (int(notes[_ROWS]), int(notes[_BYTES]))
        return noted != (segment.rows, segment.size)
    return digest.stat().st_mtime_ns < segment.path.stat().st_mtime_ns


def note_of(rows: int, size: int) -> dict[bytes, bytes]:
    """The note a digest carries of its segment."""
    return {_ROWS: str(rows).encode(), _BYTES: str(size).encode()}


def _read_pages(path: Path) -> None:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for _ in file.iter_batches():
            pass


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
    return bool(
        here == wanted
        or (pa.types.is_nested(here) and here.id == wanted.id)
        or (pa.types.is_timestamp(here) and here.unit == "us" and pa.types.is_timestamp(wanted))
    )


def _span(metadata: pq.FileMetaData, name: str) -> tuple[int | None, int | None]:
    """Smallest and largest microsecond of a column of times, where statistics tell."""
    stats = _statistics(metadata, name)
    if not stats or any(each is None or not each.has_min_max for each in stats):
        return None, None
    return min(_micros(each.min) for each in stats), max(_micros(each.max) for each in stats)


def _only(metadata: pq.FileMetaData, name: str) -> str | None:
    stats = _statistics(metadata, name)
    if any(each is None or not each.has_min_max for each in stats):
        return None
    values = {str(value) for each in stats for value in (each.min, each.max)}
    return values.pop() if len(values) == 1 else None


def _statistics(metadata: pq.FileMetaData, name: str) -> list[Any]:
    group = metadata.row_group(0)
    paths = [group.column(place).path_in_schema for place in range(group.num_columns)]
    place = paths.index(name)
    return [
        metadata.row_group(number).column(place).statistics
        for number in range(metadata.num_row_groups)
    ]


def _micros(value: Any) -> int:  # noqa: ANN401  # whatever type the footer's statistics have
    return int(pa.scalar(value).cast(pa.timestamp("us", tz="UTC")).value)


def _first_line(fault: BaseException) -> str:
    return (str(fault).splitlines() or [type(fault).__name__])[0]
