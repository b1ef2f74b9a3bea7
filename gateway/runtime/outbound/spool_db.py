"""One SQLite file for what must outlive the process: spooled parcels and dead letters.

One thread writes. It takes all that is queued, commits it once and then calls back, so that the
disk's time is paid once for everything that arrived while it was busy. It knows no messages.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

from gateway.errors import SpoolError

log = logging.getLogger(__name__)

Change: TypeAlias = "tuple[str, Sequence[object]]"  # SQL and the values of its parameters
Durable: TypeAlias = Callable[[], None]
_Queued: TypeAlias = tuple[Sequence[Change], int, Durable]

FILE: Final = "spool.sqlite"
QUEUE: Final = 32 << 20  # bytes that wait for the disk, past which callers wait
RETRY: Final = 0.5  # seconds between attempts on a disk that does not take it
GIVE_BACK: Final = 256  # free pages handed back to the file system after a commit

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
    """The database of `folder`, in WAL mode so that readers and the writer do not wait.

    Raises:
        SpoolError: there is none, or it cannot be opened.
    """
    path = folder / FILE
    if not create and not path.exists():
        raise SpoolError(f"spool {folder}: has no {FILE}; is it the `path` of a section `spool`?")
    try:
        if create:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before the first table
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns
        database.executescript(SCHEMA)
    except (sqlite3.Error, OSError) as error:
        raise SpoolError(f"spool {path}: {error}") from error
    return database


class Store:
    """Mutable: it owns a thread, a lock file and the changes that are not yet durable."""

    def __init__(self, folder: Path) -> None:
        """Open the store of `folder`, which becomes ours alone.

        Raises:
            SpoolError: the folder cannot be written, or another gateway uses it.
        """
        self._folder = folder
        self._writing = connect(folder, create=True)
        self._lock_file = _locked(folder)
        self._reading = connect(folder)
        self._read_lock = threading.Lock()
        self._lock = threading.Condition()
        self._queue: list[_Queued] = []
        self._queued = 0
        self._busy = self._closing = False
        self._numbers = count(self._last_number() + 1)
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def put(self, changes: Sequence[Change], durable: Durable, size: int = 0) -> None:
        """Queue the changes; `durable` is called once by the store's thread and must be short.

        The changes of one call become durable together or not at all. It never waits; who brings
        much, of `size` bytes, first calls `wait_for_room`.

        Raises:
            SpoolError: the store is closed; nothing was taken.
        """
        with self._lock:
            if self._closing:
                raise SpoolError(f"spool {self._folder}: is closed; nothing was written")
            self._queue.append((changes, size, durable))
            self._queued += size
            self._lock.notify_all()

    def wait_for_room(self) -> None:
        """Wait while a disk that is slow, or full, has too much in hand already."""
        with self._lock:
            self._lock.wait_for(lambda: self._closing or self._queued < QUEUE)

    def number(self) -> int:
        """A number for a row, larger than every one before it, in this run and earlier ones."""
        return next(self._numbers)

    def flush(self, seconds: float) -> bool:
        """Wait until all that was put is durable and told; whether it was, within `seconds`."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._queue and not self._busy, seconds)

    def rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """What is durable now.

        Raises:
            SpoolError: the file cannot be read.
        """
        with self._read_lock:
            try:
                return self._reading.execute(query, tuple(values)).fetchall()
            except sqlite3.Error as error:
                raise SpoolError(f"spool {self._folder}: {error}") from error

    def some_rows(
        self, query: str, values: Sequence[object], enough: int
    ) -> list[tuple[object, ...]]:
        """The first rows of what is durable now, until their last columns have `enough` bytes.

        Raises:
            SpoolError: the file cannot be read.
        """
        found: list[tuple[object, ...]] = []
        size = 0
        with self._read_lock:
            try:
                cursor = self._reading.execute(query, tuple(values))
                for row in cursor:
                    found.append(row)
                    size += len(row[-1])
                    if size >= enough:
                        break
                cursor.close()
            except sqlite3.Error as error:
                raise SpoolError(f"spool {self._folder}: {error}") from error
        return found

    def close(self, seconds: float) -> None:
        """Write what is queued, within `seconds`, and stop. Safe to call twice."""
        with self._lock:
            self._closing = True
            self._lock.notify_all()
        self._thread.join(seconds)
        if self._thread.is_alive():
            return  # the disk does not answer; the process ends without it
        with self._read_lock:
            self._reading.close()
        self._writing.close()
        os.close(self._lock_file)

    def _run(self) -> None:
        while taken := self._take():
            if not self._commit(taken):
                return

    def _take(self) -> list[_Queued]:
        with self._lock:
            self._lock.wait_for(lambda: self._queue or self._closing)
            taken, self._queue = self._queue, []
            self._busy = bool(taken)
            return taken

    def _commit(self, taken: Sequence[_Queued]) -> bool:
        """Make it durable, however long it takes; False when closing came first."""
        while not self._written(taken):
            with self._lock:
                if self._lock.wait_for(lambda: self._closing, RETRY):
                    return False
        with self._lock:
            self._queued -= sum(size for _, size, _ in taken)
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

    def _written(self, taken: Sequence[_Queued]) -> bool:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            for changes, _, _ in taken:
                for statement, values in changes:
                    self._writing.execute(statement, tuple(values))
            self._writing.execute("COMMIT")
            self._writing.execute(f"PRAGMA incremental_vacuum({GIVE_BACK})").fetchall()
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._writing.execute("ROLLBACK")
            if not self.failure:
                log.error("spool %s: %s; what must be kept waits, and slows its sources",  # noqa: TRY400  # a full disk needs no traceback
                          self._folder, error)  # fmt: skip
            self.failure = str(error)
            return False
        if self.failure:
            log.warning("spool %s: works again", self._folder)
            self.failure = ""
        return True


def _locked(folder: Path) -> int:
    file = os.open(folder / "spool.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise SpoolError(
            f"spool {folder}: another gateway uses it; give each gateway a folder of its own"
        ) from error
    return file
