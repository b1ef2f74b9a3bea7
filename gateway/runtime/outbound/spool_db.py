"""The SQLite file of a gateway's spool: spooled batches and dead letters.

One thread writes. It commits all queued changes at once and then calls back, so that one flush of
the disk serves every change that arrived during the last one.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

from gateway.archive.durable import close_to_others, make_folders
from gateway.errors import SpoolError
from gateway.file_lock import FileLock, FileLockedError

log = logging.getLogger(__name__)

Change: TypeAlias = "tuple[str, Sequence[object]]"  # SQL and the values of its parameters
Durable: TypeAlias = Callable[[], None]
_QueuedChanges: TypeAlias = tuple[Sequence[Change], int, Durable]

FILE_NAME: Final = "spool.sqlite"
MAX_QUEUED_BYTES: Final = 32 << 20  # changes waiting for the disk; past it callers wait
RETRY_INTERVAL: Final = 0.5  # seconds between attempts to write to a failing disk
MAX_VACUUM_PAGES: Final = 256  # free pages returned to the file system after a commit

# `parcels` are spooled batches, `letters` are dead letters; `handed` is the last batch that was
# read for sending, by endpoint.
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS parcels (
    number INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, messages INTEGER NOT NULL,
    size INTEGER NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS parcels_of ON parcels (endpoint, number, messages, size);
CREATE TABLE IF NOT EXISTS handed (endpoint TEXT PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS letters (
    number INTEGER PRIMARY KEY, time INTEGER NOT NULL, id BLOB NOT NULL, route TEXT NOT NULL,
    source TEXT NOT NULL, source_name TEXT NOT NULL, target TEXT NOT NULL, endpoint TEXT NOT NULL,
    rule TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, size INTEGER NOT NULL,
    body BLOB NOT NULL);
"""


def connect(folder: Path, *, create: bool = False) -> sqlite3.Connection:
    """Open the database of `folder`, in WAL mode, where readers and the writer do not block.

    Raises:
        SpoolError: the file does not exist, or cannot be opened.
    """
    path = folder / FILE_NAME
    if not create and not path.exists():
        raise SpoolError(
            f"spool {folder}: has no {FILE_NAME}; is it the `path` of a section `spool`?"
        )
    try:
        if create:
            make_folders(folder.parent)
            folder.mkdir(exist_ok=True, mode=0o700)
            for each in {path, *folder.glob(f"{FILE_NAME}-*")}:  # the log of a killed gateway too
                close_to_others(each)
        database = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has effect before the first table
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns
        database.executescript(SCHEMA)
    except (sqlite3.Error, OSError) as error:
        raise SpoolError(f"spool {path}: {error}") from error
    return database


