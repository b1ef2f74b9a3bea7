"""The SQLite file of a gateway's spool: spooled batches and dead letters.

One thread writes. It commits the queued changes together, up to MAX_COMMIT_BYTES, and then calls
back, so that one flush of the disk serves every change that arrived during the last one. On a full
disk it first commits the changes that need no room: deletions make room, and marks keep copies from
being sent unmarked. A reserve file gives them the little that they need. Then it halves what waits
until a part fits. Each failed attempt leaves its pages in the log, so the log is emptied after it.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway.archive.durable import (
    close_to_others,
    make_folders,
    open_private,
    refuse_foreign_link,
)
from gateway.errors import SpoolError
from gateway.file_lock import FileLock, FileLockedError

log = logging.getLogger(__name__)

Change: TypeAlias = "tuple[str, Sequence[object]]"  # SQL and the values of its parameters
Durable: TypeAlias = Callable[[], None]
_QueuedChanges: TypeAlias = tuple[Sequence[Change], int, Durable]

FILE_NAME: Final = "spool.sqlite"
RESERVE_NAME: Final = "spool.reserve"  # deleted when the disk is full
RESERVE_BYTES: Final = 8 << 20  # the log at its largest goes into the database with it
MAX_QUEUED_BYTES: Final = 32 << 20  # changes waiting for the disk; past it callers wait
MAX_COMMIT_BYTES: Final = 4 << 20  # of one transaction, beside one larger change
RETRY_INTERVAL: Final = 0.5  # seconds between attempts to write to a failing disk
_FAULTS: Final = (sqlite3.Error, UnicodeDecodeError)  # the text of an error can have a damaged name
_VACUUM: Final = "PRAGMA incremental_vacuum(256)"  # free pages that the file system gets back
_EMPTY_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"

VERSION: Final = 2

# `batch_routes` has the routes of the messages of the `batches`; `held` the numbers of those that
# wait for the end of an interval, and whether they may have been sent; of a spare also the number
# of the newer copy that may have been sent, its id, and the facts of the row that says so; `marks`
# the last batch that was read for sending, by endpoint; `letters` are dead letters; `sent_again` is
# one row: how many of them commands have sent again and deleted.
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS batches (
    number INTEGER PRIMARY KEY, endpoint TEXT NOT NULL, messages INTEGER NOT NULL,
    size INTEGER NOT NULL, time INTEGER NOT NULL, body BLOB NOT NULL, checksum BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS batches_of ON batches (endpoint, number, messages, size);
CREATE TABLE IF NOT EXISTS batch_routes (
    number INTEGER, route TEXT, endpoint TEXT NOT NULL, time INTEGER NOT NULL,
    PRIMARY KEY (number, route)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS oldest_of ON batch_routes (endpoint, route, number, time);
CREATE TABLE IF NOT EXISTS held (
    number INTEGER PRIMARY KEY, tried INTEGER NOT NULL DEFAULT 0,
    newer INTEGER, stands BLOB, facts BLOB);
CREATE TABLE IF NOT EXISTS marks (endpoint TEXT PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS letters (
    number INTEGER PRIMARY KEY, time INTEGER NOT NULL, id BLOB NOT NULL, route TEXT NOT NULL,
    source TEXT NOT NULL, source_name TEXT NOT NULL, target TEXT NOT NULL, endpoint TEXT NOT NULL,
    rule TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, fields TEXT NOT NULL,
    size INTEGER NOT NULL, body BLOB NOT NULL, checksum BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS sizes ON letters (size);
CREATE TABLE IF NOT EXISTS sent_again (
    one INTEGER PRIMARY KEY CHECK (one = 1), letters INTEGER NOT NULL);
"""
# A run begins with no interval: what was held waits like any other batch, in its place. A spare is
# cut: the target may have the newer copy already, and would have the older one last.
MARK_TRIED: Final = """
INSERT INTO marks (endpoint, number) SELECT endpoint, MAX(number) FROM batches
    WHERE number IN (SELECT number FROM held WHERE tried) GROUP BY endpoint
    ON CONFLICT (endpoint) DO UPDATE SET number = MAX(number, excluded.number)"""
_END_INTERVALS: Final = (
    f"BEGIN IMMEDIATE; {MARK_TRIED}; DELETE FROM held WHERE newer IS NULL; COMMIT;"  # noqa: S608  # constants
)


