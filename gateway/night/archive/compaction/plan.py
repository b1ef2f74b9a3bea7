"""The plan of a compaction: the sealed segments of a date, and the merged ones they become."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate, groupby
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from gateway.archive.findings import Finding, error
from gateway.archive.layout import (
    MERGED,
    JournalName,
    day_folder,
    journal_of,
    parse_day,
    parse_journal_name,
    seal_folder,
)
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.merge import STAYS, MergeInput, MergeTask
from gateway.night.archive.seals.evidence import Evidence
from gateway.night.archive.seals.seal import MergeSeal
from gateway.night.archive.verification.contents import Claim, claims_of
from gateway.night.archive.verification.seal_evidence import EvidenceReader

Inputs: TypeAlias = list[tuple[MergeInput, int]]  # with their bytes

_GENERATION: Final = re.compile(rf"{MERGED}(\d+)(?:-\d+)?")
_NEAR: Final = timedelta(days=1)  # a journal may be closed on the day after its rows


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The segments of a date to merge, by its valid seals, and findings about files that stay.

    `hours` are the segments to merge by folder, in the order of the journals: those of journals
    that are in no merged one. `merges` are the compactions of the date; `generations` also those
    with a damaged seal.
    """

    hours: Mapping[Path, Inputs]
    merges: tuple[MergeSeal, ...]
    findings: tuple[Finding, ...]
    generations: frozenset[int]

    @property
    def next_generation(self) -> int:
        return 1 + max(self.generations, default=0)


def plan_day(storage: Storage, day: date, key: bytes | None) -> DayPlan:
    """Read the seals about `day`, check each with `key`, and plan the merge of its segments.

    A segment that is absent, or that no seal names, is a finding.

    Raises:
        ArchiveError: a seal is keyed and there is no key.
        OSError: the archive cannot be reached.
    """
    folder = day_folder(Path(), day)
    files = {path.as_posix(): size for path, size in storage.files(folder)}  # before their seals
    evidence = [each for each in _evidence(storage, day, files, key) if _matters(each, day)]
    if key is None and any(each.seal and each.seal.keyed for each in evidence):
        raise ArchiveError("the seals of this archive are keyed; give the key with --seal-key")
    valid = [each for each in evidence if each.finding is None]
    claims = claims_of(valid, day)
    findings = [*(each.finding for each in evidence if each.finding), *claims.findings]
    forked = {each.place for each in claims.findings if each.rule == "forked-chain"}
    hours: dict[Path, Inputs] = {}
    for path, claim in sorted(claims.present.items(), key=_order):
        if not parse_journal_name(claim.source) or path in forked:
            continue
        if path in files:
            own = MergeInput(path, claim.gateway, claim.entry.sha256)
            hours.setdefault(Path(path).parent, []).append((own, files[path]))
        else:
            text = "its seal names it, and the file is absent"
            findings.append(error("missing-segment", path, text))
    findings += [
        error("unsealed-segment", path, f"no seal names it; {STAYS}")
        for path in sorted(files.keys() - claims.present.keys() - claims.replaced.keys())
        if not PurePosixPath(path).name.startswith(".")
    ]
    sealed = [each.path for each in evidence if each.path.parent == seal_folder(day)]
    return DayPlan(
        hours,
        tuple(each.seal for each in valid if isinstance(each.seal, MergeSeal)),
        tuple(findings),
        frozenset(map(generation_of, sealed)),
    )


def _evidence(
    storage: Storage, day: date, files: Iterable[str], key: bytes | None
) -> list[Evidence]:
    """Read the seals of `day` and its neighbours, and those of its segments on other dates."""
    reader = EvidenceReader(storage, key)
    near = [each for each in reader.days if abs(each - day) <= _NEAR]
    found = [each for other in near for each in reader.of_day(other)]
    stems = {journal_of(Path(path)) for path in files}
    stems -= {each.path.stem for each in found}
    return found + reader.of_names(stems, [each for each in reader.days if each not in near])


def _matters(each: Evidence, day: date) -> bool:
    """Return whether a seal names segments of `day`, or may do so."""
    if each.seal is None:
        return parse_day(each.path.parent.name) in {day, day + timedelta(days=1)}
    folder = f"{day_folder(Path(), day)}/"
    return any(entry.path.startswith(folder) for entry in each.seal.segments)


def _order(sealed: tuple[str, Claim]) -> tuple[str, JournalName | tuple[()], str]:
    """Sort by gateway, and by the place of the journal in its chain."""
    path, claim = sealed
    return claim.gateway, parse_journal_name(claim.source) or (), path


def generation_of(path: Path) -> int:
    """Return the compaction in the name of a merge seal or a merged segment; 0 for others."""
    match = _GENERATION.fullmatch(path.stem)
    return int(match[1]) if match else 0


def tasks_of(location: ArchiveLocation, plan: DayPlan, size: int) -> list[MergeTask]:
    """Divide the inputs of each hour into merged segments of about `size` bytes."""
    tasks: list[MergeTask] = []
    for folder, inputs in sorted(plan.hours.items()):
        filled = accumulate((own for _, own in inputs), initial=0)  # before each input
        numbered = zip((before // size for before in filled), inputs, strict=False)
        for _, members in groupby(numbered, key=lambda one: one[0]):
            name = f"{MERGED}{plan.next_generation}-{len(tasks):04}.parquet"
            merged = tuple(each for _, (each, _) in members)
            tasks.append(MergeTask(location, (folder / name).as_posix(), merged))
    return tasks
