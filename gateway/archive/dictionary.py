"""The whole names behind shortened ones, in a file that outlives the process.

    ARCHIVE/_names/<gateway>.jsonl      one object a name: digest and levels

Names are few and a name is written before it is used, so each is made durable by itself.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gateway.archive.layout import safe_name
from gateway.errors import ArchiveError

FOLDER = "_names"


class NameFile:
    """The file of one gateway; mutable, it keeps the file open."""

    def __init__(self, root: Path, gateway: str) -> None:
        """Make the file when it is absent.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        folder = root / FOLDER
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
        line = json.dumps({"digest": digest, "levels": levels}) + "\n"
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
    for path in sorted((root / FOLDER).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                entry = json.loads(line)
                names[str(entry["digest"])] = tuple(map(str, entry["levels"]))
            except (ValueError, KeyError, TypeError):
                continue
    return names
