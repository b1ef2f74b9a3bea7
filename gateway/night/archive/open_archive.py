"""An archive that a command opened: where it is, its files, and the key of its statements.

A command opens it once and hands it down. Executors have its location, and open it themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

from gateway.archive.location import ArchiveLocation, absolute_location
from gateway.archive.storage import Storage, open_storage
from gateway.night.archive.seals.evidence import ReadEvidence, read_evidence

_MAX_SEALS: Final = 20_000  # in memory, of a few kilobytes


@dataclass(frozen=True, slots=True)
class OpenArchive:
    """An archive with its storage; the `key` is that of its seals, where they have one.

    `name` is the folder or the URL as a user wrote it. `read_seal` reads the seal at a path, and
    judges it by the key.
    """

    name: str
    location: ArchiveLocation
    storage: Storage
    key: bytes | None
    read_seal: ReadEvidence

    def reading_once(self) -> OpenArchive:
        """Return the archive for one night: each seal is read and judged once."""
        return replace(self, read_seal=lru_cache(_MAX_SEALS)(self.read_seal))


def open_archive(archive: Path | str, key: bytes | None = None) -> OpenArchive:
    """Open the archive in a folder or at a URL; a remote one connects at its first use.

    Raises:
        ArchiveError: the URL is malformed, or has an unknown option.
        OSError: the file system of the URL has no client on this machine.
    """
    return replace(opened_at(absolute_location(archive), key), name=str(archive))


def opened_at(location: ArchiveLocation, key: bytes | None = None) -> OpenArchive:
    """Open the archive at a location, which is its name, as `open_archive` does."""
    storage = open_storage(location)
    return OpenArchive(str(location), location, storage, key, partial(read_evidence, storage, key))
