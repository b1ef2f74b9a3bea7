"""The simulated disk of one gateway: its spool in a real SQLite file, its archive in memory.

It survives the gateway's process. A kill leaves SQLite's file and its log, and tears the tail of
the journal; faults make it slow or full, or change a bit of either.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from greenlet import GreenletExit

from gateway.archive.durable import read_regular
from gateway.archive.journal.ends import Head, Trailer, link_of
from gateway.archive.journal.local_head import LocalHead, number_of
from gateway.archive.journal.records import Damage, is_journal, read_records
from gateway.archive.journal.rolling import anchored
from gateway.archive.layout import ACK, OPEN, JournalName, journal_folder
from gateway.archive.schema import REQUIRED
from gateway.archive.signed_json import Previous, new_hash
from gateway.file_lock import FileLock
from gateway.night.archive.segments.journal_facts import JournalFacts
from gateway.runtime.outbound.dead_letters import COLUMNS
from gateway.runtime.outbound.spool_db import VERSION
from tests.simulation import stand_ins
from tests.simulation.books import each_row
from tests.simulation.configurations import place_of
from tests.simulation.scheduler import InjectedError, Process
from tests.simulation.small_disk import SmallDisk

DAMAGE: Final = (sqlite3.DatabaseError, UnicodeDecodeError)  # of a damaged file
_SYNC_INTERVAL: Final = 1.0  # seconds, with `sync: interval`
_SIZE: Final = struct.Struct("<Q")  # of the acknowledged bytes
_LAST: Final = 64  # bytes at the end of a journal


@dataclass(slots=True)
class SimulatedJournalFile:
    """The bytes of one journal; `torn` are in the middle of a write."""

    name: JournalName
    data: bytearray
    torn: bytes = b""
    synced: int = 0  # bytes that a power cut leaves
    acknowledged: int = 0  # bytes
    changed: int | None = None  # the byte of a changed bit
    converted: bool = False
    _parsed: tuple[tuple[int, int | None], list[dict[str, Any]]] | None = None

    @property
    def stem(self) -> str:
        """The name of the file without its suffix."""
        return str(self.name)

    def each_row(self) -> list[dict[str, Any]]:
        """The rows as `books.each_row` gives them, by the product's reader."""
        state = len(self.data), self.changed
        if self._parsed is None or self._parsed[0] != state:
            found = [
                each for each in read_records(bytes(self.data)) if not isinstance(each, Damage)
            ]
            self._parsed = state, [row for rows in found for each in rows for row in each_row(each)]
        return self._parsed[1]

    def read_bytes(self) -> bytes:
        return bytes(self.data)

    def link(self) -> Previous | None:
        """The journal as a predecessor."""
        return link_of(str(self.name), bytes(self.data), self.acknowledged)

    def write(self, root: Path) -> Path:
        """Write the journal below `root`, as a process that ended leaves it; return its path."""
        path = journal_folder(root) / f"{self.name}{OPEN}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        path.with_suffix(ACK).write_bytes(_SIZE.pack(self.acknowledged))
        return path

    def is_damaged(self) -> bool:
        """Whether its seal would say that acknowledged rows are lost or changed."""
        data = bytes(self.data)
        if not is_journal(data):
            return True
        found = [*read_records(data, required=REQUIRED)]
        damages = [each for each in found if isinstance(each, Damage)]
        rows = sum(each.count for every in found if isinstance(every, list) for each in every)
        facts = JournalFacts(str(self.name), self.name, data, self.acknowledged, None)
        return bool(facts.damages(damages, rows))


