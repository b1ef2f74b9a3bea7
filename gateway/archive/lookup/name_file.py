"""The whole names behind shortened ones, in a file that outlives the process.

    ARCHIVE/_names/<gateway>.jsonl      one object a name: digest, levels and when, in microseconds

Names are few and a name is written before it is used, so each is made durable by itself.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gateway.archive.layout import NAMES, safe_name
from gateway.clock import now
from gateway.errors import ArchiveError


class NameFile:
    """The file of one gateway; mutable, it keeps the file open."""

    def __init__(self, root: Path, gateway: str) -> None:
        """Make the file when it is absent.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        folder = root / NAMES
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / f"{safe_name(gateway)}.jsonl").open("ab")
            self._file.write(b"\n")  # ends a line that a crash cut short
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be written: {error.strerror}") from error

    def write(self, digest: str, levels: tuple[str, ...]) -> None:
        """Keep one name; it is on disk when this returns.

        Raises:
            ArchiveError: it could not be written.
        """
        entry = {"digest": digest, "levels": levels, "time": now()}
        line = json.dumps(entry) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise ArchiveError(f"{self._file.name}: cannot be written: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()


def read_names(root: Path) -> dict[str, tuple[str, ...]]:
    """Every name that any gateway of the archive has shortened, by digest.

    A line that a crash cut short is left out: its name was never used.
    """
    names: dict[str, tuple[str, ...]] = {}
    for path in sorted((root / NAMES).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                entry = json.loads(line)
                names[str(entry["digest"])] = tuple(map(str, entry["levels"]))
            except (ValueError, KeyError, TypeError):
                continue
    return names
