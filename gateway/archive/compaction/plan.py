"""The plan of a compaction: the sealed segments of a date, and the merged ones they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from gateway.archive.compaction.merge import MergeInput, MergeTask
from gateway.archive.findings import Finding, error
from gateway.archive.layout import HOUR, day_folder, day_start, hour_folder, parse_day, seal_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.seals.seal import AnySeal, MergeSeal, Seal, has_valid_mac
from gateway.archive.seals.store import StoredSeal, read_seal, read_seals, seal_days
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError

Inputs: TypeAlias = list[tuple[MergeInput, int]]  # with their bytes

_NEIGHBOURS: Final = (-1, 0, 1)  # days; a journal may be closed on the day after its rows
_STAYS: Final = "it stays as it is"


@dataclass(frozen=True, slots=True)
class SealedDay:
    """The files of a date, the valid seals about them, and findings about the others.

    `sealed` has each segment of the date that a journal's seal names, by path, in the order of the
    journals; `merges` are the compactions of the date; `generations` also those with a damaged
    seal.
    """

    files: Mapping[str, int]  # with their bytes
    sealed: Mapping[str, MergeInput]
    merges: tuple[MergeSeal, ...]
    findings: tuple[Finding, ...]
    generations: frozenset[int]

    @property
    def replaced(self) -> dict[str, str]:
        """The segments in merged ones, with the hashes of their content."""
        return {each.path: each.sha256 for seal in self.merges for each in seal.replaces}

    @property
    def next_generation(self) -> int:
        return 1 + max(self.generations, default=0)


@dataclass(frozen=True, slots=True)
class Plan:
    """The segments to merge by hour, with their sizes, and findings about files that stay.

    Units: microseconds; the keys are the starts of hours.
    """

    hours: Mapping[int, Inputs] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def read_sealed_day(storage: Storage, day: date, key: bytes | None) -> SealedDay:
    """Read the seals about `day`, and check each with `key`.

    Raises:
        ArchiveError: a seal is keyed and there is no key.
        OSError: the archive cannot be reached.
    """
    folder = day_folder(Path(), day)
    files = {path.as_posix(): size for path, size in storage.files(folder)}  # before their seals
    stored = [each for each in _stored_seals(storage, day, files) if _matters(each, day)]
    valid: list[AnySeal] = []
    findings: list[Finding] = []
    for each in stored:
        fault = _fault(each.seal, key, each.fault)
        if fault is not None:
            rule, text = fault
            findings.append(error(rule, each.path.as_posix(), f"{text}; its segments stay"))
        elif each.seal is not None:
            valid.append(each.seal)
    seals = [seal for seal in valid if isinstance(seal, Seal)]
    seals.sort(key=lambda seal: (seal.gateway, seal.writer, seal.start, seal.sequence))
    sealed, forked = _segments_of(seals, day)
    return SealedDay(
        files=files,
        sealed=sealed,
        merges=tuple(seal for seal in valid if isinstance(seal, MergeSeal)),
        findings=(*findings, *forked),
        generations=frozenset(
            generation_of(each.path)
            for each in stored
            if each.path.parent == seal_folder(Path(), day)
        ),
    )


def _stored_seals(storage: Storage, day: date, files: Iterable[str]) -> list[StoredSeal]:
    """Read the seals of `day` and its neighbours, and those of its segments on other dates."""
    near = {day + timedelta(days=days) for days in _NEIGHBOURS if date.min < day < date.max}
    known = seal_days(storage)
    found = [seal for each in known if each in near for seal in read_seals(storage, each)]
    names = {each.path.name for each in found}
    stems = {Path(path).stem.rpartition("-")[0] for path in files}
    wanted = {f"{stem}.json" for stem in stems} - names
    for folder in (seal_folder(Path(), other) for other in known if wanted and other not in near):
        distant = wanted.intersection(storage.names(folder))
        found += [read_seal(storage, folder / name) for name in sorted(distant)]
    return found


def _matters(each: StoredSeal, day: date) -> bool:
    """Return whether a seal names segments of `day`, or may do so."""
    if each.seal is None:
        return parse_day(each.path.parent.name) in {day, day + timedelta(days=1)}
    folder = f"{day_folder(Path(), day)}/"
    return any(entry.path.startswith(folder) for entry in each.seal.segments)


def _fault(seal: AnySeal | None, key: bytes | None, fault: str) -> tuple[str, str] | None:
    """Return rule and text when a seal proves nothing."""
    if seal is None:
        return "forged-seal", fault
    if seal.keyed and key is None:
        raise ArchiveError("the seals of this archive are keyed; give the key with --seal-key")
    if not has_valid_mac(seal, key):
        return "forged-seal", "its mac is wrong"
    if key is not None and not seal.keyed:
        return "unsigned-seal", "it has no key"
    return None


def generation_of(path: Path) -> int:
    """Return the compaction in the name of a merge seal or a merged segment; 0 for others."""
    kind, _, rest = path.stem.partition("-")
    generation, *number = rest.split("-")
    is_merged = kind == "merged" and len(number) <= 1 and all(map(str.isdecimal, number))
    return int(generation) if is_merged and generation.isdecimal() else 0


def _segments_of(seals: Sequence[Seal], day: date) -> tuple[dict[str, MergeInput], list[Finding]]:
    """Return the segments of `day`; one that two journals claim is a finding."""
    folder = f"{day_folder(Path(), day)}/"
    sealed: dict[str, MergeInput] = {}
    twice: set[str] = set()
    for seal in seals:
        for entry in seal.segments:
            if not entry.path.startswith(folder):
                continue
            if entry.path in sealed:
                twice.add(entry.path)
            sealed[entry.path] = MergeInput(entry.path, seal.gateway, entry.sha256)
    text = f"two journals have a segment of this name; {_STAYS}"
    findings = [error("forked-chain", path, text) for path in sorted(twice)]
    return {path: each for path, each in sealed.items() if path not in twice}, findings


def plan_sealed(sealed: SealedDay) -> Plan:
    """Return the sealed segments of the date that are in no merged one.

    A segment that is absent, or that no seal names, is a finding.
    """
    sizes = sealed.files
    replaced = sealed.replaced
    merged = {entry.path for seal in sealed.merges for entry in seal.segments}
    findings = list(sealed.findings)
    hours: dict[int, Inputs] = {}
    for path, each in sealed.sealed.items():
        if path in replaced:
            continue
        if path in sizes:
            hours.setdefault(hour_of(path), []).append((each, sizes[path]))
        else:
            text = "its seal names it, and the file is absent"
            findings.append(error("missing-segment", path, text))
    findings += [
        error("unsealed-segment", path, f"no seal names it; {_STAYS}")
        for path in sorted(sizes.keys() - sealed.sealed.keys() - merged - replaced.keys())
        if not PurePosixPath(path).name.startswith(".")
    ]
    return Plan(hours, tuple(findings))


def hour_of(path: str) -> int:
    """Return the start of the hour of the folder of a segment."""
    day, hour, _ = PurePosixPath(path).parts
    start = day_start(date.fromisoformat(day.removeprefix("date=")))
    return start + int(hour.removeprefix("hour=")) * HOUR


def tasks_of(location: ArchiveLocation, plan: Plan, generation: int, size: int) -> list[MergeTask]:
    """Divide the inputs of each hour into merged segments of about `size` bytes."""
    tasks: list[MergeTask] = []
    for hour, inputs in sorted(plan.hours.items()):
        filled = 0
        numbered: list[tuple[int, MergeInput]] = []
        for each, own in inputs:
            numbered.append((filled // size, each))
            filled += own
        for _, members in groupby(numbered, key=lambda one: one[0]):
            name = f"merged-{generation}-{len(tasks):04}.parquet"
            path = (hour_folder(Path(), hour) / name).as_posix()
            tasks.append(MergeTask(location, path, hour, tuple(each for _, each in members)))
    return tasks
