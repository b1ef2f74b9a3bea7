"""Rows in, durable once, callbacks out: a journal with group commit; it loads no Parquet.

One thread takes all that is queued, writes it once, makes it durable once and then calls the
callbacks, so the disk's time is paid once for everything that arrived while it was busy. Where
the kernel's memory is durable enough (`interval`) a caller writes its rows itself, if nothing is
before them: that takes less time than to wake the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from gateway.archive.journal.file import Journal
from gateway.archive.journal.records import Cell, Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, Opener, RollingJournal
from gateway.archive.location import Place
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

Durable: TypeAlias = Callable[[], None]
Changed: TypeAlias = Callable[[ArchiveError | None], None]
_Queued: TypeAlias = tuple[bytes, Durable]


def ignore(_: ArchiveError | None) -> None:
    """What a writer reports to when nobody wants to know."""


class ArchiveWriter:
    """Mutable: it owns a thread, the journal and the rows not yet durable."""

    def __init__(  # noqa: PLR0913  # whose archive, how it behaves, what tests replace
        self,
        root: Path | Place,
        gateway: str,
        start: int,
        options: ArchiveOptions | None = None,
        *,
        changed: Changed = ignore,
        opener: Opener = Journal,
    ) -> None:
        """Write for `gateway`, started at `start` microseconds, and convert what a crash left.

        `root` is a folder, or a place elsewhere with its buffer.

        `changed` gets the error when writing fails and None when it works again, from the
        archive's thread; `failure` is the same for who asks.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        place = root if isinstance(root, Place) else Place(root)
        self._root = place.local
        self._options = options or ArchiveOptions()
        self._common: dict[str, Cell] = {"gateway": gateway}
        self._changed = changed
        self._lock = threading.Condition()
        self._writing = threading.Lock()  # whose turn it is to use the journal
        self._queue: list[_Queued] = []
        self._queued = 0
        self._closing = self._ended = False
        self._deadline = float("inf")
        self.failure: ArchiveError | None = None
        self._journal = RollingJournal(place, gateway, start, self._options, opener)
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    @property
    def queued_bytes(self) -> int:
        """What waits for the disk."""
        return self._queued

    def append(self, batches: Sequence[Rows], durable: Durable) -> None:
        """Write the rows; `durable` is called once, perhaps before this returns, and must be short.

        The rows of one call become durable together or not at all. Blocks while the queue is
        full, so that a slow disk slows the caller.

        Raises:
            ArchiveError: the writer is closed; the rows are not taken.
            ValueError: a column is unknown or of another length.
        """
        record = pack(batches, self._common)
        if self._options.sync == "interval" and self._write_at_once(record):
            durable()
            return
        with self._lock:
            self._lock.wait_for(lambda: self._closing or self._ended or self._fits(record))
            if self._closing or self._ended:
                raise ArchiveError(f"archive {self._root}: is closed; nothing was written")
            self._queue.append((record, durable))
            self._queued += len(record)
            self._lock.notify_all()

    def close(self, seconds: float | None = None) -> None:
        """Write what is queued, convert the journal, stop. Safe to call twice.

        `seconds` is how long that may take, in place of the option; a journal that is left is
        converted at the next start.

        Raises:
            ArchiveError: rows could not be made durable in time; their callbacks were not called.
        """
        with self._lock:
            if not self._closing:
                self._closing = True
                patience = self._options.close_seconds if seconds is None else seconds
                self._deadline = time.monotonic() + patience
            self._lock.notify_all()
        self._thread.join()
        if self._queued:
            raise ArchiveError(
                f"archive {self._root}: {self._queued} bytes of rows were not made durable"
                f" ({self.failure}); their sources will deliver them again"
            )

    def _fits(self, record: bytes) -> bool:
        return not self._queued or self._queued + len(record) <= self._options.queue_bytes

    def _write_at_once(self, record: bytes) -> bool:
        """Give the record to the kernel; False when that may take longer than it should."""
        if self._queued or self.failure or not self._writing.acquire(blocking=False):
            return False
        try:
            if self._closing or self._ended or not self._journal.under_way:
                return False
            self._journal.write(record)
        except OSError:
            return False  # the thread tries again, and tells
        finally:
            self._writing.release()
        return True

    def _run(self) -> None:
        try:
            while taken := self._take():
                if not self._commit(taken):
                    break
            with self._writing:
                self._journal.close(self._deadline - time.monotonic())
        finally:
            with self._lock:
                self._ended = True
                self._lock.notify_all()

    def _take(self) -> list[_Queued]:
        """All that is queued, waiting for it; nothing once the writer is closed and empty."""
        while True:
            self._try(self._journal.tend)
            with self._lock:
                if not self._queue and not self._closing:
                    self._lock.wait(self._journal.pause())
                if self._queue or self._closing:
                    taken, self._queue = self._queue, []
                    return taken

    def _commit(self, taken: list[_Queued]) -> bool:
        """Make the rows durable, however long it takes; False when closing came first."""
        records = b"".join(record for record, _ in taken)
        while not self._try(lambda: self._journal.write(records)):
            if time.monotonic() + self._options.retry_seconds > self._deadline:
                return False
            time.sleep(self._options.retry_seconds)
        with self._lock:
            self._queued -= len(records)
            self._lock.notify_all()
        for _, durable in taken:
            durable()
        return True

    def _try(self, step: Callable[[], None]) -> bool:
        """Whether `step` worked; a change from one to the other is logged and reported."""
        try:
            with self._writing:
                step()
        except OSError as error:
            first, self.failure = self.failure is None, _error(self._root, error)
            if first:
                log.error("%s; rows wait, and nothing is settled until it works", self.failure)  # noqa: TRY400  # a full disk needs no traceback
                self._changed(self.failure)
            return False
        if self.failure is not None:
            self.failure = None
            log.warning("archive %s: works again", self._root)
            self._changed(None)
        return True


def _error(root: Path, error: OSError) -> ArchiveError:
    failure = ArchiveError(f"archive {root}: {error}")
    failure.__cause__ = error
    return failure
