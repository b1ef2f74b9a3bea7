"""Compaction of one date: plan, merge, compare, commit; every row counts once at any moment.

The commit is a merge seal; then the merged segments get their names. From the seal on the merged
segments count, in the staging folder or under their names, and the replaced ones do not. Every step
can be repeated: the next compaction finishes an interrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from gateway.archive.findings import Finding, error
from gateway.archive.layout import COMPACTING, day_folder, staged_path
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import Storage, open_storage
from gateway.archive.threads import in_threads
from gateway.errors import ArchiveError
from gateway.night.archive.compaction.merge import MergeResult, MergeTask
from gateway.night.archive.compaction.plan import generation_of, plan_day, tasks_of
from gateway.night.archive.seals.seal import MergeSeal
from gateway.night.archive.seals.store import HashFiles, digests_of, write_seal
from gateway.terminal.units import counted

_FOLDERS: Final = (Path(), Path(COMPACTING))


def finish(storage: Storage, seal: MergeSeal, hash_files: HashFiles | None = None) -> list[Finding]:
    """Give the merged segments of a committed compaction their names, and remove the replaced ones.

    With `hash_files`, which hashes them, a replaced segment is removed only when its content is
    still that of the seal; without it they were compared just now. When a merged segment is absent,
    no replaced segment is removed.

    Raises:
        OSError: the archive cannot be reached, or a folder is behind a symbolic link.
    """
    day = date.fromisoformat(seal.date)
    present = {
        path: size for folder in _FOLDERS for path, size in storage.files(day_folder(folder, day))
    }
    merged = {Path(entry.path): staged_path(Path(entry.path)) for entry in seal.segments}
    if lost := [path for path, staged in merged.items() if not {path, staged} & present.keys()]:
        text = "is absent; the segments that it replaces stay"
        return [error("missing-segment", path.as_posix(), text) for path in lost]
    for path, staged in merged.items():
        if staged in present:
            storage.move(staged, path)
    replaced = {Path(each.path): each.sha256 for each in seal.replaces}
    left = {path: present[path] for path in replaced if path in present}
    digests = hash_files(left) if hash_files is not None and left else {}
    changed = [path for path in left if path in digests and digests[path].sha256 != replaced[path]]
    in_threads(storage.delete, left.keys() - changed)
    text = "differs from the segment that was compacted; it stays, and does not count"
    return [error("changed-segment", path.as_posix(), text) for path in changed]


def remove_uncommitted(storage: Storage, day: date, committed: Collection[int]) -> None:
    """Remove the files of compactions of `day` that have no seal, and an empty staging folder."""
    staging = day_folder(Path(COMPACTING), day)
    for path, _ in storage.files(staging):
        if generation_of(path) not in {0, *committed}:
            storage.delete(path)
    if not storage.files(staging):
        storage.remove(staging)


RunTasks: TypeAlias = Callable[[Sequence[MergeTask]], list[MergeResult]]
ShowStep: TypeAlias = Callable[[str], object]


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
    plan = plan_day(storage, day, key)
    show_step("finishing an interrupted compaction")
    hashed = hash_files or partial(digests_of, storage)
    findings = [each for seal in plan.merges for each in finish(storage, seal, hashed)]
    remove_uncommitted(storage, day, plan.generations)
    findings += plan.findings
    tasks = tasks_of(location, plan, size)
    results: list[MergeResult] = []
    if tasks:
        show_step(f"merging {counted(sum(len(task.inputs) for task in tasks), 'segment')}")
        results = run_tasks(tasks)
        findings += [each for result in results for each in result.findings]
    show_step("committing")
    replaces = tuple(each for result in results for each in result.replaces)
    entries = tuple(result.entry for result in results if result.entry is not None)
    if replaces:
        seal = MergeSeal(day.isoformat(), plan.next_generation, replaces, entries)
        write_seal(storage, seal, key)
        findings += finish(storage, seal)
        remove_uncommitted(storage, day, {*plan.generations, seal.generation})
    rows, merged = sum(each.rows for each in entries), tuple(each.path for each in entries)
    return CompactionReport(len(replaces), rows, merged, tuple(findings))


def _check_folders(storage: Storage, day: date) -> None:
    folder = day_folder(Path(), day)
    for each in (folder, *(folder / name for name in storage.names(folder))):
        if not storage.owns(each):
            raise ArchiveError(f"{each}: is a symbolic link; move the files themselves")
