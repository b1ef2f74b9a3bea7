"""Seals in the storage of an archive: written after their files, and read back by date."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from gateway.archive.layout import (
    SEALS,
    JournalName,
    day_of,
    days_in,
    parse_day,
    parse_journal_name,
    seal_folder,
)
from gateway.archive.signed_json import Previous, StoredDigest
from gateway.archive.storage import Storage
from gateway.archive.threads import in_threads
from gateway.night.archive.seals.seal import AnySeal, MergeSeal, from_json

# Hash and size of those files that are present, of files given with their expected bytes.
HashFiles: TypeAlias = Callable[[Mapping[Path, int]], Mapping[Path, StoredDigest]]

_CHUNK: Final = 1 << 20  # bytes
_SEGMENT = re.compile(
    r"date=(\d{4}-\d\d-\d\d)/hour=(?:[01]\d|2[0-3])/[A-Za-z0-9~-][A-Za-z0-9_.~@-]*\.parquet",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class StoredSeal:
    """A file in the folder of the seals; without a `seal`, the `fault` says what it is."""

    path: Path
    seal: AnySeal | None
    fault: str = ""


def seal_path(seal: AnySeal) -> Path:
    """Return the path of a seal: by the date of a compaction, or of the end of a journal."""
    if isinstance(seal, MergeSeal):
        return seal_folder(date.fromisoformat(seal.date)) / f"{seal.journal}.json"
    return link_path(seal.link)


def link_path(link: Previous) -> Path:
    """Return the path of the seal of the journal that `link` names."""
    return seal_folder(day_of(link.closed)) / f"{link.journal}.json"


def write_seal(storage: Storage, seal: AnySeal, key: bytes | None = None) -> AnySeal:
    """Sign and write `seal`, whose files are written; return the signed seal.

    Raises:
        OSError: the storage cannot be written.
    """
    signed = seal.signed(key)
    storage.put(seal_path(signed), signed.to_json())
    return signed


def seal_days(storage: Storage) -> list[date]:
    """Return the dates with seals, oldest first."""
    return days_in(storage.names(Path(SEALS)))


def kept_days(storage: Storage, sealed: Iterable[date]) -> set[date]:
    """Return the dates that are there: those with rows, and those `sealed`.

    A date that was removed has neither; the oldest of these is where the archive begins.

    Raises:
        OSError: the storage cannot be read.
    """
    return {*days_in(storage.names(Path())), *sealed}


def sealed_journals(storage: Storage, day: date) -> Iterator[tuple[Path, JournalName]]:
    """Yield the path of the seal of each journal that was closed on `day`, with the journal's name.

    Raises:
        OSError: the storage cannot be read.
    """
    folder = seal_folder(day)
    for name in storage.names(folder):
        if (journal := parse_journal_name(Path(name).stem)) is not None:
            yield folder / name, journal


def read_seals(storage: Storage, day: date) -> list[StoredSeal]:
    """Read all seals of `day`, sorted by name; no `mac` is checked.

    Raises:
        OSError: the storage cannot be read.
    """
    return in_threads(partial(read_seal, storage), seal_files(storage, day))


def seal_files(storage: Storage, day: date) -> list[Path]:
    """Return the paths of the seals of `day`, sorted by name.

    Raises:
        OSError: the storage cannot be read.
    """
    folder = seal_folder(day)
    return [folder / name for name in storage.names(folder) if not name.startswith(".")]


def read_seal(storage: Storage, path: Path) -> StoredSeal:
    """Read the seal at `path`; its place and the paths in it are checked, and no `mac`.

    Raises:
        OSError: the storage cannot be read.
    """
    content = storage.read(path)
    if content is None:
        return StoredSeal(path, None, "was removed while it was read")
    try:
        seal = from_json(content)
        _check_paths(seal, path)
    except ValueError as error:
        return StoredSeal(path, None, str(error))
    return StoredSeal(path, seal)


def date_of_segment(path: str) -> str | None:
    """Return the date in the path of a segment; None when no segment has this path."""
    match = _SEGMENT.fullmatch(path)
    return match[1] if match else None


def digest_of(storage: Storage, path: Path) -> StoredDigest | None:
    """Return the hash and the size of the file at `path`; None when it is absent.

    Raises:
        OSError: the storage cannot be read.
    """
    found, size = hashlib.sha256(), 0
    with suppress(FileNotFoundError), storage.open(path) as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
            size += len(chunk)
        return StoredDigest(found.hexdigest(), size)
    return None


def digests_of(storage: Storage, paths: Iterable[Path]) -> dict[Path, StoredDigest]:
    """Return the hashes and the sizes of those files that are present, computed in threads.

    Raises:
        OSError: the storage cannot be read.
    """
    listed = list(paths)
    found = in_threads(partial(digest_of, storage), listed)
    return {path: each for path, each in zip(listed, found, strict=True) if each is not None}


def _check_paths(seal: AnySeal, path: Path) -> None:
    """Check that `seal` lies at `path`, and that it names segments and no other files.

    Raises:
        ValueError: it does not; the text is a predicate.
    """
    named = [entry.path for entry in seal.segments]
    if isinstance(seal, MergeSeal):
        named += [each.path for each in seal.replaces]
    for each in named:
        found = date_of_segment(each)
        if found is None or (isinstance(seal, MergeSeal) and found != seal.date):
            raise ValueError(f"names {each!r}, which is no segment of it")
    for each in (day for entry in seal.segments for day in entry.concerns):
        if parse_day(f"date={each}") is None:
            raise ValueError(f"concerns {each!r}, which is no date")
    if path != seal_path(seal):
        raise ValueError(f"is the seal of {seal_path(seal).as_posix()}")
