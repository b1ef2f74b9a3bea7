"""The files of a date whose rows count, at any moment of a compaction; nothing is verified."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import NamedTuple

from gateway.archive.layout import MERGED, day_folder, seal_folder, staged_path
from gateway.archive.storage import Storage
from gateway.night.archive.seals.seal import MergeSeal
from gateway.night.archive.seals.store import date_of_segment, read_seal


class CurrentFile(NamedTuple):
    """A file by its name in the archive, the place where it lies now, and its bytes."""

    path: Path
    at: Path
    size: int


def current_files(storage: Storage, day: date) -> list[CurrentFile]:
    """Return the segments of `day` whose rows count, sorted by name.

    Segments that a compaction replaced do not count; merged ones do, from their seal on.

    Raises:
        OSError: the archive cannot be reached.
    """
    merges = merge_seals(storage, day)
    replaced = {Path(each.path) for seal in merges for each in seal.replaces}
    found = {
        path: CurrentFile(path, path, size)
        for path, size in storage.files(day_folder(Path(), day))
        if path not in replaced and date_of_segment(path.as_posix())
    }
    staging = dict(storage.files(staged_path(day_folder(Path(), day))))
    for entry in (entry for seal in merges for entry in seal.segments):
        path = Path(entry.path)
        staged = staged_path(path)
        if path not in found and staged in staging:
            found[path] = CurrentFile(path, staged, staging[staged])
    return [found[path] for path in sorted(found)]


def merge_seals(storage: Storage, day: date) -> list[MergeSeal]:
    """Return the readable merge seals of `day`; no `mac` is checked."""
    folder = seal_folder(day)
    merged = [name for name in storage.names(folder) if name.startswith(MERGED)]
    seals = (read_seal(storage, folder / name).seal for name in merged)
    return [seal for seal in seals if isinstance(seal, MergeSeal)]
