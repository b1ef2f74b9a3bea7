"""A gateway's file of the whole names behind shortened ones.

    ARCHIVE/_names/<gateway>.jsonl      an object for each name: digest, levels, time (microseconds)

A name is durable before it is used, so each is synced by itself.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from gateway.archive.durable import make_folders, open_private, sync_folder
from gateway.archive.layout import NAMES, safe_name
from gateway.clock import now
from gateway.errors import ArchiveError


class NameFile:
    """The open name file of one gateway.

    Mutable: owned by the name store that writes it.
    """

    def __init__(self, root: Path, gateway: str) -> None:
        """Open the file, and create it when it is absent.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        folder = root / NAMES
        try:
            make_folders(folder)
            self._file = open(folder / f"{safe_name(gateway)}.jsonl", "ab", opener=open_private)  # noqa: SIM115  # `Path.open` has no opener
            self._file.write(b"\n")  # ends a line that a crash cut short
            sync_folder(folder)
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be written: {error.strerror}") from error

    @property
    def name(self) -> str:
        return Path(self._file.name).name

    def write(self, digest: str, levels: tuple[str, ...]) -> int:
        """Append one name; it is durable when this returns. Return the size of the file.

        Raises:
            ArchiveError: the file cannot be written.
        """
        entry = {"digest": digest, "levels": levels, "time": now()}
        line = json.dumps(entry) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
            os.fdatasync(self._file.fileno())
            return self._file.tell()
        except OSError as error:
            raise ArchiveError(f"{self._file.name}: cannot be written: {error.strerror}") from error

    def close(self) -> None:
        with suppress(OSError):  # a name that could not be written was refused
            self._file.close()
