"""The whole names behind short ones, from the name files of an archive."""

from __future__ import annotations

from collections.abc import Iterator
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
        self._names: dict[str, tuple[str, ...]] | None = None

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Do nothing: the gateway stored the name when it used it."""

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None.

        Raises:
            OSError: the archive cannot be read.
        """
        if self._names is None:
            self._names = dict(self._read())
        return self._names.get(digest)

    def commit(self) -> None:
        """Do nothing: the gateway stored every name."""

    def _read(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        for name in self._storage.names(Path(NAMES)):
            if name.endswith(".jsonl"):
                for line in lines(name, self._storage.read(Path(NAMES) / name) or b""):
                    if "digest" in line:
                        yield line["digest"], tuple(line["levels"])
