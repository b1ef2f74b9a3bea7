"""The connections of a gateway to the SQLite file of its spool, and its locks."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Self

from gateway.file_lock import FileLock
from tests.simulation import stand_ins
from tests.simulation.disk import Disk, check_alive, is_running, running_disk
from tests.simulation.scheduler import InjectedError
from tests.simulation.small_disk import DiskPath

_FULL: Final = 2  # `PRAGMA synchronous`: a commit is on disk when it returns
_UNSYNCED_COMMITS: Final = 10  # that a power cut loses at most, where they are not synchronised
_CHECKPOINT: Final = 16_384  # bytes of the log; a thousand pages as a rule
_PAGE: Final = 512  # bytes; small, so that a full disk is exact


class SimulatedConnection:
    """A connection to a real database file whose commits take time and may fail."""

    def __init__(self, disk: Disk, real: sqlite3.Connection) -> None:
        self.disk, self.real = disk, real
        self._open = True
        self._path = disk.spool / "spool.sqlite"
        self._log = disk.spool / "spool.sqlite-wal"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        check_alive()
        if not statement.startswith("COMMIT"):
            self._fail_at(statement)
            try:
                with self.disk.small.writing(self._grows(statement)):
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
        with self.disk.small.writing(self._log):
            cursor = self.real.execute(statement, values)
        if self._log.stat().st_size > _CHECKPOINT:  # SQLite does it within the commit
            with self.disk.small.writing(self._path), suppress(sqlite3.OperationalError):
                self.real.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self.disk.commits += 1
        self.disk.log("commit", f"{self.disk.folder.name}: spool commit")
        stand_ins.scheduler().point()
        return cursor

    def _fail_at(self, statement: str) -> None:
        if statement.startswith("BEGIN") and self.disk.spool_fails and is_running("spool"):
            self.disk.spool_fails -= 1
            raise InjectedError

    def _grows(self, statement: str) -> Path:
        """The file that a statement may enlarge."""
        in_log = "vacuum" in statement or not statement.startswith("PRAGMA")
        return self._log if in_log else self._path

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:  # noqa: ANN401
        check_alive()
        return self.real.executemany(statement, values)

    def executescript(self, script: str) -> sqlite3.Cursor:
        check_alive()
        with self.disk.small.writing(self._log):
            return self.real.executescript(script)

    def close(self) -> None:
        if self in self.disk.connections:
            self.disk.connections.remove(self)
        with self.disk.small.writing(self._path):
            self.real.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.real, name)


def _connect(path: Path, **options: Any) -> SimulatedConnection:  # noqa: ANN401
    check_alive()
    disk = running_disk()
    options.pop("timeout", None)
    real = sqlite3.connect(path, timeout=0, **options)
    real.execute(f"PRAGMA page_size = {_PAGE}")
    real.execute("PRAGMA wal_autocheckpoint = 0")
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


class _SpoolFile:
    """A file beside the database, in place of one that `open` returns."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        running_disk().small.check_writable()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def write(self, data: bytes) -> None:
        running_disk().small.write(self._path, data)


def open_file(path: Path, mode: str, *, opener: object) -> _SpoolFile:
    """In place of `open` in the module of the spool's database."""
    del mode, opener
    check_alive()
    return _SpoolFile(path)


class SpoolPath(DiskPath):
    """A path on the disk of the running process."""

    disk = staticmethod(lambda: running_disk().small)
