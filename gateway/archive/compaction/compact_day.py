"""Compaction of one date: plan, merge, compare, commit; every row counts once at any moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gateway.archive.compaction.commit import finish, remove_uncommitted, write_merge_seal
from gateway.archive.compaction.merge import MergeResult, MergeTask
from gateway.archive.compaction.plan import plan_sealed, read_sealed_day, tasks_of
from gateway.archive.findings import Finding
from gateway.archive.layout import day_folder
from gateway.archive.location import ArchiveLocation
from gateway.archive.seals.seal import MergeSeal
from gateway.archive.seals.store import HashFiles, digests_of
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ArchiveError

RunTasks: TypeAlias = Callable[[Sequence[MergeTask]], list[MergeResult]]
ShowStep: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """The number of compacted segments and rows, the merged segments, and findings."""

    segments: int = 0
    rows: int = 0
    merged: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def compact_day(  # noqa: PLR0913  # the archive, its key, and the means
    location: ArchiveLocation,
    day: date,
    run_tasks: RunTasks,
    show_step: ShowStep,
    *,
    key: bytes | None = None,
    size: int = 200 << 20,
    hash_files: HashFiles | None = None,
) -> CompactionReport:
    """Compact the sealed segments of `day` into merged ones of about `size` bytes of segments.

    A segment that is absent, unsealed, or different from its seal is a finding and stays. A second
    call finishes what an interrupted one began, and compacts segments that came since. `hash_files`
    hashes the segments that an interrupted one left, by default in threads of this process.

    Raises:
        ArchiveError: the seals are keyed and `key` is None, a folder is behind a symbolic link, or
            the merged rows differ from the others; the archive is unchanged.
        OSError: the archive cannot be reached.
    """
    storage = open_storage(location)
    _check_folders(storage, day)
    sealed = read_sealed_day(storage, day, key)
    show_step("finishing an interrupted compaction")
    hashed = hash_files or partial(digests_of, storage)
    findings = [each for seal in sealed.merges for each in finish(storage, seal, hashed)]
    remove_uncommitted(storage, day, sealed.generations)
    plan = plan_sealed(sealed)
    findings += plan.findings
    tasks = tasks_of(location, plan, sealed.next_generation, size)
    results: list[MergeResult] = []
    if tasks:
        show_step(f"merging {sum(len(task.inputs) for task in tasks)} segments")
        results = run_tasks(tasks)
        findings += [each for result in results for each in result.findings]
    show_step("committing")
    seal = write_merge_seal(storage, day, sealed.next_generation, results, key)
    if seal is not None:
        findings += finish(storage, seal)
        remove_uncommitted(storage, day, {*sealed.generations, seal.generation})
    return _report(seal, findings)


def _report(seal: MergeSeal | None, findings: Sequence[Finding]) -> CompactionReport:
    if seal is None:
        return CompactionReport(findings=tuple(findings))
    merged = tuple(entry.path for entry in seal.segments)
    rows = sum(entry.rows for entry in seal.segments)
    return CompactionReport(len(seal.replaces), rows, merged, tuple(findings))


def _check_folders(storage: Storage, day: date) -> None:
    folder = day_folder(Path(), day)
    for each in (folder, *(folder / name for name in storage.names(folder))):
        if not storage.owns(each):
            raise ArchiveError(f"{each}: is a symbolic link; move the files themselves")
