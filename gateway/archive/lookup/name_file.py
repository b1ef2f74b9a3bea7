"""A gateway's file of the whole names behind shortened ones.

    ARCHIVE/_names/<gateway>.jsonl      an object for each name: digest, levels, time (microseconds)

A name is durable before it is used. Names are few, so each is synced by itself.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from gateway.archive.layout import NAMES, safe_name
from gateway.clock import now
from gateway.errors import ArchiveError


class NameFile:
    """The open name file of one gateway.

    Mutable: owned by the name dictionary that writes it.
    """

    def __init__(self, root: Path, gateway: str) -> None:
        """Open the file, and create it when it is absent.

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
        """Append one name; it is durable when this returns.

        Raises:
            ArchiveError: the file cannot be written.
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
    """Return the levels of every name that a gateway of the archive has shortened, by digest.

    A line cut by a crash is ignored: its name was never used.
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
