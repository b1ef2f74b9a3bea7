"""The simulated disk of one gateway: its spool in a real SQLite file, its archive in memory.

It survives the gateway's process. A kill rolls SQLite back to the last commit and tears the tail
of the journal; faults make it slow or full.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from greenlet import GreenletExit

from gateway.archive.journal.records import MAGIC, Damage, Rows, read_records
from gateway.file_lock import FileLock
from tests.simulation import stand_ins
from tests.simulation.scheduler import Process

_FULL: Final = 2  # `PRAGMA synchronous`: a commit is on disk when it returns
_UNSYNCED_COMMITS: Final = 10  # that a power cut loses at most, where they are not synchronised
_SYNC_INTERVAL: Final = 1.0  # seconds, with `sync: interval`
_PAGE: Final = 512  # bytes; small, so that a full disk is exact


@dataclass(slots=True)
class SimulatedJournalFile:
    """The bytes of one journal; `torn` are in the middle of a write."""

    name: str
    data: bytearray = field(default_factory=lambda: bytearray(MAGIC))
    torn: bytes = b""
    synced: int = 0  # bytes that a power cut leaves
    converted: bool = False

    def read_bytes(self) -> bytes:
        return bytes(self.data)


class Disk:
    """The files of one gateway, and their faults.

    Mutable: faults set the fields. `delay` gives the seconds of one flush.
    """

    def __init__(self, folder: Path, log: Callable[[str, str], None]) -> None:
        self.folder = folder
        self.log = log
        self.delay: Callable[[], float] = lambda: 0.0
        self.archive_full = False
        self.spool_pages: int | None = None  # the most pages of the spool's file
        self.journals: list[SimulatedJournalFile] = []
        self.connections: list[SimulatedConnection] = []
        self.locks: list[FileLock] = []
        self.process: Process | None = None
        self.commits = 0
        self.synced_spool: bytes | None = None  # None while every commit is synchronised

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def crash(self, random: Callable[[], float]) -> None:
        """Leave what a killed process leaves."""
        for connection in self.connections:
            connection.real.close()
        for lock in self.locks:
            lock.close()
        self.connections.clear()
        self.locks.clear()
        for journal in self.journals:
            if journal.torn:
                kept = int(random() * (len(journal.torn) + 1))
                if kept < len(journal.torn):
                    self.log("disk", f"{self.folder.name}: the journal's tail is torn")
                journal.data += journal.torn[:kept]
                journal.torn = b""

    def lose_power(self, random: Callable[[], float]) -> None:
        """Lose what was written and not synchronised, or a part of it."""
        for journal in self.journals:
            lost = int(random() * (len(journal.data) - journal.synced + 1))
            if lost and not journal.converted:
                self.log("disk", f"{self.folder.name}: {lost} bytes of rows were in memory only")
                del journal.data[len(journal.data) - lost :]
        if self.synced_spool is not None:
            self.log("disk", f"{self.folder.name}: commits of the spool were in memory only")
            for path in self.spool.glob("spool.sqlite*"):
                path.unlink()
            (self.spool / "spool.sqlite").write_bytes(self.synced_spool)

    def set_spool_full(self, *, full: bool) -> None:
        """Let the spool's file keep its size, or grow again."""
        self.spool_pages = None
        if full:
            self.spool_pages = max(self._pages(), 1)
        for connection in self.connections:
            connection.limit_pages()

    def _pages(self) -> int:
        path = self.spool / "spool.sqlite"
        if not path.exists():
            return 0
        with sqlite3.connect(path) as reader:
            found = int(reader.execute("PRAGMA page_count").fetchone()[0])
        reader.close()
        return found

    def stored(self, table: str) -> list[tuple[str, bytes]]:
        """Endpoint and body of every committed row of `table`, in order."""
        path = self.spool / "spool.sqlite"
        if not path.exists():
            return []
        reader = sqlite3.connect(path)
        try:
            query = f"SELECT endpoint, body FROM {table} ORDER BY number"  # noqa: S608  # a constant
            return [(str(endpoint), bytes(body)) for endpoint, body in reader.execute(query)]
        except sqlite3.OperationalError:
            return []
        finally:
            reader.close()

    def waiting(self, endpoint: str) -> int:
        """The number of messages in the spool of a target."""
        path = self.spool / "spool.sqlite"
        if not path.exists():
            return 0
        with sqlite3.connect(path) as reader:
            query = "SELECT COALESCE(SUM(messages), 0) FROM parcels WHERE endpoint = ?"
            found = int(reader.execute(query, [endpoint]).fetchone()[0])
        reader.close()
        return found

    def rows(self) -> Iterator[Rows]:
        """All durable rows of all runs, read by the product's reader."""
        for journal in self.journals:
            for found in read_records(bytes(journal.data)):
                if not isinstance(found, Damage):
                    yield from found

    def has_hash(self, digest: bytes) -> bool:
        """Whether a durable row names the payload with this hash."""
        return any(digest in journal.data for journal in self.journals)