class Disk:
    """The files of one gateway, and their faults.

    Mutable: faults set the fields. `delay` gives the seconds of one flush.
    """

    def __init__(self, folder: Path, log: Callable[[str, str], None]) -> None:
        self.folder = folder
        self.log = log
        self.delay: Callable[[], float] = lambda: 0.0
        self.archive_full = False
        self.small = SmallDisk(self.spool)
        self.spool_fails = 0  # further transactions that raise an error of the process
        self.archive_fails = 0
        self.journals: list[SimulatedJournalFile] = []
        self.connections: list[Any] = []  # of `spool_files`
        self.locks: list[FileLock] = []
        self.process: Process | None = None
        self.commits = 0
        self.synced_spool: bytes | None = None  # None while every commit is synchronised
        self.damaged = False  # whether the form of the spool's file is
        self.changed = False  # whether a bit of it changed
        self.on_rows: Callable[[bytes], None] = lambda _records: None  # that are durable

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def crash(self, random: Callable[[], float]) -> None:
        """Leave what a killed process leaves."""
        files = {path: path.read_bytes() for path in self.spool.glob("spool.sqlite*")}
        for connection in self.connections:
            connection.real.close()
        for path, data in files.items():  # the last connection moved its log into the file
            path.write_bytes(data)
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

    def change_journal(self, random: Callable[[], float]) -> None:
        """Change one bit of the last journal; of its last record, half of the time."""
        if self.journals:
            journal = self.journals[-1]
            end = min(journal.acknowledged, len(journal.data))
            start = max(0, end - _LAST) if random() < 0.5 else 0
            journal.changed = _change_bit(journal.data, random, start)
            self.log("disk", f"{self.folder.name}: a bit of byte {journal.changed} of the journal")

    def change_spool(self, random: Callable[[], float]) -> list[bytes]:
        """Change one bit of the spool's file; return the bodies of the rows that it may cost."""
        path = self.spool / "spool.sqlite"
        if not path.exists():
            return []
        self.changed = True
        before = self._content() or []
        log = path.with_name("spool.sqlite-wal")  # of the commits that the file does not have yet
        if log.exists() and log.stat().st_size and random() < 0.3:
            self._change_file(log, random)
        else:
            self._query("PRAGMA wal_checkpoint(TRUNCATE)")
            if random() < 0.5 or not self._change_column(random):  # half of them
                self._change_file(path, random)
        after = self._content()
        if after is None:
            self.damaged = True
            after = []
        return [bytes(row[-1]) for row in before if row not in after and row[-1]]

    def _change_file(self, path: Path, random: Callable[[], float]) -> None:
        data = bytearray(path.read_bytes())
        place = _change_bit(data, random)
        path.write_bytes(data)
        self.log("disk", f"{self.folder.name}: a bit of byte {place} of {path.name}")

    def _change_column(self, random: Callable[[], float]) -> bool:
        """Change one bit of a small column of a spooled batch; return whether there is one."""
        rows = self._query("SELECT number, endpoint, time, messages FROM batches")
        if not rows:
            return False
        number, endpoint, time, messages = rows[int(random() * len(rows))]
        changes = {
            "endpoint": endpoint[:-1] + chr(ord(endpoint[-1]) ^ 1),  # of the next target
            "time": time ^ 1 << int(random() * 50),
            "messages": messages ^ 1 << int(random() * 10),
        }
        column = sorted(changes)[int(random() * len(changes))]
        with closing(sqlite3.connect(self.spool / "spool.sqlite")) as database, database:
            query = f"UPDATE batches SET {column} = ? WHERE number = ?"  # noqa: S608  # constants
            database.execute(query, [changes[column], number])
        self.log("disk", f"{self.folder.name}: a bit of {column} of row {number}")
        return True

    def _content(self) -> list[tuple[Any, ...]] | None:
        """The rows of a copy of the spool's files; None if SQLite finds them damaged.

        The last connection to a database moves its log into the file.
        """
        tables = {
            "batches": "number, endpoint, messages, size, time, checksum, body",
            "letters": ", ".join((*COLUMNS, "body")), "marks": "endpoint, number, x''",
            "batch_routes": "number, route, endpoint, time, x''",
        }  # fmt: skip
        copy = self.folder / "copy"
        shutil.copytree(self.spool, copy)
        try:
            with closing(sqlite3.connect(copy / "spool.sqlite")) as database:
                if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                    return None
                if database.execute("PRAGMA user_version").fetchone() != (VERSION,):
                    return None  # a gateway says so and does not start
                found = [
                    database.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608  # constants
                    for table, columns in tables.items()
                ]
        except DAMAGE:
            return None
        finally:
            shutil.rmtree(copy)
        return [row for rows in found for row in rows]

    def stored(self, table: str) -> list[tuple[str, bytes]]:
        """Endpoint and body of every committed row of `table`, in order."""
        query = f"SELECT endpoint, CAST(body AS BLOB) FROM {table} ORDER BY number"  # noqa: S608  # a constant
        return [(place_of(str(endpoint)), body or b"") for endpoint, body in self._query(query)]

    def letters(self) -> list[tuple[str, bytes]]:
        """Rule and body of every dead letter of the spool."""
        query = "SELECT rule, CAST(body AS BLOB) FROM letters ORDER BY number"
        return [(str(rule), body or b"") for rule, body in self._query(query)]

    def letter_ids(self) -> set[bytes]:
        """The messages of the dead letters of the spool."""
        return {bytes(identity) for (identity,) in self._query("SELECT id FROM letters")}

    def waiting(self, endpoint: str) -> int:
        """The number of messages in the spool of a target."""
        query = "SELECT messages FROM batches WHERE endpoint = ?"
        return sum(messages for (messages,) in self._query(query, endpoint))

    def _query(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The committed rows of a query; none without the file, or if it is damaged."""
        path = self.spool / "spool.sqlite"
        if not path.exists():
            return []
        try:
            with closing(sqlite3.connect(path)) as reader:
                return reader.execute(query, values).fetchall()
        except DAMAGE:
            return []

    def rows(self) -> Iterator[dict[str, Any]]:
        """All durable rows of all runs, with places as endpoints and targets."""
        for journal in self.journals:
            for row in journal.each_row():
                targets = row["targets"] and [place_of(each) for each in row["targets"]]
                ends = {name: place_of(row[name] or "") for name in ("endpoint", "target")}
                yield row | ends | {"targets": targets}

    def last_link(self) -> Previous | None:
        """The predecessor of a new journal."""
        links = (journal.link() for journal in reversed(self.journals))
        return next((each for each in links if each is not None), None)

    def has_hash(self, digest: bytes) -> bool:
        """Whether a durable row names the payload with this hash."""
        return any(digest in journal.data for journal in self.journals)


def _change_bit(data: bytearray, random: Callable[[], float], start: int = 0) -> int:
    """Change one bit from `start` on; return its byte."""
    bit = start * 8 + int(random() * (len(data) - start) * 8)
    data[bit // 8] ^= 1 << bit % 8
    return bit // 8


def running_disk() -> Disk:
    """The disk of the running process."""
    task = stand_ins.scheduler().current
    assert task is not None
    found: Disk = task.process.disk
    return found


def is_running(thread: str) -> bool:
    """Whether the running task is the thread of this name."""
    task = stand_ins.scheduler().current
    return task is not None and task.name == thread


def check_alive() -> None:
    task = stand_ins.scheduler().current
    if task is not None and task.process.dead:
        raise GreenletExit


class SimulatedRollingJournal:
    """The journals of one run in memory, in place of `RollingJournal`."""

    def __init__(self, location: object, head: LocalHead, start: int, options: Any) -> None:  # noqa: ANN401
        del location
        self._head, self._start, self._options = head, start, options
        self._disk = running_disk()
        self._rows = self._records = 0
        self._sync_at = 0.0
        for journal in self._disk.journals:  # the start converts the journals of an earlier run
            journal.converted = True
        self._open()

    @property
    def can_append(self) -> bool:
        return True

    def write(self, records: bytes, rows: int) -> None:
        check_alive()
        disk, journal = self._disk, self._journal
        journal.torn = records if self._options.sync == "batch" else b""
        if self._options.sync == "batch" and (seconds := disk.delay()):
            stand_ins.sleep(seconds)
        check_alive()
        journal.torn = b""
        if disk.archive_fails and is_running("archive"):
            disk.archive_fails -= 1
            raise InjectedError
        if disk.archive_full:
            disk.log("disk", f"{disk.folder.name}: archive full")
            raise OSError(errno.ENOSPC, "No space left on device")
        journal.data += records
        journal.acknowledged = len(journal.data)
        self._rows, self._records = self._rows + rows, self._records + 1
        if self._options.sync == "batch" or stand_ins.monotonic() >= self._sync_at:
            journal.synced, self._sync_at = (
                len(journal.data),
                stand_ins.monotonic() + _SYNC_INTERVAL,
            )
        disk.log("archive", f"{disk.folder.name}: {len(records)} bytes of rows are durable")
        disk.on_rows(records)
        stand_ins.scheduler().point()

    def maintain(self) -> None:
        if stand_ins.monotonic() - self._opened >= (self._options.segment_seconds or 20):
            self._close(stopped=False)
            self._open()

    def next_maintenance(self) -> float:
        return 10.0

    def end(self) -> None:
        check_alive()
        self._close(stopped=True)

    def close(self, timeout: float) -> None:
        """Convert nothing: the judge reads journals."""

    def _open(self) -> None:
        self._rows = self._records = 0
        self._opened = stand_ins.monotonic()
        gateway, writer, start = self._head.gateway, self._head.writer, self._start
        previous, opened = self._disk.last_link(), anchored(self._head.clock)
        number = number_of(previous) + 1
        head = Head(gateway, writer, start, number, opened, previous, keyed=False)
        name = JournalName(writer, start, number)
        self._journal = SimulatedJournalFile(name, bytearray(head.pack()))
        self._disk.journals.append(self._journal)

    def _close(self, *, stopped: bool) -> None:
        journal = self._journal
        digest = new_hash(None, bytes(journal.data))
        size, closed = len(journal.data), self._head.clock()
        journal.data += Trailer(
            self._rows, self._records, size, digest.hexdigest(), closed, stopped
        ).pack()
        journal.synced = journal.acknowledged = len(journal.data)
        journal.converted = True


def simulated_end(root: Path, gateway: str) -> int:
    """The end of the last journal of the disk, in place of `local_head.last_end`."""
    del root, gateway
    link = running_disk().last_link()
    return 0 if link is None else link.closed


def simulated_journals(root: Path, writer: str | None = None) -> list[SimulatedJournalFile]:
    """The journals of the disk that are not converted, in place of `layout.journals`."""
    del root, writer
    return [each for each in running_disk().journals if not each.converted]


def simulated_content(path: Path | SimulatedJournalFile) -> bytes:
    """The content of a journal or of a real file, in place of `durable.read_regular`."""
    return path.read_bytes() if isinstance(path, SimulatedJournalFile) else read_regular(path)
