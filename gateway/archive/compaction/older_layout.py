"""Days in the layout of version 1: day tables that `_manifest.json` lists, and unsealed segments.

    ARCHIVE/date=D/hour=HH/<segment>.parquet      segments
    ARCHIVE/date=D/day/<number>.parquet           day tables, which replace segments
    ARCHIVE/date=D/_manifest.json                 the day tables, and the segments they replace

A name of a manifest is a path only when it has the form of one: it never leads out of its date.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gateway.archive.compaction.merge import MergeInput, hours_in
from gateway.archive.compaction.plan import Inputs, Plan, SealedDay, hour_of
from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import DIGESTS, HOUR, day_folder, day_start
from gateway.archive.segments.write import VERSION_KEY
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError, first_line

MANIFEST: Final = "_manifest.json"
DAY_TABLES: Final = "day"  # folder of the day tables of a date

_TABLE = re.compile(r"day/\d+-\d+\.parquet", re.ASCII)
_SEGMENT = re.compile(r"hour=(?:[01]\d|2[0-3])/[A-Za-z0-9~-][A-Za-z0-9_.~-]*\.parquet", re.ASCII)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The day tables of a date, and the segments whose rows are in them: paths in the archive."""

    tables: frozenset[Path] = frozenset()
    replaced: frozenset[Path] = frozenset()


def read_manifest(storage: Storage, day: date) -> Manifest | None:
    """Read the manifest of `day`; None when the day has none.

    Raises:
        ArchiveError: the file is no manifest, or a name in it is no file of this date.
        OSError: the archive cannot be reached.
    """
    path = day_folder(Path(), day) / MANIFEST
    content = storage.read(path)
    return None if content is None else _parsed(content, day, path)


def _parsed(content: bytes, day: date, path: Path) -> Manifest:
    try:
        found: Any = json.loads(content)
        names = [*map(str, found["tables"])], [*map(str, found["replaced"])]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveError(f"{path}: is no manifest of day tables: {error}") from error
    folder = day_folder(Path(), day)
    for listed, form in zip(names, (_TABLE, _SEGMENT), strict=True):
        for name in listed:
            if form.fullmatch(name) is None:
                raise ArchiveError(f"{path}: {name!r} is no file of this date; restore the file")
    tables, replaced = (frozenset(folder / name for name in listed) for listed in names)
    return Manifest(tables, replaced)


def counted_files(storage: Storage, day: date, manifest: Manifest) -> list[tuple[Path, int]]:
    """Return the files of `day` whose rows count, with their sizes: tables, and other segments."""
    folder = day_folder(Path(), day)
    return [
        (path, size)
        for path, size in storage.files(folder)
        if path in manifest.tables
        or (
            path not in manifest.replaced
            and _SEGMENT.fullmatch(path.relative_to(folder).as_posix())
        )
    ]


def is_older(storage: Storage, day: date) -> bool:
    """Return whether `day` was written in this layout: it has a manifest, or an older segment."""
    folder = day_folder(Path(), day)
    if MANIFEST in storage.names(folder):
        return True
    files = [path for path, _ in counted_files(storage, day, Manifest())]
    return bool(files) and not any(_has_version(storage, path) for path in files)


def _has_version(storage: Storage, path: Path) -> bool:
    try:
        with storage.open(path) as file:
            return VERSION_KEY in (pq.read_metadata(file).metadata or {})
    except (pa.ArrowException, FileNotFoundError):
        return True  # no file of a gateway: a finding, not an older segment


def plan_older(storage: Storage, day: date, sealed: SealedDay) -> Plan:
    """Return the segments of `day` and the parts of its day tables by hour.

    Files that its manifest does not count are removed.
    """
    try:
        manifest = read_manifest(storage, day) or Manifest()
    except ArchiveError as fault:
        place = (day_folder(Path(), day) / MANIFEST).as_posix()
        return Plan({}, (error("damaged-manifest", place, f"{fault}; nothing is compacted"),))
    done = {entry.path for seal in sealed.merges for entry in seal.segments}
    done |= sealed.replaced.keys()
    counted = [
        each for each in counted_files(storage, day, manifest) if each[0].as_posix() not in done
    ]
    if not counted:
        return Plan()
    _remove_uncounted(storage, day, manifest)
    text = "an older gateway wrote it: no seal proves that it is complete"
    findings: list[Finding] = [warning("older-layout", day_folder(Path(), day).name, text)]
    hours: dict[int, Inputs] = {}
    for path, size in counted:
        if path in manifest.tables:
            findings += _add_day_table(storage, day, path, size, hours)
        else:
            gateway = path.stem.rsplit("-", 3)[0]
            own = MergeInput(path.as_posix(), gateway)
            hours.setdefault(hour_of(path.as_posix()), []).append((own, size))
    return Plan(hours, tuple(findings))


def _add_day_table(
    storage: Storage, day: date, path: Path, size: int, hours: dict[int, Inputs]
) -> list[Finding]:
    """Add the part of a day table in each hour; a table that cannot be read is a finding."""
    try:
        with storage.open(path) as file:
            time = pq.read_table(file, columns=["time"])["time"]
    except (pa.ArrowException, FileNotFoundError) as fault:
        text = f"cannot be read: {first_line(fault)}; it stays as it is"
        return [error("unreadable-file", path.as_posix(), text)]
    midnight = day_start(day)
    found = pc.value_counts(hours_in(time, midnight)).to_pylist()
    for each in sorted(found, key=lambda one: one["values"]):
        own = MergeInput(path.as_posix(), part_of_day=True)
        share = size * each["counts"] // len(time)
        hours.setdefault(midnight + each["values"] * HOUR, []).append((own, share))
    return []


def _remove_uncounted(storage: Storage, day: date, manifest: Manifest) -> None:
    """Remove replaced segments, and day tables that the manifest does not list."""
    folder = day_folder(Path(), day)
    tables = {path for path, _ in storage.files(folder / DAY_TABLES)}
    for path in (*manifest.replaced, *(tables - manifest.tables)):
        storage.delete(path)


def remove_older_layout(storage: Storage, day: date) -> None:
    """Remove the manifest and the digests of `day` when all its day tables are compacted."""
    folder = day_folder(Path(), day)
    if not storage.files(folder / DAY_TABLES):
        storage.remove(folder / DAY_TABLES)
        storage.delete(folder / MANIFEST)
        storage.remove(day_folder(Path(DIGESTS), day))