def _disk() -> Disk:
    """The disk of the running process."""
    task = stand_ins.scheduler().current
    assert task is not None
    found: Disk = task.process.disk
    return found


def _check_alive() -> None:
    task = stand_ins.scheduler().current
    if task is not None and task.process.dead:
        raise GreenletExit


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
        _check_alive()
        if not statement.startswith("COMMIT"):
            try:
                return self.real.execute(statement, values)
            except sqlite3.OperationalError as error:
                self.disk.log("disk", f"{self.disk.folder.name}: spool: {error}")
                raise
        seconds = self.disk.delay()
        if seconds:
            stand_ins.sleep(seconds)
        _check_alive()
        unsynced = self.real.execute("PRAGMA synchronous").fetchone()[0] < _FULL
        if unsynced and self.disk.commits % _UNSYNCED_COMMITS == 0:
            self.disk.synced_spool = self.real.serialize()
        cursor = self.real.execute(statement, values)
        self.disk.commits += 1
        self.disk.log("commit", f"{self.disk.folder.name}: spool commit")
        stand_ins.scheduler().point()
        return cursor

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:  # noqa: ANN401
        _check_alive()
        return self.real.executemany(statement, values)

    def executescript(self, script: str) -> sqlite3.Cursor:
        _check_alive()
        return self.real.executescript(script)

    def close(self) -> None:
        if self in self.disk.connections:
            self.disk.connections.remove(self)
        self.real.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.real, name)


def _connect(path: Path, **options: Any) -> SimulatedConnection:  # noqa: ANN401
    _check_alive()
    disk = _disk()
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
        _disk().locks.append(self)


class SimulatedRollingJournal:
    """The journals of one run in memory, in place of `RollingJournal`."""

    def __init__(self, location: object, writer: Any, options: Any, opener: object) -> None:  # noqa: ANN401
        del location, opener
        self._writer, self._options = writer, options
        self._disk = _disk()
        self._number = 0
        self._sync_at = 0.0
        for journal in self._disk.journals:  # the start converts the journals of an earlier run
            journal.converted = True
        self._open()

    @property
    def can_append(self) -> bool:
        return True

    def write(self, records: bytes, rows: int) -> None:
        del rows
        _check_alive()
        disk, journal = self._disk, self._journal
        journal.torn = records if self._options.sync == "batch" else b""
        if self._options.sync == "batch" and (seconds := disk.delay()):
            stand_ins.sleep(seconds)
        _check_alive()
        journal.torn = b""
        if disk.archive_full:
            disk.log("disk", f"{disk.folder.name}: archive full")
            raise OSError(errno.ENOSPC, "No space left on device")
        journal.data += records
        if self._options.sync == "batch" or stand_ins.monotonic() >= self._sync_at:
            journal.synced, self._sync_at = (
                len(journal.data),
                stand_ins.monotonic() + _SYNC_INTERVAL,
            )
        disk.log("archive", f"{disk.folder.name}: {len(records)} bytes of rows are durable")
        stand_ins.scheduler().point()

    def maintain(self) -> None:
        if stand_ins.monotonic() - self._opened >= self._options.segment_seconds:
            self._journal.converted = True
            self._open()

    def next_maintenance(self) -> float:
        return 10.0

    def close(self, timeout: float) -> None:
        del timeout
        _check_alive()
        self._journal.converted = True

    def _open(self) -> None:
        self._number += 1
        self._opened = stand_ins.monotonic()
        self._journal = SimulatedJournalFile(f"{self._writer.start}-{self._number:06}")
        self._disk.journals.append(self._journal)


def simulated_journals(root: Path, writer: str | None = None) -> list[SimulatedJournalFile]:
    """The journals of the disk that are not converted, in place of `layout.journals`."""
    del root, writer
    return [each for each in _disk().journals if not each.converted]
