"""The store of a broker: an SQLite database of its queues, their messages, and its publishers.

Changes of queues, messages and publishers are on the disk before the publisher gets its
acknowledgement. Changes of settled or delivered messages survive the process alone: losing one with
the machine causes a redelivery and no loss.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, Final

from gateway.errors import EndpointError
from gateway.file_lock import FileLock

DATABASE_NAME: Final = "broker.db"
_SCHEMA: Final = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS queues
    (vpn TEXT, name BLOB, exclusive INTEGER, delivered INTEGER DEFAULT 0, PRIMARY KEY (vpn, name));
CREATE TABLE IF NOT EXISTS topics
    (vpn TEXT, queue BLOB, topic BLOB, PRIMARY KEY (vpn, queue, topic));
CREATE TABLE IF NOT EXISTS messages
    (vpn TEXT, queue BLOB, number INTEGER, topic BLOB, flags INTEGER, parameters BLOB, body BLOB,
     PRIMARY KEY (vpn, queue, number));
CREATE TABLE IF NOT EXISTS publishers
    (vpn TEXT, name BLOB, last_id INTEGER, PRIMARY KEY (vpn, name));
CREATE TRIGGER IF NOT EXISTS content AFTER DELETE ON queues BEGIN
    DELETE FROM topics WHERE vpn = old.vpn AND queue = old.name;
    DELETE FROM messages WHERE vpn = old.vpn AND queue = old.name;
END;
"""


class StoreChange(Enum):
    """A change to store: the statement, whose first parameter is the name of the VPN."""

    QUEUE = "INSERT OR IGNORE INTO queues (vpn, name, exclusive) VALUES (?, ?, ?)"
    QUEUE_REMOVED = "DELETE FROM queues WHERE vpn = ? AND name = ?"
    TOPIC = "INSERT OR IGNORE INTO topics VALUES (?, ?, ?)"
    TOPIC_REMOVED = "DELETE FROM topics WHERE vpn = ? AND queue = ? AND topic = ?"
    MESSAGE = "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)"
    SETTLED = "DELETE FROM messages WHERE vpn = ? AND queue = ? AND number = ?"
    DELIVERED = (
        "UPDATE queues SET delivered = ?3 WHERE vpn = ?1 AND name = ?2"  # the highest number
    )
    PUBLISHER = (
        "INSERT INTO publishers VALUES (?1, ?2, ?3)"
        " ON CONFLICT (vpn, name) DO UPDATE SET last_id = ?3"
    )
    PUBLISHER_REMOVED = "DELETE FROM publishers WHERE vpn = ? AND name = ?"


_QUICK: Final = {StoreChange.SETTLED, StoreChange.DELIVERED}  # not synchronised with the disk


class BrokerStore:
    """An open, locked database, and changes that wait for `commit`.

    Mutable: owned by the broker's event loop.
    """

    def __init__(self, folder: Path) -> None:
        """Open or create the database in `folder`.

        Raises:
            EndpointError: the folder cannot be used, or another broker uses it.
        """
        self._folder = folder
        self._waiting: list[tuple[StoreChange, tuple[object, ...]]] = []
        with _usable(folder), ExitStack() as opened:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / "lock", "another broker uses it; stop that one")
            opened.enter_context(closing(lock))
            self._database = sqlite3.connect(folder / DATABASE_NAME, check_same_thread=False)
            opened.enter_context(closing(self._database))
            self._database.executescript(_SCHEMA)
            self._opened = opened.pop_all()

    def rows(self, columns: str, table: str, *place: object) -> Iterable[tuple[Any, ...]]:
        """Return rows in the order of their insertion: of a VPN, or of a queue of it.

        Raises:
            EndpointError: the database is damaged.
        """
        where = " AND ".join(("vpn = ?", "queue = ?")[: len(place)])
        query = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY rowid"  # noqa: S608  # constants
        with _usable(self._folder):
            return self._database.execute(query, place).fetchall()

    def append(self, vpn: str, change: StoreChange, *values: object) -> None:
        """Add a change to the next `commit`."""
        self._waiting.append((change, (vpn, *values)))

    def commit(self) -> None:
        """Write the waiting changes.

        Raises:
            sqlite3.Error: none of them is on disk.
        """
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        sync = "NORMAL" if all(change in _QUICK for change, _ in waiting) else "FULL"
        self._database.execute(f"PRAGMA synchronous = {sync}")
        with self._database:
            for change, values in waiting:
                self._database.execute(change.value, values)

    def close(self) -> None:
        with suppress(sqlite3.Error):  # what waits is not acknowledged
            self.commit()
        self._opened.close()


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise EndpointError(f"smf broker: cannot use the store {folder}: {error}") from error
