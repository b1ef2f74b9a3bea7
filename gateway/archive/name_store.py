"""A writer's dictionary of short names on disk: its name file, and an index of all name files.

    ARCHIVE/_names/<writer>.jsonl       an object for each name: digest, levels, time (microseconds)
    ARCHIVE/_names/.<writer>.index      an SQLite database: the line of each digest
    BUFFER/_names/.others/              copies of the files of other instances of the gateway

A name is durable in the name file before it is used: the names of a batch are synced together.
The index holds nothing that the name files do not hold: a damaged or absent one is made again. An
index that exists reads only the lines that were added since. While the index cannot be written,
the places of the lines that it lacks are kept in memory.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final, TypeVar

from gateway.archive.durable import (
    close_to_others,
    make_folders,
    open_private,
    open_regular,
    sync_data,
    sync_folder,
)
from gateway.archive.layout import NAMES, OTHERS
from gateway.clock import now
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_UNINDEXED: Final = 4 << 20  # bytes of the name file; past it the index is waited for
LOCK_TIMEOUT: Final = 1.0  # seconds; a replay beside the gateway holds the index for less
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS lines
    (digest TEXT PRIMARY KEY, file TEXT NOT NULL, start INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ends (file TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
"""
_ADD_LINE: Final = "INSERT OR IGNORE INTO lines (digest, file, start) VALUES (?, ?, ?)"
_FIND_LINE: Final = "SELECT file, start FROM lines WHERE digest = ?"
_SET_SIZE: Final = "INSERT OR REPLACE INTO ends (file, size) VALUES (?, ?)"


