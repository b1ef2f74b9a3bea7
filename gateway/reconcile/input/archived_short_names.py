"""The whole names behind short ones, from the name files of an archive."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from gateway.archive.layout import NAMES
from gateway.archive.storage import Storage
from gateway.reconcile.maintenance.short_names import lines


class ArchivedShortNames:
    """A dictionary of short names that reads the name files of all gateways.

    Mutable: reads them at the first short name.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Do nothing: the gateway stored the name when it used it."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None.

        Raises:
            OSError: the archive cannot be read.
        """
        return self._names.get(digest)

    def commit(self) -> None:
        """Do nothing: the gateway stored every name."""

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        files = [Path(NAMES) / name for name in self._storage.names(Path(NAMES))]
        return {
            line["digest"]: tuple(line["levels"])
            for path in files
            if path.suffix == ".jsonl"
            for line in lines(path.name, self._storage.read(path) or b"")
            if "digest" in line
        }
