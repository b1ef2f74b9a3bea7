"""A gateway's dictionary of short names on disk: its name file, and an index of all name files.

    ARCHIVE/_names/.<gateway>.index     an SQLite database: levels by digest

The index holds nothing that the name files do not hold: a damaged or absent one is made again. An
index that exists reads only the lines that were added since.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.archive.durable import close_to_others
from gateway.archive.layout import NAMES, safe_name
from gateway.archive.lookup.name_file import NameFile
from gateway.errors import ArchiveError

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS names (digest TEXT PRIMARY KEY, levels TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (name TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID;
"""
_ADD_NAME: Final = "INSERT OR IGNORE INTO names (digest, levels) VALUES (?, ?)"
_SET_SIZE: Final = "INSERT OR REPLACE INTO files (name, size) VALUES (?, ?)"


class NameStore:
    """The short names of an archive; those of this gateway are added.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, root: Path, gateway: str) -> None:
        """Open the name file and the index, and index what the name files have gained.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        self._lock = threading.Lock()
        self._pending: dict[str, tuple[str, ...]] = {}  # not yet durable
        self._file = NameFile(root, gateway)
        self._path = root / NAMES / f".{safe_name(gateway)}.index"
        try:
            self._index = _open_index(self._path)
        except (sqlite3.Error, OSError) as error:
            self._file.close()
            raise self._unusable(error) from error

    def remember(self, digest: str, levels: tuple[str, ...]) -> None:
        """Add the canonical levels behind `digest`, unless they are stored; `commit` stores them.

        An index that cannot be read is an error of `commit`, which is waited for.
        """
        with self._lock:
            with suppress(ArchiveError):
                if self._find(digest) is not None:
                    return
            self._pending[digest] = levels

    def commit(self) -> None:
        """Store all added names durably: one write for all that were added meanwhile.

        Raises:
            ArchiveError: the file or the index cannot be written; the names wait for another call.
        """
        with self._lock:
            if not self._pending:
                return
            size = self._file.write(self._pending)
            rows = ((digest, json.dumps(levels)) for digest, levels in self._pending.items())
            try:
                with self._index:
                    self._index.executemany(_ADD_NAME, rows)
                    self._index.execute(_SET_SIZE, (self._file.name, size))
            except sqlite3.Error as error:
                raise self._unusable(error) from error
            self._pending.clear()

    def recall(self, digest: str) -> tuple[str, ...] | None:
        """Return the canonical levels behind `digest`, or None.

        Raises:
            ArchiveError: the index cannot be read.
        """
        with self._lock:
            return self._find(digest)

    def close(self) -> None:
        """Close the files; names without a `commit` are gone, and no message has them."""
        with self._lock:
            self._file.close()
            self._index.close()

    def _find(self, digest: str) -> tuple[str, ...] | None:
        if digest in self._pending:
            return self._pending[digest]
        try:
            found = self._index.execute(
                "SELECT levels FROM names WHERE digest = ?", (digest,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return None if found is None else tuple(map(str, json.loads(found[0])))

    def _unusable(self, error: Exception) -> ArchiveError:
        return ArchiveError(f"{self._path}: cannot be used: {error}; see that the disk has room")


def _open_index(path: Path) -> sqlite3.Connection:
    """Open the index and bring it up to date; make a damaged one again."""
    try:
        return _updated_index(path)
    except sqlite3.DatabaseError:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return _updated_index(path)


def _updated_index(path: Path) -> sqlite3.Connection:
    close_to_others(path)
    index = sqlite3.connect(path, timeout=10, check_same_thread=False)
    try:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute("PRAGMA synchronous = NORMAL")  # a lost commit is indexed again
        index.executescript(_SCHEMA)
        for file in sorted(path.parent.glob("*.jsonl")):
            with index:
                _update(index, file)
    except BaseException:
        index.close()
        raise
    return index


def _update(index: sqlite3.Connection, file: Path) -> None:
    """Add the names that follow the indexed part of `file`; a file that was cut is read again."""
    found = index.execute("SELECT size FROM files WHERE name = ?", (file.name,)).fetchone()
    done = int(found[0]) if found else 0
    with file.open("rb") as lines:
        if os.fstat(lines.fileno()).st_size < done:
            done = 0
        lines.seek(done)
        for line in lines:
            if not line.endswith(b"\n"):
                break  # it is being written, or a crash cut it
            done += len(line)
            index.executemany(_ADD_NAME, _entry(line))
    index.execute(_SET_SIZE, (file.name, done))


def _entry(line: bytes) -> Iterator[tuple[str, str]]:
    """Yield digest and levels of a line; none for a line that a crash cut: its name is unused."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        entry = json.loads(line)
        yield str(entry["digest"]), json.dumps([str(level) for level in entry["levels"]])
