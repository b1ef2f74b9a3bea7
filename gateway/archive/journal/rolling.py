"""The journal that is open now: rolled by size and age, then converted; it queues no rows."""

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
from gateway.archive.location import Place
from gateway.archive.segments.converter import Conversions
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

Opener: TypeAlias = Callable[[Path], Journal]

# When rows count as durable. `batch`: on the disk, they survive the machine. `interval`: with the
# kernel, they survive the process, and the disk has them within `sync_seconds`.
Sync: TypeAlias = Literal["batch", "interval"]

_LOOK: Final = 1.0  # seconds between two looks at a running converter


@dataclass(frozen=True, slots=True)
class ArchiveOptions:
    """How a writer treats its rows and journals."""

    queue_bytes: int = 16 << 20  # what may wait for the disk; past it `append` blocks
    segment_bytes: int = 64 << 20  # a journal this large is converted
    segment_seconds: float = 60.0  # and one whose first row is this old
    sync: Sync = "batch"
    sync_seconds: float = 1.0  # for `interval`
    retry_seconds: float = 0.5  # between two tries to write
    close_seconds: float = 6.0  # what closing may take
    buffer_bytes: int | None = None  # journals past it take nothing more until some are converted
    keep_days: int | None = None  # days before the last so many are removed; None keeps all


class RollingJournal:
    """Mutable: it owns the open journal and the conversions. Used by one thread at a time."""

    def __init__(
        self, place: Place, gateway: str, start: int, options: ArchiveOptions, opener: Opener
    ) -> None:
        """Open the first journal, and have what a crash left converted.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        self._root, self._gateway, self._start = place.local, gateway, start
        self._options, self._opener = options, opener
        self._number = 0
        self._begun = self._synced = 0.0
        self._unsynced = False
        self._journal: Journal | None = None
        root = place.local
        left = journals(root, gateway)
        try:
            journal_folder(root).mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise ArchiveError(f"archive {root}: cannot be written: {error}") from error
        self._conversions = Conversions(place, options.keep_days)
        if left:
            log.info("archive %s: converting %d journals of an earlier run", root, len(left))
            self._conversions.add(left)
        elif options.keep_days is not None:
            self._conversions.tidy()

    @property
    def under_way(self) -> bool:
        """Whether a write is no more than that: a journal has rows, and is not to be rolled."""
        journal = self._journal
        return not (journal is None or journal.empty or self._due(journal, time.monotonic()))

    def write(self, records: bytes) -> None:
        """Append the records, as durable as the options ask.

        Raises:
            OSError: none of them counts; write them again.
        """
        self._make_room(len(records))
        journal = self._open()
        if journal.empty:
            self._begun = time.monotonic()
        every = self._options.sync == "batch"
        journal.append(records, sync=every)
        self._unsynced = not every

    def tend(self) -> None:
        """Sync and roll what is due, look after the converter.

        Raises:
            OSError: the interval's sync failed; it is tried again at the next call.
        """
        now = time.monotonic()
        if self._journal and self._unsynced and now - self._synced >= self._options.sync_seconds:
            self._journal.sync()
            self._synced, self._unsynced = now, False
        if self._journal is not None and self._due(self._journal, now):
            self._roll(self._journal)
        self._conversions.poll()

    def pause(self) -> float | None:
        """Seconds until `tend` has something to do; None for never."""
        if self._unsynced:
            return min(_LOOK, self._options.sync_seconds)
        if self._journal is not None and not self._journal.empty:
            return min(_LOOK, self._options.segment_seconds)
        return _LOOK if self._conversions.busy else None

    def close(self, timeout: float) -> None:
        """Close the journal and convert it; what is not done in `timeout` is for the next start."""
        if self._journal is not None:
            self._roll(self._journal)
        if left := self._conversions.finish(timeout):
            log.warning("archive: %d journals wait for the next start", len(left))

    def _make_room(self, size: int) -> None:
        """Refuse `size` bytes when the buffer is full, and have what it holds converted."""
        most, held = self._options.buffer_bytes, self._conversions.held_bytes
        written = self._journal.size if self._journal is not None else 0
        if most is None or held + written + size <= most or not (held or self._written()):
            return
        if self._journal is not None and self._written():
            self._roll(self._journal)
        self._conversions.poll()
        raise OSError(errno.ENOSPC, f"the buffer of {most} bytes is full; segments cannot be kept")

    def _written(self) -> bool:
        return self._journal is not None and not self._journal.empty

    def _open(self) -> Journal:
        if self._journal is None:
            path = journal_path(self._root, self._gateway, self._start, self._number)
            self._number += 1
            self._journal = self._opener(path)
        return self._journal

    def _due(self, journal: Journal, now: float) -> bool:
        old = now - self._begun >= self._options.segment_seconds
        return not journal.empty and (old or journal.size >= self._options.segment_bytes)

    def _roll(self, journal: Journal) -> None:
        self._journal, self._unsynced = None, False
        journal.close()
        if not journal.empty:
            self._conversions.add([journal.path])
            return
        with suppress(OSError):  # the next start removes it
            journal.path.unlink()