def connect(folder: Path, *, create: bool = False) -> sqlite3.Connection:
    """Open the database of `folder`, in WAL mode, where readers and the writer do not block.

    Raises:
        SpoolError: the file does not exist, cannot be opened, or has another version.
    """
    path = folder / FILE_NAME
    if not create and not path.exists():
        raise SpoolError(
            f"spool {folder}: has no {FILE_NAME}, which a gateway makes at its start; check whether"
            " one has run, and whether this is its `path`"
        )
    try:
        if create:
            for each in {path, *folder.glob(f"{FILE_NAME}-*")}:  # the log of a killed gateway too
                close_to_others(each)
        database = sqlite3.connect(path, timeout=10, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has effect before the first table
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")  # a commit is on disk when it returns
        if database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone() == (0,):
            database.execute(f"PRAGMA user_version = {VERSION}")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            database.close()
            raise SpoolError(
                f"spool {path}: has version {version}, and this gateway reads {VERSION}; send its"
                " messages with the gateway that wrote it"
            )
        database.executescript(_SCHEMA + _END_INTERVALS * create)
    except (*_FAULTS, OSError) as error:
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
        self._reserve = folder / RESERVE_NAME
        self._lock_file = _lock_folder(folder)
        self._read_lock = threading.Lock()
        try:
            self._writing = self._open()
            self._reading = connect(folder)
            # larger than all earlier numbers of rows, of this run and of earlier runs
            self.next_number = count(self._last_number() + 1).__next__
        except SpoolError:
            self._lock_file.close()
            raise
        self._lock = threading.Condition()
        self._queue: list[_QueuedChanges] = []
        self._queued_bytes = 0
        self._busy = self._closing = False
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._make_reserve()
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

    def flush(self, seconds: float) -> bool:
        """Wait until all changes are durable and called back; return whether they are in time."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._queue and not self._busy, seconds)

    def rows(
        self, query: str, values: Sequence[object] = (), *, size: int | None = None
    ) -> list[tuple[Any, ...]]:
        """The durable rows that `query` selects.

        With a `size` only the first of them, until their last columns reach so many bytes.

        Raises:
            SpoolError: the file cannot be read.
        """
        with self._read_lock:
            try:
                cursor = self._reading.execute(query, tuple(values))
                found = cursor.fetchall() if size is None else _first_rows(cursor, size)
                cursor.close()
            except _FAULTS as error:
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

    def _open(self) -> sqlite3.Connection:
        """Open the file; on a full disk with the room of the reserve."""
        try:
            return connect(self._folder, create=True)
        except SpoolError:
            if not self._reserve.exists():
                raise
            with suppress(OSError):  # a read-only disk
                self._reserve.unlink(missing_ok=True)
            return connect(self._folder, create=True)

    def _make_reserve(self) -> bool:
        """Keep the room that deletions need on a full disk; return whether it is kept."""
        if self._reserve.exists():
            return True
        try:
            with open(self._reserve, "wb", opener=open_private) as file:  # `Path.open` has none
                file.write(bytes(RESERVE_BYTES))
        except OSError as error:
            with suppress(OSError):  # a read-only disk
                self._reserve.unlink(missing_ok=True)
            self._fail(error)
            return False
        return True

    def _fail(self, error: Exception) -> None:
        if not self.failure:
            log.error("spool %s: %s; sources wait until it is writable", self._folder, error)
        self.failure = str(error)

    def _run(self) -> None:
        waiting: list[_QueuedChanges] = []  # taken, and not durable
        while True:
            with self._lock:
                if waiting:
                    self._lock.wait_for(lambda: self._closing, RETRY_INTERVAL)
                else:  # without changes, a failure can end all the same
                    seconds = RETRY_INTERVAL if self.failure else None
                    self._lock.wait_for(lambda: self._queue or self._closing, seconds)
                closing = self._closing
                waiting, self._queue = waiting + self._queue, []
                self._busy = bool(waiting)
            if waiting or self.failure:
                waiting = self._commit(waiting)
            if closing:
                return

    def _commit(self, changes: list[_QueuedChanges]) -> list[_QueuedChanges]:
        """Make the changes durable and call back; return those that found no room."""
        if not self.failure:
            while changes and self._try_commit(part := _first_part(changes)):
                self._call_back(part)
                changes = changes[len(part) :]
        if changes:
            changes = self._commit_freeing(changes)
            if self._make_reserve():  # new copies never take the room that frees the disk
                changes = changes[self._commit_halves(changes) :]
        if self.failure and not changes and self._make_reserve():
            log.warning("spool %s: works again", self._folder)
            self.failure = ""
        with self._lock:
            self._busy = bool(changes)
            self._lock.notify_all()
        return changes

    def _commit_freeing(self, changes: list[_QueuedChanges]) -> list[_QueuedChanges]:
        """Commit the changes that need no room, if need be with the reserve; return the others."""
        without_size = [each for each in changes if not each[1]]
        if without_size and not self._try_commit(without_size):
            with suppress(OSError):  # a read-only disk
                self._reserve.unlink(missing_ok=True)
            self._empty_log()
            if not self._try_commit(without_size):
                return changes
        self._call_back(without_size)
        self._empty_log()
        return [each for each in changes if each[1]]

    def _commit_halves(self, changes: list[_QueuedChanges]) -> int:
        """Commit as many of the first changes as fit; return their number."""
        committed, limit = 0, len(changes)
        while committed < len(changes):
            part = _first_part(changes[committed : committed + limit])
            if self._try_commit(part):
                self._call_back(part)
                committed += len(part)
                continue
            self._empty_log()
            if len(part) == 1:
                break
            limit = len(part) // 2
        return committed

    def _call_back(self, changes: Sequence[_QueuedChanges]) -> None:
        with self._lock:
            self._queued_bytes -= sum(size for _, size, _ in changes)
            self._lock.notify_all()
        for _, _, durable in changes:
            try:
                durable()
            except Exception:  # it must not end this thread, on which every target depends
                log.exception("unexpected error after a change of the spool")

    def _empty_log(self) -> None:
        """Give the room of the log, and of free pages, back to the file system."""
        for statement in (_EMPTY_LOG, _VACUUM, _EMPTY_LOG):
            with suppress(*_FAULTS):  # the disk may be read-only, or a reader uses the log
                self._writing.execute(statement).fetchall()

    def _last_number(self) -> int:
        tables = "SELECT number FROM batches UNION ALL SELECT number FROM letters"
        tables += " UNION ALL SELECT CAST(number AS INTEGER) FROM marks"
        (last,) = self.rows(f"SELECT COALESCE(MAX(number), 0) FROM ({tables})")[0]  # noqa: S608  # a constant
        return int(last)

    def _try_commit(self, changes: Sequence[_QueuedChanges]) -> bool:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            for statements, _, _ in changes:
                for statement, values in statements:
                    self._writing.execute(statement, tuple(values))
            self._writing.execute("COMMIT")
        except _FAULTS as error:
            with suppress(*_FAULTS):
                self._writing.execute("ROLLBACK")
            self._fail(error)
            return False
        with suppress(*_FAULTS):  # a full disk; the changes are durable nevertheless
            self._writing.execute(_VACUUM).fetchall()
        return True


def _first_rows(rows: Iterable[tuple[Any, ...]], size: int) -> list[tuple[Any, ...]]:
    """The first rows, until their last columns reach `size` bytes."""
    found: list[tuple[Any, ...]] = []
    for row in rows:
        found.append(row)
        size -= len(row[-1])
        if size <= 0:
            break
    return found


def _first_part(changes: list[_QueuedChanges]) -> list[_QueuedChanges]:
    """The first changes, up to MAX_COMMIT_BYTES; at least one."""
    size = 0
    for at, (_, more, _) in enumerate(changes):
        size += more
        if size > MAX_COMMIT_BYTES:
            return changes[: max(1, at)]
    return changes


def _lock_folder(folder: Path) -> FileLock:
    """Make and lock a folder, before anything in it is opened."""
    conflict = "another gateway uses it; stop that one, or give this one its own `spool.path`"
    try:
        make_folders(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)
        refuse_foreign_link(folder)
        return FileLock(folder / "spool.lock", conflict)
    except FileLockedError as error:
        raise SpoolError(f"spool {error}") from error
    except OSError as error:
        raise SpoolError(f"spool {folder}: {error}") from error
