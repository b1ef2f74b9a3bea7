"""The commit of a compaction: a merge seal, then the merged segments get their names.

From the seal on the merged segments count, in the staging folder or under their names, and the
replaced ones do not. Every step can be repeated: the next compaction finishes an interrupted one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.compaction.merge import MergeResult
from gateway.archive.compaction.plan import generation_of
from gateway.archive.findings import Finding, error
from gateway.archive.layout import (
    COMPACTING,
    day_folder,
    staged_path,
)
from gateway.archive.seals.seal import MergeSeal
from gateway.archive.seals.store import THREADS, HashFiles, write_seal
from gateway.archive.storage import Storage

_FOLDERS: Final = (Path(), Path(COMPACTING))


def write_merge_seal(
    storage: Storage, day: date, generation: int, results: Sequence[MergeResult], key: bytes | None
) -> MergeSeal | None:
    """Commit `results`; return None when nothing was merged."""
    replaces = {each.path: each for result in results for each in result.replaces}
    entries = tuple(result.entry for result in results if result.entry is not None)
    if not replaces:
        return None
    seal = MergeSeal(day.isoformat(), generation, tuple(replaces.values()), entries)
    write_seal(storage, seal, key)
    return seal


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
    merged = {Path(entry.path): staged_path(Path(), Path(entry.path)) for entry in seal.segments}
    if lost := [path for path, staged in merged.items() if not {path, staged} & present.keys()]:
        text = "is absent; the segments that it replaces stay"
        return [error("missing-segment", path.as_posix(), text) for path in lost]
    for path, staged in merged.items():
        if staged in present:
            storage.move(staged, path)
    findings: list[Finding] = []
    going: list[Path] = []
    replaced = {Path(each.path): each.sha256 for each in seal.replaces}
    left = {path: present[path] for path in replaced if path in present}
    digests = hash_files(left) if hash_files is not None and left else {}
    for path in left:
        if path in digests and digests[path].sha256 != replaced[path]:
            text = "differs from the segment that was compacted; it stays, and does not count"
            findings.append(error("changed-segment", path.as_posix(), text))
        else:
            going.append(path)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(storage.delete, going))
    return findings


def remove_uncommitted(storage: Storage, day: date, committed: Collection[int]) -> None:
    """Remove the files of compactions of `day` that have no seal, and an empty staging folder."""
    staging = day_folder(Path(COMPACTING), day)
    for path, _ in storage.files(staging):
        if generation_of(path) not in {0, *committed}:
            storage.delete(path)
    if not storage.files(staging):
        storage.remove(staging)
