"""Checks of a Parquet file by its footer: schema, completeness, time range, and its digest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.layout import digest_path, pairs_path
from gateway.archive.schema import REQUIRED
from gateway.archive.segments.parquet import SCHEMA
from gateway.errors import first_line
from gateway.reconcile.findings import Finding, error, warning

_SEGMENT_ROWS: Final = b"segment.rows"  # in a digest's metadata: the segment it belongs to
_SEGMENT_BYTES: Final = b"segment.bytes"


@dataclass(frozen=True, slots=True)
class Segment:
    """A readable file of rows; `digest` and `pairs` are None when absent or of other rows.

    `gateway` is None when the rows are of several gateways.

    Units: microseconds, bytes.
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
class CheckedFile:
    """The result of checking a file; `segment` is None when its rows cannot be used."""

    segment: Segment | None
    findings: tuple[Finding, ...] = ()


def check_file(root: Path, path: Path, *, every_page: bool = False) -> CheckedFile:
    """Check a file of rows and its digest by their footers, and with `every_page` its pages."""
    relative = str(path.relative_to(root))
    try:
        size = path.stat().st_size
        if size == 0:
            return CheckedFile(None, (error("empty-file", relative, "the file has no content"),))
        metadata = pq.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        if every_page:
            _read_pages(path)
    except FileNotFoundError:
        text = "its manifest names it, and the file is absent"
        return CheckedFile(None, (error("lost-file", relative, text),))
    except (pa.ArrowException, OSError) as fault:
        text = f"is no complete Parquet file, or a page is damaged: {first_line(fault)}"
        return CheckedFile(None, (error("unreadable-file", relative, text),))
    if metadata.num_rows == 0:
        finding = warning("empty-file", relative, "the file has no rows")
        return CheckedFile(Segment(path, 0, size), (finding,))
    difference = _schema_finding(relative, schema)
    if difference is not None and difference.rule == "foreign-file":
        return CheckedFile(None, (difference,))
    first, last = _time_range(metadata, "time")
    gateway = _single_value(metadata, "gateway")
    segment = Segment(path, metadata.num_rows, size, first, last, gateway)
    return _with_digest(root, segment, (difference,) if difference is not None else ())


def _with_digest(root: Path, segment: Segment, findings: tuple[Finding, ...]) -> CheckedFile:
    """Add the digest and pairs of a segment; a finding about them only when it is the first."""
    digest, pairs = digest_path(root, segment.path), pairs_path(root, segment.path)
    if (fault := _digest_fault(segment, digest)) is not None:
        rule, text = fault
        relative = str(digest.relative_to(root))
        finding = warning(rule, relative, f"{text}; the rows of its segment are read instead")
        return CheckedFile(segment, findings or (finding,))
    own = pairs if pairs.exists() else None
    return CheckedFile(replace(segment, digest=digest, pairs=own), findings)


def _digest_fault(segment: Segment, digest: Path) -> tuple[str, str] | None:
    """Return rule and text when the digest cannot be used."""
    try:
        metadata = pq.read_metadata(digest).metadata or {}
        if _is_stale(metadata, segment, digest):
            return "stale-digest", "belongs to other rows than those of its segment"
    except FileNotFoundError:
        return "missing-digest", "is absent"
    except (pa.ArrowException, OSError) as fault:
        return "unreadable-digest", f"cannot be read: {first_line(fault)}"
    return None


def _is_stale(metadata: dict[bytes, bytes], segment: Segment, digest: Path) -> bool:
    """Compare rows and bytes in the metadata with the segment, or without them the file times.

    A digest is written after its segment.
    """
    if _SEGMENT_ROWS in metadata and _SEGMENT_BYTES in metadata:
        recorded = (int(metadata[_SEGMENT_ROWS]), int(metadata[_SEGMENT_BYTES]))
        return recorded != (segment.rows, segment.size)
    return digest.stat().st_mtime_ns < segment.path.stat().st_mtime_ns


def segment_metadata(rows: int, size: int) -> dict[bytes, bytes]:
    """Return the metadata of a digest that identifies its segment."""
    return {_SEGMENT_ROWS: str(rows).encode(), _SEGMENT_BYTES: str(size).encode()}


def _read_pages(path: Path) -> None:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for _ in file.iter_batches():
            pass


def _schema_finding(path: str, found: pa.Schema) -> Finding | None:
    if absent := [name for name in REQUIRED if name not in found.names]:
        return error("foreign-file", path, f"no archive segment: no column {', '.join(absent)}")
    if wrong := [name for name in found.names if not _fits(name, found)]:
        return error("foreign-file", path, f"another type in column {', '.join(wrong)}")
    if absent := [name for name in SCHEMA.names if name not in found.names]:
        return warning("older-schema", path, f"no column {', '.join(absent)}; read as null")
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


def _time_range(metadata: pq.FileMetaData, name: str) -> tuple[int | None, int | None]:
    """Return the smallest and largest microsecond of a column; None without statistics."""
    stats = _statistics(metadata, name)
    if not stats or any(each is None or not each.has_min_max for each in stats):
        return None, None
    return min(_micros(each.min) for each in stats), max(_micros(each.max) for each in stats)


def _single_value(metadata: pq.FileMetaData, name: str) -> str | None:
    stats = _statistics(metadata, name)
    if any(each is None or not each.has_min_max for each in stats):
        return None
    values = {str(value) for each in stats for value in (each.min, each.max)}
    return values.pop() if len(values) == 1 else None


def _statistics(metadata: pq.FileMetaData, name: str) -> list[Any]:
    group = metadata.row_group(0)
    paths = [group.column(index).path_in_schema for index in range(group.num_columns)]
    index = paths.index(name)
    return [
        metadata.row_group(number).column(index).statistics
        for number in range(metadata.num_row_groups)
    ]


def _micros(value: Any) -> int:  # noqa: ANN401  # statistics have the type of their file
    return int(pa.scalar(value).cast(pa.timestamp("us", tz="UTC")).value)
