"""The current journal of a writer: closed by size, age and date, then handed to the converter.

One journal is open at any time. The journals of a writer are a chain without gaps: each names its
predecessor, and a date is complete when the chain reaches the next midnight or ends with a stop.
"""

from __future__ import annotations

import errno
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gateway.archive.durable import make_folders
from gateway.archive.journal.claim_and_removal import is_in_use
from gateway.archive.journal.converter_process import Converter
from gateway.archive.journal.ends import Head
from gateway.archive.journal.file import Journal
from gateway.archive.journal.local_head import LocalHead, last_link, number_of
from gateway.archive.layout import (
    DAY,
    OPEN,
    JournalName,
    is_replay,
    journal_folder,
    journals,
    lock_path,
    writer_name,
)
from gateway.archive.location import ArchiveLocation
from gateway.clock import Clock, RowClock
from gateway.errors import ArchiveError
from gateway.file_lock import FileLock, FileLockedError
from gateway.terminal.units import counted

log = logging.getLogger(__name__)


# The durability of acknowledged rows. `batch`: on the disk, they survive the machine. `interval`:
# in the kernel, they survive the process, and the disk has them within `sync_seconds`.
Sync: TypeAlias = Literal["batch", "interval"]

_CONFLICT: Final = (
    "another process writes with this gateway's name; give each gateway its own `gateway.name`,"
    " each instance of one gateway its own `gateway.instance`, or its own archive folder"
)
_FULL_ROWS: Final = 90_000  # of a journal that becomes one segment of nearly 100,000 rows
_YOUNGEST, _OLDEST = 60.0, 900.0  # seconds: the age of a full journal, and of any other
_CONVERTER_POLL_INTERVAL: Final = 1.0  # seconds
_IDLE_INTERVAL: Final = 60.0  # seconds until an idle gateway looks at the date


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Limits and intervals of an archive writer and its journals."""

    queue_bytes: int = 16 << 20  # rows that may wait for the disk; `append` blocks past it
    segment_bytes: int = 64 << 20  # size at which a journal is closed and converted
    segment_seconds: float | None = None  # age of its first row at that; None: see `is_full`
    sync: Sync = "batch"
    sync_seconds: float = 1.0  # for `interval`
    retry_seconds: float = 0.5  # between two attempts to write
    close_seconds: float = 6.0  # limit of `ArchiveWriter.close`
    buffer_bytes: int | None = None  # limit of all journals; None for no limit
    keep_days: int | None = None  # whole days to keep; None keeps all
    seal_key: bytes | None = field(default=None, repr=False)  # signs journals and seals

    def is_full(self, size: int, rows: int, age: float) -> bool:
        """Return whether a journal of these bytes and rows is closed; `age` in seconds.

        The default age follows the rate: a minute for a gateway that fills a segment in it, up to
        a quarter of an hour for one that does not. A slow gateway so writes few files, and its
        rows are readers' after that time at the latest.
        """
        if size >= self.segment_bytes:
            return True
        if self.segment_seconds is not None:
            return age >= self.segment_seconds
        return age >= (_YOUNGEST if rows >= _FULL_ROWS else _OLDEST)


@dataclass(frozen=True, slots=True)
class WaitingJournals:
    """The journals that are closed and not converted yet."""

    journals: int = 0
    failed: int = 0  # conversions since the start
    buffer_share: float = 0.0  # used share of the buffer of a remote archive


class RollingJournal:
    """The open journal, and the converter of the closed ones.

    Mutable: used by one thread at a time.
    """

    def __init__(
        self, location: ArchiveLocation, head: LocalHead, start: int, options: ArchiveOptions
    ) -> None:
        """Open the first journal of the writer of `head`, and convert those of an earlier run.

        `start` is that of the process, in microseconds.

        Raises:
            ArchiveError: another process is this writer, or the folder cannot be written.
        """
        self._root = root = location.local
        self._head, self._start, self._options = head, start, options
        self._first_row_time = self._last_sync = 0.0
        self._needs_sync = False
        self._journal: Journal | None = None
        try:
            make_folders(journal_folder(root))
            self._lock = FileLock(lock_path(root, head.writer), _CONFLICT)
        except FileLockedError as error:
            raise ArchiveError(f"archive {error}") from error
        except OSError as error:
            raise _not_writable(root, error) from error
        self._converter = Converter(location, options.keep_days, options.seal_key)
        try:
            leftover = journals(root, head.writer)
            if not is_replay(head.writer):  # a replay that was killed may never run again
                others = journals(root, writer_name(head.gateway, head.instance, replay=True))
                leftover += [path for path in others if not is_in_use(path)]
            head.set_aside()
            self._previous = last_link(root, head.writer)
            try:
                self._open()
            except OSError:
                self._converter.add(leftover)  # they may be what fills the disk
                self._converter.finish(options.close_seconds)
                leftover = []
                self._open()
        except OSError as error:
            self._lock.close()
            raise _not_writable(root, error) from error
        if leftover:
            log.info(
                "archive %s: converting %s of an earlier run",
                root,
                counted(len(leftover), "journal"),
            )
            self._converter.add(leftover)
        elif options.keep_days is not None or location.url:
            self._converter.start_without_journals()

    @property
    def backlog(self) -> WaitingJournals:
        """The journals that wait; any thread may ask."""
        journal, limit = self._journal, self._options.buffer_bytes
        held = self._converter.held_bytes + (0 if journal is None else journal.size)
        share = held / limit if limit else 0.0
        return WaitingJournals(self._converter.waiting, self._converter.failed, share)

    @property
    def can_append(self) -> bool:
        """Whether a write only appends: the journal has rows and is not due to be closed."""
        journal = self._journal
        return not (journal is None or journal.empty or self._is_due(journal, time.monotonic()))

    def write(self, records: bytes, rows: int) -> None:
        """Append records with this number of rows.

        `ArchiveOptions.sync` defines how durable they are afterwards.

        Raises:
            OSError: none of the records counts; write them again.
        """
        sync = self._options.sync == "batch"
        try:
            self._check_buffer(len(records))
            journal = self._open()
            if journal.empty:
                self._first_row_time = time.monotonic()
            journal.append(records, rows, sync=sync)
        except OSError:
            self._converter.poll()  # its journals may be what fills the disk
            raise
        self._needs_sync = not sync

    def maintain(self) -> None:
        """Sync and close the journal when due, and poll the converter.

        Raises:
            OSError: the sync failed; the next call tries again.
        """
        self._converter.poll()  # first: what it converts makes room for the rest
        now = time.monotonic()
        journal = self._open()
        if self._needs_sync and now - self._last_sync >= self._options.sync_seconds:
            journal.sync()
            self._last_sync, self._needs_sync = now, False
        if self._is_due(journal, now):
            self._roll(journal)

    def next_maintenance(self) -> float:
        """Return the seconds until `maintain` may have work."""
        intervals = [_IDLE_INTERVAL, max(0.0, (self._midnight - self._head.clock()) / 1e6)]
        if self._needs_sync:
            intervals.append(self._options.sync_seconds)
        if self._has_rows() or self._needs_sync or self._converter.busy:
            intervals.append(_CONVERTER_POLL_INTERVAL)
        return min(intervals)

    def end(self) -> None:
        """Close the journal; a trailer that cannot be written is left out."""
        self._converter.is_awaited = True
        if (journal := self._journal) is not None:
            try:
                self._roll(journal, stopped=True)
            except OSError as error:
                log.warning("archive %s: the last journal has no trailer: %s", self._root, error)
                self._journal = None
                self._convert(journal)

    def close(self, timeout: float) -> None:
        """End and convert the journal; after `timeout` seconds the next start converts it."""
        self.end()
        if waiting := self._converter.finish(timeout):
            log.warning("archive: for the next start: %s", counted(len(waiting), "journal"))
        self._lock.close()

    def _check_buffer(self, size: int) -> None:
        """Refuse `size` bytes when the buffer is full, and convert its journals.

        An empty buffer takes a record of any size.

        Raises:
            OSError: the buffer is full.
        """
        limit, held = self._options.buffer_bytes, self._converter.held_bytes
        written = self._journal.size if self._journal is not None else 0
        if limit is None or held + written + size <= limit or not (held or self._has_rows()):
            return
        if self._journal is not None and self._has_rows():
            self._roll(self._journal)
        text = f"the buffer of {limit} bytes is full; segments cannot be stored"
        raise OSError(errno.ENOSPC, text)

    def _has_rows(self) -> bool:
        journal = self._journal  # a thread that writes directly may close it meanwhile
        return journal is not None and not journal.empty

    def _open(self) -> Journal:
        if self._journal is None:
            head = self._next_head()
            name = JournalName(head.writer, head.start, head.sequence)
            path = journal_folder(self._root) / f"{name}{OPEN}"
            journal = Journal(path, head, self._options.seal_key)
            try:
                self._state(str(name))
            except OSError:
                journal.discard()
                raise
            self._journal = journal
            self._midnight = (head.opened // DAY + 1) * DAY
        return self._journal

    def _state(self, journal: str | None) -> None:
        """Write the head: `journal` is open, and its predecessor was the last one."""
        previous = self._previous
        self._head.change(lambda head: replace(head, closed=previous, open=journal))

    def _next_head(self) -> Head:
        return Head(
            gateway=self._head.gateway,
            writer=self._head.writer,
            start=self._start,
            sequence=number_of(self._previous) + 1,
            opened=anchored(self._head.clock),
            previous=self._previous,
            lease=self._head.lease,
        ).signed(self._options.seal_key)

    def _is_due(self, journal: Journal, now: float) -> bool:
        if journal.empty:
            return anchored(self._head.clock) >= self._midnight
        age = now - self._first_row_time
        full = self._options.is_full(journal.size, journal.rows, age)
        return full or self._head.clock() >= self._midnight

    def _roll(self, journal: Journal, *, stopped: bool = False) -> None:
        """Close the journal and convert it; unless `stopped`, open the next one before.

        The converter uploads the head: it names the next journal when the seal of this one is in
        the archive, else a machine that is lost then would have ended with this one.

        Raises:
            OSError: the trailer cannot be written, and the journal stays open; or the next one
                cannot be opened, and the next call of `maintain` or `write` tries again.
        """
        self._previous = journal.finish(self._head.clock(), stopped=stopped)
        if stopped:
            with suppress(OSError):  # the converter notes it
                self._state(None)
        self._journal, self._needs_sync = None, False
        try:
            if not stopped:
                self._open()
        finally:
            self._convert(journal)  # it may be what fills the disk

    def _convert(self, journal: Journal) -> None:
        journal.close()
        self._converter.add([journal.path])


def anchored(clock: Clock) -> int:
    """Return the time at which a journal opens; from now on rows follow the wall clock."""
    return clock.anchor() if isinstance(clock, RowClock) else clock()


def _not_writable(root: Path, error: OSError) -> ArchiveError:
    return ArchiveError(f"archive {root}: cannot be written: {error}")
