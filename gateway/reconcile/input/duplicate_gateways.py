"""Detection of two running gateways with the same name, from the time ranges of their files.

A file name begins with the gateway's name and the start of its process. A restarted gateway writes
after the end of its earlier process; processes whose files overlap in time are two gateways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Final

from gateway.archive.layout import day_folder
from gateway.reconcile.findings import Finding, error
from gateway.reconcile.input.files import Manifest
from gateway.reconcile.input.footers import Segment

_SEGMENT_STEM: Final = re.compile(r"(?P<gateway>.+)-(?P<start>\d+)-\d+-\d+")
_MAX_FINDINGS: Final = 5  # for one gateway


@dataclass(slots=True)
class _ProcessRun:
    """The time range and the last file of one process, in microseconds.

    Mutable: owned by `find_duplicate_gateways`.
    """

    first: int
    last: int
    path: str


def find_duplicate_gateways(
    root: Path, day: date, segments: Sequence[Segment], manifest: Manifest
) -> list[Finding]:
    """Return an error for each two processes that wrote under one name at the same time."""
    runs: dict[str, dict[int, _ProcessRun]] = {}
    for path, first, last in _time_ranges(root, day, segments, manifest):
        if (match := _SEGMENT_STEM.fullmatch(PurePosixPath(path).stem)) is None:
            continue
        own = runs.setdefault(match["gateway"], {})
        run = own.setdefault(int(match["start"]), _ProcessRun(first, last, path))
        run.first = min(run.first, first)
        if last > run.last:
            run.last, run.path = last, path
    return [finding for name, own in sorted(runs.items()) for finding in _overlaps(name, own)]


def _time_ranges(
    root: Path, day: date, segments: Sequence[Segment], manifest: Manifest
) -> Iterator[tuple[str, int, int]]:
    """Yield path, first and last microsecond of every segment, compacted ones included."""
    for each in segments:
        if each.first is not None and each.last is not None:
            yield each.path.relative_to(root).as_posix(), each.first, each.last
    folder = day_folder(root, day).relative_to(root).as_posix()
    for name, old in manifest.replaced.items():
        if old.first is not None and old.last is not None:
            yield f"{folder}/{name}", old.first, old.last


def _overlaps(gateway: str, runs: dict[int, _ProcessRun]) -> list[Finding]:
    findings: list[Finding] = []
    ordered = sorted(runs.values(), key=lambda run: (run.first, run.last))
    latest = ordered[0]
    for run in ordered[1:]:
        if run.first < latest.last:
            text = (
                f"two gateways named {gateway!r} wrote at the same time, the other {latest.path};"
                " duplicates between them are not detected; give each its own gateway.name"
            )
            findings.append(error("same-name", run.path, text))
        latest = max(latest, run, key=lambda one: one.last)
    return findings[:_MAX_FINDINGS]