class NameFile:
    """The open name file of one writer.

    Mutable: owned by the name store that writes it.
    """

    def __init__(self, root: Path, writer: str) -> None:
        """Open the file, and create it when it is absent.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        folder = root / NAMES
        self.name = f"{writer}.jsonl"
        try:
            make_folders(folder)
            self._file = open(folder / self.name, "ab", buffering=0, opener=open_private)  # noqa: SIM115  # `Path.open` has no opener
            sync_folder(folder)
        except OSError as error:
            raise ArchiveError(f"{folder}: cannot be written: {error.strerror}") from error

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    def write(self, names: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        """Append the levels of each digest, durable on return; return the starts of their lines.

        Raises:
            ArchiveError: the file cannot be written; a part may be, and another call is allowed.
        """
        time = now()
        entries = [
            json.dumps({"digest": digest, "levels": levels, "time": time})
            for digest, levels in names.items()
        ]
        # The first byte ends a line that a crash or a full disk cut short.
        data = memoryview("\n".join(["", *entries, ""]).encode())
        size = len(data)
        try:
            while data:
                data = data[self._file.write(data) :]
            sync_data(self._file.fileno())
        except OSError as error:
            raise ArchiveError(f"{self._file.name}: cannot be written: {error.strerror}") from error
        start = self._file.tell() - size + 1
        starts = accumulate((len(entry) + 1 for entry in entries), initial=start)  # JSON is ASCII
        return dict(zip(names, starts, strict=False))  # the last one is the end

    def close(self) -> None:
        with suppress(OSError):  # a name that could not be written was refused
            self._file.close()


class NameStore:
    """The short names of an archive, to which this writer adds its own.

    A replay for the gateway opens the same files, so that each finds the names of the other.
    Thread-safe: guarded by self._lock.
    """

    def __init__(self, root: Path, writer: str) -> None:
        """Open the name file and the index, and index what the name files have gained.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[str, ...]] = {}  # not yet durable
        self._unindexed: dict[str, int] = {}  # durable only in the name file: starts of lines
        self._indexed_size = 0  # of the name file, when the index was last complete
        self._file = NameFile(root, writer)
        self._path = root / NAMES / f".{writer}.index"
        try:
            self._index = _open_index(self._path)
        except (sqlite3.Error, OSError) as error:
            self._file.close()
            raise self._unusable(error) from error
        self._indexed_size = self._file.size

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Add the canonical levels behind `digest`, unless they are stored; `commit` stores them.

        An index that cannot be read is an error of `commit`, which is waited for.
        """
        with self._lock:
            with suppress(ArchiveError):
                if digest in self._pending or self._place(digest) is not None:
                    return
            self._pending[digest] = levels

    def commit(self) -> None:
        """Store all added names durably: one write for all that were added meanwhile.

        Raises:
            ArchiveError: the file cannot be written, or the index has lacked too many names for
                long; the names wait for another call.
        """
        with self._lock:
            if not self._pending:
                return
            if self._file.size - self._indexed_size > MAX_UNINDEXED:
                self._complete_index()
            starts = self._file.write(self._pending)
            lagged = bool(self._unindexed)
            self._unindexed |= starts
            self._pending.clear()
            try:
                self._complete_index()
            except ArchiveError as error:
                if not lagged:
                    log.warning("%s; names are kept in memory until it can be used", error)
            else:
                if lagged:
                    log.warning("%s: works again", self._path)

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None.

        Raises:
            ArchiveError: the index cannot be read.
        """
        with self._lock:
            if digest in self._pending:
                return self._pending[digest]
            return self._with_index(lambda _: self._recall(digest))

    def close(self) -> None:
        """Close the files; names without a `commit` are gone, and no message has them."""
        with self._lock:
            self._file.close()
            self._index.close()

    def _place(self, digest: str) -> tuple[str, int] | None:
        """Return the file and the start of the line of a digest; None for an unknown one."""
        if digest in self._unindexed:
            return self._file.name, self._unindexed[digest]
        found: tuple[str, int] | None = self._with_index(
            lambda index: index.execute(_FIND_LINE, (digest,)).fetchone()
        )
        return found

    def _recall(self, digest: str) -> tuple[str, ...] | None:
        place = self._place(digest)
        if place is None:
            return None
        if (levels := self._read(digest, *place)) is not None:
            return levels
        self._index.close()  # it names another line: the file was replaced
        _remove(self._path)
        self._index = _open_index(self._path)
        self._unindexed.clear()
        place = self._place(digest)
        return None if place is None else self._read(digest, *place)

    def _read(self, digest: str, file: str, start: int) -> tuple[str, ...] | None:
        """Return the levels behind a digest from its line; None when that is another line."""
        with os.fdopen(open_regular(self._path.parent / file), "rb") as lines:
            lines.seek(start)
            entries = dict(_entry(lines.readline()))
        return entries.get(digest)

    def _complete_index(self) -> None:
        """Add the names that the index lacks.

        Raises:
            ArchiveError: the index cannot be written.
        """
        size = self._file.size

        def add(index: sqlite3.Connection) -> None:
            with index:  # a replay that was killed may have left lines of its own before these
                _update(index, self._path.parent, self._file.name)

        self._with_index(add)
        self._indexed_size = size
        self._unindexed.clear()

    def _with_index(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Return the result of `action`; a damaged index is made again, and `action` repeated.

        Raises:
            ArchiveError: the index cannot be used.
        """
        try:
            try:
                return action(self._index)
            except sqlite3.OperationalError:  # it is locked, or the disk is full
                raise
            except sqlite3.DatabaseError:
                self._index.close()
                self._index = _open_index(self._path)
                return action(self._index)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> ArchiveError:
        return ArchiveError(
            f"{self._path}: cannot be used: {error}; see that the disk has room, and that no"
            " program holds the file"
        )


def _open_index(path: Path) -> sqlite3.Connection:
    """Open the index and bring it up to date; make a damaged one again."""
    try:
        return _updated_index(path)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
            raise
        _remove(path)
        return _updated_index(path)


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _updated_index(path: Path) -> sqlite3.Connection:
    close_to_others(path)
    index = sqlite3.connect(path, timeout=LOCK_TIMEOUT, check_same_thread=False)
    try:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute("PRAGMA synchronous = NORMAL")  # a lost commit is indexed again
        index.executescript(_SCHEMA)
        for file in sorted([*path.parent.glob("*.jsonl"), *path.parent.glob(f"{OTHERS}/*.jsonl")]):
            with index:
                _update(index, path.parent, str(file.relative_to(path.parent)))
    except BaseException:
        index.close()
        raise
    return index


def _update(index: sqlite3.Connection, folder: Path, file: str) -> None:
    """Add the names that follow the indexed part of `file`; a file that was cut is read again."""
    found = index.execute("SELECT size FROM ends WHERE file = ?", (file,)).fetchone()
    done = int(found[0]) if found else 0
    with os.fdopen(open_regular(folder / file), "rb") as lines:
        if os.fstat(lines.fileno()).st_size < done:
            done = 0
            index.execute("DELETE FROM lines WHERE file = ?", (file,))
        lines.seek(done)
        for line in lines:
            if not line.endswith(b"\n"):
                break  # it is being written, or a crash cut it
            index.executemany(_ADD_LINE, [(each, file, done) for each, _ in _entry(line)])
            done += len(line)
    index.execute(_SET_SIZE, (file, done))


def _entry(line: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield digest and levels of a line; none for a line that a crash cut: its name is unused."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        entry = json.loads(line)
        yield str(entry["digest"]), tuple(map(str, entry["levels"]))