class SpoolDatabase:
    """The database of one running gateway, with its writing thread and its lock file.

    Thread-safe: self._lock guards the queue, self._read_lock the reading connection.
    """

    def __init__(self, folder: Path) -> None:
        """Open and lock the database of `folder`.

        Raises:
            SpoolError: the folder is not writable, or another gateway uses it.
        """
        self._folder = folder
        self._writing = connect(folder, create=True)
        self._lock_file = _lock_folder(folder)
        self._reading = connect(folder)
        self._read_lock = threading.Lock()
        self._lock = threading.Condition()
        self._queue: list[_QueuedChanges] = []
        self._queued_bytes = 0
        self._busy = self._closing = False
        self._numbers = count(self._last_number() + 1)
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def put(self, changes: Sequence[Change], durable: Durable, size: int = 0) -> None:
        """Queue the changes, which become durable together or not at all.

        The writing thread calls `durable` once; it must return soon. This call never waits, so a
        caller with many bytes (`size`) first calls `wait_for_room`.

        Raises:
            SpoolError: the database is closed; the changes were not queued.
        """
        with self._lock:
            if self._closing:
                raise SpoolError(f"spool {self._folder}: is closed; nothing was written")
            self._queue.append((changes, size, durable))
            self._queued_bytes += size
            self._lock.notify_all()

    def wait_for_room(self) -> None:
        """Wait while more than MAX_QUEUED_BYTES are queued, as with a slow or full disk."""
        with self._lock:
            self._lock.wait_for(lambda: self._closing or self._queued_bytes < MAX_QUEUED_BYTES)

    def next_number(self) -> int:
        """A row number larger than all earlier ones, of this run and of earlier runs."""
        return next(self._numbers)

    def flush(self, seconds: float) -> bool:
        """Wait until all changes are durable and called back; return whether they are in time."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._queue and not self._busy, seconds)

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """The durable rows that `query` selects.

        Raises:
            SpoolError: the file cannot be read.
        """
        with self._read_lock:
            try:
                return self._reading.execute(query, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise SpoolError(f"spool {self._folder}: {error}") from error

    def rows_up_to(
        self, size: int, query: str, values: Sequence[object] = ()
    ) -> list[tuple[object, ...]]:
        """The first durable rows of `query`, until their last columns reach `size` bytes.

        Raises:
            SpoolError: the file cannot be read.
        """
        found: list[tuple[object, ...]] = []
        read = 0
        with self._read_lock:
            try:
                cursor = self._reading.execute(query, tuple(values))
                for row in cursor:
                    found.append(row)
                    read += len(row[-1])
                    if read >= size:
                        break
                cursor.close()
            except sqlite3.Error as error:
                raise SpoolError(f"spool {self._folder}: {error}") from error
        return found

    def close(self, seconds: float) -> None:
        """Write the queued changes within `seconds`, and stop. A second call has no effect."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._thread.join(seconds)
        if self._thread.is_alive():
            return  # the disk does not answer; the process ends without it
        with self._read_lock:
            self._reading.close()
        self._writing.close()
        self._lock_file.close()

    def _run(self) -> None:
        while taken := self._take():
            if not self._commit(taken):
                return

    def _take(self) -> list[_QueuedChanges]:
        with self._lock:
            self._lock.wait_for(lambda: self._queue or self._closing)
            taken, self._queue = self._queue, []
            self._busy = bool(taken)
            return taken

    def _commit(self, taken: Sequence[_QueuedChanges]) -> bool:
        """Make the changes durable, with retries; return false if the database closes first."""
        while not self._try_commit(taken):
            with self._lock:
                if self._lock.wait_for(lambda: self._closing, RETRY_INTERVAL):
                    return False
        with self._lock:
            self._queued_bytes -= sum(size for _, size, _ in taken)
            self._lock.notify_all()
        for _, _, durable in taken:
            durable()
        with self._lock:
            self._busy = False
            self._lock.notify_all()
        return True

    def _last_number(self) -> int:
        tables = "SELECT number FROM parcels UNION ALL SELECT number FROM letters"
        tables += " UNION ALL SELECT number FROM handed"
        found = self._writing.execute(f"SELECT COALESCE(MAX(number), 0) FROM ({tables})").fetchone()  # noqa: S608  # a constant
        return int(found[0])

    def _try_commit(self, taken: Sequence[_QueuedChanges]) -> bool:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            for changes, _, _ in taken:
                for statement, values in changes:
                    self._writing.execute(statement, tuple(values))
            self._writing.execute("COMMIT")
            self._writing.execute(f"PRAGMA incremental_vacuum({MAX_VACUUM_PAGES})").fetchall()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._writing.execute("ROLLBACK")
            if not self.failure:
                log.error("spool %s: %s; sources wait until it is writable",  # noqa: TRY400  # a full disk needs no traceback
                          self._folder, error)  # fmt: skip
            self.failure = str(error)
            return False
        if self.failure:
            log.warning("spool %s: works again", self._folder)
            self.failure = ""
        return True


def _lock_folder(folder: Path) -> FileLock:
    conflict = "another gateway uses it; give each gateway a folder of its own"
    try:
        return FileLock(folder / "spool.lock", conflict)
    except FileLockedError as error:
        raise SpoolError(f"spool {error}") from error
    except OSError as error:
        raise SpoolError(f"spool {folder}: {error}") from error
