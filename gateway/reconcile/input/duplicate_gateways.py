"""Two gateways with one name: told by the times of the files they wrote; no row is read.

A file's name begins with its gateway's and the start of that process. A gateway that is restarted
writes after the end of the one before; two that write at the same time are two.
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

_STEM: Final = re.compile(r"(?P<gateway>.+)-(?P<start>\d+)-\d+-\d+")
_SHOWN: Final = 5  # pairs of runs of one gateway that are reported


@dataclass(slots=True)
class _Run:
    """What one process wrote: when, and its last file. Filled while files are looked at."""

    first: int
    last: int
    place: str


def same_names(
    root: Path, day: date, segments: Sequence[Segment], manifest: Manifest
) -> list[Finding]:
    """An error for each two processes that wrote under one name at the same time."""
    runs: dict[str, dict[int, _Run]] = {}
    for place, first, last in _written(root, day, segments, manifest):
        if (match := _STEM.fullmatch(PurePosixPath(place).stem)) is None:
            continue
        own = runs.setdefault(match["gateway"], {})
        run = own.setdefault(int(match["start"]), _Run(first, last, place))
        run.first = min(run.first, first)
        if last > run.last:
            run.last, run.place = last, place
    return [finding for name, own in sorted(runs.items()) for finding in _overlaps(name, own)]


def _written(
    root: Path, day: date, segments: Sequence[Segment], manifest: Manifest
) -> Iterator[tuple[str, int, int]]:
    for each in segments:
        if each.first is not None and each.last is not None:
            yield each.path.relative_to(root).as_posix(), each.first, each.last
    folder = day_folder(root, day).relative_to(root).as_posix()
    for name, old in manifest.replaced.items():
        if old.first is not None and old.last is not None:
            yield f"{folder}/{name}", old.first, old.last


def _overlaps(gateway: str, runs: dict[int, _Run]) -> list[Finding]:
    findings: list[Finding] = []
    ordered = sorted(runs.values(), key=lambda run: (run.first, run.last))
    latest = ordered[0]
    for run in ordered[1:]:
        if run.first < latest.last:
            text = (
                f"two gateways named {gateway!r} wrote at the same time, the other {latest.place};"
                " what both receive is doubled unseen: give each its own gateway.name"
            )
            findings.append(error("same-name", run.place, text))
        latest = max(latest, run, key=lambda one: one.last)
    return findings[:_SHOWN]
