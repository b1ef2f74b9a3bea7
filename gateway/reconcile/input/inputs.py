"""The files from which a date is reconciled, each checked before Spark reads it.

A file that cannot be read is left out and reported as a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from gateway.archive.layout import damaged_journals, day_folder, gateway_start, journals
from gateway.errors import ReconcileError
from gateway.reconcile.findings import Finding, error, warning
from gateway.reconcile.input.duplicate_gateways import find_duplicate_gateways
from gateway.reconcile.input.files import (
    DAY_TABLES,
    Manifest,
    current_segments,
    day_tables,
    orphaned_digests,
    read_manifest,
    unlisted_tables,
)
from gateway.reconcile.input.footers import Segment, check_file

_WORKERS: Final = 8  # threads that read footers
_HOURS: Final = 24
_DAY: Final = timedelta(days=1)
_NOT_CONVERTED: Final = (
    "is not converted yet; wait for its gateway, or run python -m gateway.archive.segments ARCHIVE"
)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The readable files of the date, and of the hours before and after it."""

    day: list[Segment]
    before: list[Segment]
    after: list[Segment]
    findings: list[Finding]
    open_journals: bool = False
    last: Mapping[str, int] = field(default_factory=dict)  # gateway -> its last row, microseconds

    @property
    def all(self) -> list[Segment]:
        return [*self.before, *self.day, *self.after]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(each.size for each in self.all)


def find_inputs(root: Path, day: date, margin: int, *, every_page: bool = False) -> Inputs:
    """Find and check the files of `day` and of `margin` hours before and after it.

    `every_page` reads the files completely; otherwise the footers are checked.
    """
    hours = min(margin, _HOURS)
    findings: list[Finding] = []
    manifest = _manifest(root, day, findings)
    groups = [current_segments(root, day, manifest) + day_tables(root, day, manifest)]
    for neighbour, part in (
        (day - _DAY if day > date.min else None, range(_HOURS - hours, _HOURS)),
        (day + _DAY if day < date.max else None, range(hours)),
    ):
        groups.append(_margin(root, neighbour, part, findings) if neighbour and hours else [])
    check = partial(check_file, root, every_page=every_page)
    with ThreadPoolExecutor(_WORKERS) as pool:
        checked = [list(pool.map(check, paths)) for paths in groups]
    findings += [finding for group in checked for each in group for finding in each.findings]
    on_day, before, after = (
        [each.segment for each in group if each.segment is not None] for group in checked
    )
    findings += _unexpected_files(root, day, manifest)
    findings += _missing_hours(root, day, manifest, groups[0])
    findings += find_duplicate_gateways(root, day, [*before, *on_day, *after], manifest)
    findings += _damaged_journals(root, day)
    open_journals = _open_journals(root, day)
    last = _last_rows([*on_day, *after])
    findings += open_journals
    return Inputs(on_day, before, after, findings, bool(open_journals), last)


def _manifest(root: Path, day: date, findings: list[Finding]) -> Manifest:
    """Read the manifest; when it cannot be read, every day table counts."""
    try:
        return read_manifest(root, day)
    except ReconcileError as fault:
        folder = day_folder(root, day)
        findings.append(error("damaged-manifest", str(folder.relative_to(root)), str(fault)))
        tables = (folder / DAY_TABLES).glob("*.parquet")
        return Manifest({f"{DAY_TABLES}/{path.name}": 0 for path in tables})


def _margin(root: Path, day: date, hours: range, findings: list[Finding]) -> list[Path]:
    """Return the segments of these hours and the day tables of a neighbouring day."""
    manifest = _manifest(root, day, findings)
    return current_segments(root, day, manifest, hours) + day_tables(root, day, manifest)


def _last_rows(segments: Sequence[Segment]) -> dict[str, int]:
    last: dict[str, int] = {}
    for each in segments:
        if each.gateway is not None and each.last is not None:
            last[each.gateway] = max(each.last, last.get(each.gateway, 0))
    return last


def _missing_hours(
    root: Path, day: date, manifest: Manifest, paths: Sequence[Path]
) -> list[Finding]:
    folders = [path.parent.name for path in paths if path.parent.name != DAY_TABLES]
    folders += [name.partition("/")[0] for name in manifest.replaced]
    hours = sorted({int(folder.removeprefix("hour=")) for folder in folders})
    gaps = [hour for hour in range(hours[0], hours[-1]) if hour not in hours] if hours else []
    if not gaps:
        return []
    folder = str(day_folder(root, day).relative_to(root))
    listed = ", ".join(f"{hour:02}" for hour in gaps)
    return [warning("missing-hour", folder, f"no segment in hour {listed}: idle, or lost")]


def _unexpected_files(root: Path, day: date, manifest: Manifest) -> list[Finding]:
    """Report files and folders whose rows would not be read, and digests without a segment."""
    known = {*(f"hour={hour:02}" for hour in range(_HOURS)), DAY_TABLES}
    found = [
        error("foreign-file", str(path.relative_to(root)), "is not in the folder of an hour")
        for path in sorted(day_folder(root, day).glob("*"))
        if path.name not in known and not path.name.startswith((".", "_"))
    ]
    for path in unlisted_tables(root, day, manifest):
        text = "an interrupted compaction left it; the next one removes it"
        found.append(warning("unfinished-compaction", str(path.relative_to(root)), text))
    for path in orphaned_digests(root, day, manifest):
        text = "its segment was removed, and so were its rows"
        found.append(error("lost-segment", str(path.relative_to(root)), text))
    return found


def _open_journals(root: Path, day: date) -> list[Finding]:
    return [
        warning("open-journal", str(path.relative_to(root)), _NOT_CONVERTED)
        for path in _started_by(journals(root), day)
    ]


def _damaged_journals(root: Path, day: date) -> list[Finding]:
    return [
        error("damaged-journal", str(path.relative_to(root)), "parts of it could not be read")
        for path in _started_by(damaged_journals(root), day)
    ]


def _started_by(found: Sequence[Path], day: date) -> Iterator[Path]:
    """Yield the journals whose gateway started before the end of `day`."""
    end = datetime.combine(day, time.max, UTC).timestamp()
    return (path for path in found if gateway_start(path) <= end * 1_000_000)
