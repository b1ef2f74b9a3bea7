"""A gateway's file of the whole names behind shortened ones.

    ARCHIVE/_names/<gateway>.jsonl      an object for each name: digest, levels, time (microseconds)

A name is durable before it is used: the names of a batch are synced together.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
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
            path = folder / f"{safe_name(gateway)}.jsonl"
            self._file = open(path, "ab", buffering=0, opener=open_private)  # noqa: SIM115  # `Path.open` has no opener
            sync_folder(folder)
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be written: {error.strerror}") from error

    @property
    def name(self) -> str:
        return Path(self._file.name).name

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    def write(self, names: Mapping[str, tuple[str, ...]]) -> None:
        """Append the levels of each digest, durable on return.

        Raises:
            ArchiveError: the file cannot be written; a part may be, and another call is allowed.
        """
        time = now()
        entries = (
            json.dumps({"digest": digest, "levels": levels, "time": time})
            for digest, levels in names.items()
        )
        # The first byte ends a line that a crash or a full disk cut short.
        data = memoryview("\n".join(["", *entries, ""]).encode())
        try:
            while data:
                data = data[self._file.write(data) :]
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise ArchiveError(f"{self._file.name}: cannot be written: {error.strerror}") from error

    def close(self) -> None:
        with suppress(OSError):  # a name that could not be written was refused
            self._file.close()
