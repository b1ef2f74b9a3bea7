"""Which files of the archive a date is reconciled from, each looked at before Spark sees it.

A file that cannot be read is left out and reported; nothing is skipped without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from gateway.archive.layout import damaged_journals, day_folder, journals, started
from gateway.errors import ReconcileError
from gateway.reconcile.findings import Finding, error, warning
from gateway.reconcile.input.duplicate_gateways import same_names
from gateway.reconcile.input.files import (
    DAY,
    Manifest,
    landed,
    orphans,
    read_manifest,
    strays,
    tables,
)
from gateway.reconcile.input.footers import Segment, look

_WORKERS: Final = 8  # footers read at once
_HOURS: Final = 24
_CONVERT: Final = "a running gateway will, or python -m gateway.archive.segments ARCHIVE"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Readable files: of the date, of the hours before it and of those after it."""

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
        """Bytes of all the files."""
        return sum(each.size for each in self.all)


def find_inputs(root: Path, day: date, margin: int, *, whole: bool = False) -> Inputs:
    """The files of `day` and of `margin` hours on either side; `whole` reads every page."""
    hours = min(margin, _HOURS)
    findings: list[Finding] = []
    manifest = _manifest(root, day, findings)
    groups = [landed(root, day, manifest) + tables(root, day, manifest)]
    for beside, part in (
        (day - _DAY if day > date.min else None, range(_HOURS - hours, _HOURS)),
        (day + _DAY if day < date.max else None, range(hours)),
    ):
        groups.append(_margin(root, beside, part, findings) if beside and hours else [])
    with ThreadPoolExecutor(_WORKERS) as pool:
        looked = [list(pool.map(partial(look, root, whole=whole), paths)) for paths in groups]
    findings += [finding for group in looked for each in group for finding in each.findings]
    there, before, after = (
        [each.segment for each in group if each.segment is not None] for group in looked
    )
    findings += _strangers(root, day, manifest) + _missing_hours(root, day, manifest, groups[0])
    findings += same_names(root, day, [*before, *there, *after], manifest)
    findings += _damaged_journals(root, day)
    waiting = _open_journals(root, day)
    last = _last_rows([*there, *after])
    return Inputs(there, before, after, [*findings, *waiting], bool(waiting), last)


def _manifest(root: Path, day: date, findings: list[Finding]) -> Manifest:
    """The manifest; one that cannot be read names every day table there is."""
    try:
        return read_manifest(root, day)
    except ReconcileError as fault:
        folder = day_folder(root, day)
        findings.append(error("damaged-manifest", str(folder.relative_to(root)), str(fault)))
        return Manifest({f"{DAY}/{path.name}": 0 for path in (folder / DAY).glob("*.parquet")})


def _margin(root: Path, day: date, hours: range, findings: list[Finding]) -> list[Path]:
    """Of a day beside the date: its segments of these hours, and its day tables."""
    manifest = _manifest(root, day, findings)
    return landed(root, day, manifest, hours) + tables(root, day, manifest)


def _last_rows(segments: Sequence[Segment]) -> dict[str, int]:
    last: dict[str, int] = {}
    for each in segments:
        if each.gateway is not None and each.last is not None:
            last[each.gateway] = max(each.last, last.get(each.gateway, 0))
    return last


def _missing_hours(
    root: Path, day: date, manifest: Manifest, paths: Sequence[Path]
) -> list[Finding]:
    folders = [path.parent.name for path in paths if path.parent.name != DAY]
    folders += [name.partition("/")[0] for name in manifest.replaced]
    there = sorted({int(folder.removeprefix("hour=")) for folder in folders})
    gaps = [hour for hour in range(there[0], there[-1]) if hour not in there] if there else []
    if not gaps:
        return []
    place = str(day_folder(root, day).relative_to(root))
    listed = ", ".join(f"{hour:02}" for hour in gaps)
    return [warning("missing-hour", place, f"no segment in hour {listed}: idle, or lost")]


def _strangers(root: Path, day: date, manifest: Manifest) -> list[Finding]:
    """What lies in the day's folder and is in no hour of it: rows that nobody would read."""
    known = {*(f"hour={hour:02}" for hour in range(_HOURS)), DAY}
    found = [
        error("foreign-file", str(path.relative_to(root)), "is not in the folder of an hour")
        for path in sorted(day_folder(root, day).glob("*"))
        if path.name not in known and not path.name.startswith((".", "_"))
    ]
    for path in strays(root, day, manifest):
        text = "an unfinished compaction left it; the next one removes it"
        found.append(warning("unfinished-compaction", str(path.relative_to(root)), text))
    for path in orphans(root, day, manifest):
        text = "its segment is gone, and the rows in it"
        found.append(error("lost-segment", str(path.relative_to(root)), text))
    return found


def _open_journals(root: Path, day: date) -> list[Finding]:
    return [
        warning("open-journal", str(path.relative_to(root)), f"not converted yet; {_CONVERT}")
        for path in _held(journals(root), day)
    ]


def _damaged_journals(root: Path, day: date) -> list[Finding]:
    return [
        error("damaged-journal", str(path.relative_to(root)), "parts of it could not be read")
        for path in _held(damaged_journals(root), day)
    ]


def _held(found: Sequence[Path], day: date) -> Iterator[Path]:
    """The journals whose gateway started before the end of `day`."""
    end = datetime.combine(day, time.max, UTC).timestamp()
    return (path for path in found if started(path) <= end * 1_000_000)
