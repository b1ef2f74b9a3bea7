"""Which files a date has: segments as they landed, day tables as they were compacted.

A compaction commits by replacing the manifest of its date: day tables it names count, segments it
replaced do not, whether they are gone already or not. So every row is there once at any moment.

    ARCHIVE/date=D/hour=HH/<segment>.parquet      as landed
    ARCHIVE/date=D/day/<number>.parquet           day tables
    ARCHIVE/date=D/_manifest.json                 which day tables hold the rows of which segments
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
DAY: Final = "day"


@dataclass(frozen=True, slots=True)
class Replaced:
    """A segment whose rows are in day tables now; times are microseconds, None when unknown."""

    rows: int
    first: int | None = None  # earliest and latest `time` of its rows
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The day tables of a date by rows, and what they replaced; paths are relative to the date."""

    tables: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, Replaced] = field(default_factory=dict)


def manifest_path(root: Path, day: date) -> Path:
    return day_folder(root, day) / MANIFEST


def read_manifest(root: Path, day: date) -> Manifest:
    """The manifest of a date, empty when it was never compacted.

    Raises:
        ReconcileError: it is there and cannot be understood.
    """
    path = manifest_path(root, day)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Manifest()
    except OSError as error:
        raise ReconcileError(f"{path}: is no manifest of day tables: {error}") from error
    return parse_manifest(content, str(path))


def parse_manifest(text: bytes | str, place: str) -> Manifest:
    """The manifest that `text` of the file `place` is.

    Raises:
        ReconcileError: it cannot be understood.
    """
    try:
        content: Any = json.loads(text)
        replaced = {name: Replaced(**each) for name, each in content["replaced"].items()}
        return Manifest({str(k): int(v) for k, v in content["tables"].items()}, replaced)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ReconcileError(f"{place}: is no manifest of day tables: {error}") from error


def to_json(manifest: Manifest) -> str:
    return json.dumps(asdict(manifest), indent=1) + "\n"


def landed(root: Path, day: date, manifest: Manifest, hours: range = range(24)) -> list[Path]:
    """The segments of `hours` whose rows are not in day tables."""
    folder = day_folder(root, day)
    return [
        path
        for path in segments(root, day, hours)
        if path.relative_to(folder).as_posix() not in manifest.replaced
    ]


def tables(root: Path, day: date, manifest: Manifest) -> list[Path]:
    """The day tables that count."""
    return [day_folder(root, day) / name for name in sorted(manifest.tables)]


def strays(root: Path, day: date, manifest: Manifest) -> Iterator[Path]:
    """Day tables that no manifest names: a compaction that did not come to its end."""
    folder = day_folder(root, day)
    for path in sorted((folder / DAY).glob("*")):
        if path.relative_to(folder).as_posix() not in manifest.tables:
            yield path


def orphans(root: Path, day: date, manifest: Manifest) -> Iterator[Path]:
    """Digests whose segment or day table is gone."""
    folder = root / DIGESTS / f"date={day.isoformat()}"
    for path in sorted(folder.glob("*/*.parquet")):
        name = path.relative_to(folder)
        if name.name.startswith(".") or name.as_posix() in manifest.replaced:
            continue
        unfinished = name.parts[0] == DAY and name.as_posix() not in manifest.tables
        if not unfinished and not (day_folder(root, day) / name).exists():
            yield path
