"""The archive writer: durable rows with group commit, and a callback for each append.

One thread takes all queued rows, writes them once, makes them durable once and then calls the
callbacks: the disk's latency is paid once for all rows that arrived meanwhile. Rows that nobody
awaits wait for others for a short time, so that wake-ups and writes are paid once for many. With
`sync: interval` a caller writes its rows itself when no row is queued before them: that costs less
than a wake-up of the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from gateway.archive.journal.local_head import LocalHead
from gateway.archive.journal.records import Cell, Rows, pack
from gateway.archive.journal.rolling import ArchiveOptions, RollingJournal, WaitingJournals
from gateway.archive.layout import writer_name
from gateway.archive.location import ArchiveLocation
from gateway.archive.signed_json import NO_TERM, Term
from gateway.clock import Clock, now
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

JOIN_SECONDS: Final = 0.02  # for which rows that nobody awaits wait for others

DurableCallback: TypeAlias = Callable[[], None]
_QueuedRecord: TypeAlias = tuple[bytes, int, DurableCallback]  # a record, and its rows


class ArchiveWriter:
    """A thread, the journal, and the rows that are not durable yet.

    Thread-safe: guarded by self._lock; the journal by self._journal_lock.
    """

    def __init__(  # noqa: PLR0913  # the archive, its writer, and a clock
        self,
        root: Path | ArchiveLocation,
        gateway: str,
        start: int,
        options: ArchiveOptions | None = None,
        *,
        instance: str = "",
        lease: Term = NO_TERM,
        replay: bool = False,
        clock: Clock = now,
    ) -> None:
        """Open the archive for `gateway`, and convert the journals of an earlier run.

        `root` is a local folder, or the location of a remote archive. `start` is the start of the
        process in microseconds; `instance` and `lease` are those of a pair. With `replay` it is no
        gateway, and may run beside one of this name. `clock` returns microseconds since 1970-01-01
        UTC.

        Raises:
            ArchiveError: another process is this writer, or the folder cannot be written.
        """
        location = root if isinstance(root, ArchiveLocation) else ArchiveLocation(root)
        self._root = location.local
        self._options = options or ArchiveOptions()
        self._common: dict[str, Cell] = {"gateway": gateway}
        self._lock = threading.Condition()
        self._journal_lock = threading.Lock()
        self._queue: list[_QueuedRecord] = []
        self.queued_bytes = 0  # of rows that wait for the disk
        self._due = 0.0  # monotonic seconds; when the queue is written
        self._closing = self._ended = False
        self._journal_ended = threading.Event()
        self._deadline = float("inf")
        self.failure: ArchiveError | None = None
        writer, key = writer_name(gateway, instance, replay=replay), self._options.seal_key
        head = LocalHead(self._root, gateway, writer, key, clock, instance, lease)
        self._journal = RollingJournal(location, head, start, self._options)
        self._thread = threading.Thread(target=self._run, name="archive", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> WaitingJournals:
        """The journals that are not converted yet."""
        return self._journal.backlog

    def append(
        self, batches: Sequence[Rows], on_durable: DurableCallback, *, awaited: bool = True
    ) -> None:
        """Write the rows; all rows of one call become durable together, or none.

        `on_durable` is called once, perhaps before this returns, and must be short. If it is not
        `awaited`, it may come `JOIN_SECONDS` later. Blocks while the queue is full, so that a slow
        disk slows the caller.

        Raises:
            ArchiveError: the writer is closed; no row was written.
            ValueError: a column is unknown or has another length.
        """
        record = pack(batches, self._common)
        rows = sum(batch.count for batch in batches)
        if self._options.sync == "interval" and self._write_directly(record, rows):
            on_durable()
            return
        with self._lock:
            if not self._fits(record):
                self._write_now()
            self._lock.wait_for(lambda: self._closing or self._ended or self._fits(record))
            if self._closing or self._ended:
                raise ArchiveError(f"archive {self._root}: is closed; nothing was written")
            is_first = not self._queue
            self._queue.append((record, rows, on_durable))
            self.queued_bytes += len(record)
            if awaited:
                self._write_now()
            elif is_first:
                self._due = time.monotonic() + JOIN_SECONDS
                self._lock.notify_all()

    def end(self, timeout: float) -> None:
        """Write the queued rows and end the journal, within `timeout` seconds; `close` follows."""
        self._begin_to_close(timeout)
        self._journal_ended.wait(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Write the queued rows, convert the journal, and stop. Safe to call twice.

        `timeout` in seconds replaces `ArchiveOptions.close_seconds`. The next start converts a
        journal that is left.

        Raises:
            ArchiveError: rows could not be made durable in time; their callbacks were not called.
        """
        self._begin_to_close(timeout)
        self._thread.join()
        if self.queued_bytes:
            raise ArchiveError(
                f"archive {self._root}: {self.queued_bytes} bytes of rows were not made durable"
                f" ({self.failure}); their sources will deliver them again"
            )

    def _begin_to_close(self, timeout: float | None) -> None:
        with self._lock:
            if not self._closing:
                self._closing = True
                seconds = self._options.close_seconds if timeout is None else timeout
                self._deadline = time.monotonic() + seconds
            self._lock.notify_all()

    def _write_now(self) -> None:
        self._due = 0.0
        self._lock.notify_all()

    def _fits(self, record: bytes) -> bool:
        return not self.queued_bytes or self.queued_bytes + len(record) <= self._options.queue_bytes

    def _write_directly(self, record: bytes, rows: int) -> bool:
        """Write the record in this thread; return False when the archive thread must do it."""
        if self.queued_bytes or self.failure or not self._journal_lock.acquire(blocking=False):
            return False
        try:
            if self._closing or self._ended or not self._journal.can_append:
                return False
            self._journal.write(record, rows)
        except OSError:
            return False  # the archive thread tries again, and reports the failure
        finally:
            self._journal_lock.release()
        return True

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                if not self._commit(batch):
                    break
            with self._journal_lock:
                self._journal.end()
            self._journal_ended.set()
            with self._journal_lock:
                self._journal.close(self._deadline - time.monotonic())
        finally:
            self._journal_ended.set()
            with self._lock:
                self._ended = True
                self._lock.notify_all()

    def _next_batch(self) -> list[_QueuedRecord]:
        """Wait for records and take all; return none when the writer is closed and empty."""
        while True:
            worked = self._try(self._journal.maintain)
            with self._lock:
                if not self._queue and not self._closing:
                    # A failed roll stays due: after midnight, at once and again and again.
                    pause = self._options.retry_seconds
                    self._lock.wait(self._journal.next_maintenance() if worked else pause)
                self._await_due()
                if self._queue or self._closing:
                    batch, self._queue = self._queue, []
                    return batch

    def _await_due(self) -> None:
        """Wait, with the lock held, until the rows in the queue are to be written."""
        while self._queue and not self._closing:
            left = self._due - time.monotonic()
            if left <= 0:
                return
            self._lock.wait(left)

    def _commit(self, batch: list[_QueuedRecord]) -> bool:
        """Make the rows durable, with retries; return False when the closing deadline passes."""
        records = b"".join(record for record, _, _ in batch)
        rows = sum(count for _, count, _ in batch)
        while not self._try(lambda: self._journal.write(records, rows)):
            if time.monotonic() + self._options.retry_seconds > self._deadline:
                return False
            time.sleep(self._options.retry_seconds)
        with self._lock:
            self.queued_bytes -= len(records)
            self._lock.notify_all()
        for _, _, on_durable in batch:
            on_durable()
        return True

    def _try(self, step: Callable[[], None]) -> bool:
        """Run `step` and return whether it worked; log the first failure and the recovery."""
        try:
            with self._journal_lock:
                step()
        except OSError as error:
            is_first = self.failure is None
            self.failure = ArchiveError(f"archive {self._root}: {error}")
            self.failure.__cause__ = error
            if is_first:
                log.error("%s; rows wait, and no message is settled until it works", self.failure)  # noqa: TRY400  # a full disk needs no traceback
            return False
        if self.failure is not None:
            self.failure = None
            log.warning("archive %s: works again", self._root)
        return True
