"""The files of a date: segments as the gateways wrote them, and day tables made by compaction.

A compaction commits by replacing the manifest of its date. A day table counts when the manifest
names it; a segment counts unless the manifest lists it as replaced. So every row counts exactly
once at any moment.

    ARCHIVE/date=D/hour=HH/<segment>.parquet      segments
    ARCHIVE/date=D/day/<number>.parquet           day tables
    ARCHIVE/date=D/_manifest.json                 the day tables, and the segments they replace
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from gateway.archive.layout import DIGESTS, day_folder, segments
from gateway.errors import ReconcileError

MANIFEST: Final = "_manifest.json"
DAY_TABLES: Final = "day"  # folder of the day tables of a date


@dataclass(frozen=True, slots=True)
class ReplacedSegment:
    """A segment whose rows are in day tables; its times are None when unknown.

    Units: microseconds.
    """

    rows: int
    first: int | None = None  # earliest and latest `time` of its rows
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The day tables of a date with their rows, and the replaced segments.

    Paths are relative to the folder of the date.
    """

    tables: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, ReplacedSegment] = field(default_factory=dict)


def manifest_path(root: Path, day: date) -> Path:
    return day_folder(root, day) / MANIFEST


def read_manifest(root: Path, day: date) -> Manifest:
    """Read the manifest of a date; it is empty when the date was never compacted.

    Raises:
        ReconcileError: the file cannot be read or parsed.
    """
    path = manifest_path(root, day)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise ReconcileError(f"{path}: cannot be read: {error}") from error
    return parse_manifest(content, str(path))


def parse_manifest(text: bytes | str, path: str) -> Manifest:
    """Parse a manifest; `path` is for the error.

    Raises:
        ReconcileError: the text is no manifest.
    """
    try:
        content: Any = json.loads(text)
        replaced = {name: ReplacedSegment(**each) for name, each in content["replaced"].items()}
        return Manifest({str(k): int(v) for k, v in content["tables"].items()}, replaced)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReconcileError(f"{path}: is no manifest of day tables: {error}") from error


def to_json(manifest: Manifest) -> str:
    return json.dumps(asdict(manifest), indent=1) + "\n"


def current_segments(
    root: Path, day: date, manifest: Manifest, hours: range = range(24)
) -> list[Path]:
    """Return the segments of `hours` whose rows are not in day tables."""
    folder = day_folder(root, day)
    return [
        path
        for path in segments(root, day, hours)
        if path.relative_to(folder).as_posix() not in manifest.replaced
    ]


def day_tables(root: Path, day: date, manifest: Manifest) -> list[Path]:
    """Return the day tables that the manifest names."""
    return [day_folder(root, day) / name for name in sorted(manifest.tables)]


def unlisted_tables(root: Path, day: date, manifest: Manifest) -> Iterator[Path]:
    """Yield the day tables that the manifest does not name: an interrupted compaction."""
    folder = day_folder(root, day)
    for path in sorted((folder / DAY_TABLES).glob("*")):
        if path.relative_to(folder).as_posix() not in manifest.tables:
            yield path


def orphaned_digests(root: Path, day: date, manifest: Manifest) -> Iterator[Path]:
    """Yield the digests whose segment or day table is absent."""
    folder = root / DIGESTS / f"date={day.isoformat()}"
    for path in sorted(folder.glob("*/*.parquet")):
        name = path.relative_to(folder)
        if name.name.startswith(".") or name.as_posix() in manifest.replaced:
            continue
        unfinished = name.parts[0] == DAY_TABLES and name.as_posix() not in manifest.tables
        if not unfinished and not (day_folder(root, day) / name).exists():
            yield path
