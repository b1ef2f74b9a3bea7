"""The connections of a gateway to the SQLite file of its spool, and its locks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from gateway.file_lock import FileLock
from tests.simulation import stand_ins
from tests.simulation.disk import Disk, check_alive, running_disk

_FULL: Final = 2  # `PRAGMA synchronous`: a commit is on disk when it returns
_UNSYNCED_COMMITS: Final = 10  # that a power cut loses at most, where they are not synchronised
_PAGE: Final = 512  # bytes; small, so that a full disk is exact


class SimulatedConnection:
    """A connection to a real database file whose commits take time and may fail."""

    def __init__(self, disk: Disk, real: sqlite3.Connection) -> None:
        self.disk, self.real = disk, real
        self._open = True
        self.limit_pages()

    def limit_pages(self) -> None:
        limit = self.disk.spool_pages or 1 << 30
        self.real.execute(f"PRAGMA max_page_count = {limit}")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        check_alive()
        if not statement.startswith("COMMIT"):
            try:
                return self.real.execute(statement, values)
            except sqlite3.OperationalError as error:
                self.disk.log("disk", f"{self.disk.folder.name}: spool: {error}")
                raise
        seconds = self.disk.delay()
        if seconds:
            stand_ins.sleep(seconds)
        check_alive()
        unsynced = self.real.execute("PRAGMA synchronous").fetchone()[0] < _FULL
        if unsynced and self.disk.commits % _UNSYNCED_COMMITS == 0:
            self.disk.synced_spool = self.real.serialize()
        cursor = self.real.execute(statement, values)
        self.disk.commits += 1
        self.disk.log("commit", f"{self.disk.folder.name}: spool commit")
        stand_ins.scheduler().point()
        return cursor

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:  # noqa: ANN401
        check_alive()
        return self.real.executemany(statement, values)

    def executescript(self, script: str) -> sqlite3.Cursor:
        check_alive()
        return self.real.executescript(script)

    def close(self) -> None:
        if self in self.disk.connections:
            self.disk.connections.remove(self)
        self.real.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.real, name)


def _connect(path: Path, **options: Any) -> SimulatedConnection:  # noqa: ANN401
    check_alive()
    disk = running_disk()
    options.pop("timeout", None)
    real = sqlite3.connect(path, timeout=0, **options)
    real.execute(f"PRAGMA page_size = {_PAGE}")
    connection = SimulatedConnection(disk, real)
    disk.connections.append(connection)
    return connection


SQLITE: Final = SimpleNamespace(
    **{name: value for name, value in vars(sqlite3).items() if not name.startswith("__")}
    | {"connect": _connect}
)


class SimulatedFileLock(FileLock):
    """A lock that the end of its simulated process releases."""

    def __init__(self, path: Path, conflict: str) -> None:
        super().__init__(path, conflict)
        running_disk().locks.append(self)
