"""The current journal of a gateway: closed by size and age, then handed to the converter."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from gateway.archive.journal.file import Journal
from gateway.archive.layout import journal_folder, journal_path, journals
from gateway.archive.location import ArchiveLocation
from gateway.archive.segments.converter_process import Converter
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

Opener: TypeAlias = Callable[[Path], Journal]

# The durability of acknowledged rows. `batch`: on the disk, they survive the machine. `interval`:
# in the kernel, they survive the process, and the disk has them within `sync_seconds`.
Sync: TypeAlias = Literal["batch", "interval"]

_CONVERTER_POLL_INTERVAL: Final = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """Limits and intervals of an archive writer and its journals."""

    queue_bytes: int = 16 << 20  # rows that may wait for the disk; `append` blocks past it
    segment_bytes: int = 64 << 20  # size at which a journal is closed and converted
    segment_seconds: float = 60.0  # age of its first row at which a journal is closed
    sync: Sync = "batch"
    sync_seconds: float = 1.0  # for `interval`
    retry_seconds: float = 0.5  # between two attempts to write
    close_seconds: float = 6.0  # limit of `ArchiveWriter.close`
    buffer_bytes: int | None = None  # limit of all journals; None for no limit
    keep_days: int | None = None  # whole days to keep; None keeps all


class RollingJournal:
    """The open journal, and the converter of the closed ones.

    Mutable: used by one thread at a time.
    """

    def __init__(
        self,
        location: ArchiveLocation,
        gateway: str,
        start: int,
        options: ArchiveOptions,
        opener: Opener,
    ) -> None:
        """Open the first journal, and convert the journals of an earlier run.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        self._root, self._gateway, self._start = location.local, gateway, start
        self._options, self._opener = options, opener
        self._number = 0
        self._first_row_time = self._last_sync = 0.0
        self._needs_sync = False
        self._journal: Journal | None = None
        root = location.local
        leftover = journals(root, gateway)
        try:
            journal_folder(root).mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise ArchiveError(f"archive {root}: cannot be written: {error}") from error
        self._converter = Converter(location, options.keep_days)
        if leftover:
            log.info("archive %s: converting %d journals of an earlier run", root, len(leftover))
            self._converter.add(leftover)
        elif options.keep_days is not None:
            self._converter.start_retention()

    @property
    def can_append(self) -> bool:
        """Whether a write only appends: the journal has rows and is not due to be closed."""
        journal = self._journal
        return not (journal is None or journal.empty or self._is_due(journal, time.monotonic()))

    def write(self, records: bytes) -> None:
        """Append the records; `ArchiveOptions.sync` defines how durable they are afterwards.

        Raises:
            OSError: none of the records counts; write them again.
        """
        self._check_buffer(len(records))
        journal = self._open()
        if journal.empty:
            self._first_row_time = time.monotonic()
        sync = self._options.sync == "batch"
        journal.append(records, sync=sync)
        self._needs_sync = not sync

    def maintain(self) -> None:
        """Sync and close the journal when due, and poll the converter.

        Raises:
            OSError: the sync failed; the next call tries again.
        """
        now = time.monotonic()
        if (
            self._journal
            and self._needs_sync
            and now - self._last_sync >= self._options.sync_seconds
        ):
            self._journal.sync()
            self._last_sync, self._needs_sync = now, False
        if self._journal is not None and self._is_due(self._journal, now):
            self._roll(self._journal)
        self._converter.poll()

    def next_maintenance(self) -> float | None:
        """Return the seconds until `maintain` has work; None when it has none to expect."""
        if self._needs_sync:
            return min(_CONVERTER_POLL_INTERVAL, self._options.sync_seconds)
        if self._has_rows():
            return min(_CONVERTER_POLL_INTERVAL, self._options.segment_seconds)
        return _CONVERTER_POLL_INTERVAL if self._converter.busy else None

    def close(self, timeout: float) -> None:
        """Close and convert the journal; after `timeout` seconds the next start converts it."""
        if self._journal is not None:
            self._roll(self._journal)
        if waiting := self._converter.finish(timeout):
            log.warning("archive: %d journals wait for the next start", len(waiting))

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
        self._converter.poll()
        text = f"the buffer of {limit} bytes is full; segments cannot be stored"
        raise OSError(errno.ENOSPC, text)

    def _has_rows(self) -> bool:
        return self._journal is not None and not self._journal.empty

    def _open(self) -> Journal:
        if self._journal is None:
            path = journal_path(self._root, self._gateway, self._start, self._number)
            self._number += 1
            self._journal = self._opener(path)
        return self._journal

    def _is_due(self, journal: Journal, now: float) -> bool:
        is_old = now - self._first_row_time >= self._options.segment_seconds
        return not journal.empty and (is_old or journal.size >= self._options.segment_bytes)

    def _roll(self, journal: Journal) -> None:
        """Close the journal; convert it, or remove it when it has no rows."""
        self._journal, self._needs_sync = None, False
        journal.close()
        if not journal.empty:
            self._converter.add([journal.path])
            return
        with suppress(OSError):  # the next start removes it
            journal.path.unlink()
