"""A lock in a bucket or in HDFS, which have none: a folder in which each contender has a file.

A contender writes its file and lists the folder; it holds the lock when no other file is there.
Both systems list what is written at that moment (S3 does since December 2020), so of two
contenders at least the later one to list sees both files. It gives up when the name of the other
one is smaller, and else waits until the other one has given up.

The holder writes its next file, and then removes the one before, when it has the lock and every
minute. A contender without a file of the last 15 minutes counts no more; only the clock of the
store decides that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Final, TypeAlias
from uuid import uuid4

from gateway.archive.storage import RemoteStorage
from gateway.clock import boot_seconds
from gateway.errors import ReconcileError

EXPIRY: Final = timedelta(minutes=15)
_RENEWALS: Final = 15  # in `EXPIRY`
_LIMIT: Final = 0.6  # of `EXPIRY`: a holder without a renewal for so long has lost the lock
_POLL_INTERVAL: Final = 0.2  # seconds
_CONTENDS: Final = ".000000"  # the number of the first file: its writer does not hold the lock yet
_CONTENTION_TIMEOUT: Final = 30.0  # seconds, for another contender to give up

CheckHeld: TypeAlias = Callable[[], None]


@contextmanager
def remote_lock(  # the place, its holder, and the texts of errors
    storage: RemoteStorage,
    folder: Path,
    holder: str,
    *,
    place: str,
    conflict: str,
    expiry: timedelta = EXPIRY,
) -> Iterator[CheckHeld]:
    """Hold the lock `folder`; the yielded function raises ReconcileError when it was lost.

    `place` is the URL of the archive, for error texts. `conflict` completes the text when another
    process holds the lock: what is running, and what to do.

    Raises:
        ReconcileError: another process holds it; the text names it, and how its lock ends.
        OSError: the storage cannot be reached.
    """
    lock = _Contender(storage, folder, holder, expiry)

    def check_held() -> None:
        if not lock.is_held():
            raise ReconcileError(
                f"{place}/{folder}: the lock of this run was removed, or could not be renewed;"
                " nothing was replaced; start the run again"
            )

    try:
        found = lock.acquire()
        if found is not None:
            other = "another process"
            with suppress(OSError):  # it may be gone by now
                other = (storage.read(found) or other.encode()).decode(errors="replace")
            raise ReconcileError(
                f"{place}/{folder}: {conflict}; it is {other.strip()}. The lock of a run that was"
                f" killed ends after {expiry.total_seconds() / 60:.0f} minutes; to start earlier,"
                f" remove {place}/{found}"
            )
        yield check_held
    finally:
        lock.release()


class _Contender:
    """One process that wants the lock, or holds it.

    Mutable: written by the thread that renews from `acquire` to `release`, else by the caller's.
    """

    def __init__(
        self, storage: RemoteStorage, folder: Path, holder: str, expiry: timedelta
    ) -> None:
        self._storage, self._folder, self._expiry = storage, folder, expiry
        self._name, self._numbers = uuid4().hex, count()
        self._file: Path | None = None  # the newest
        self._renewed = 0.0  # when that was begun
        self._content = holder.encode()
        self._ended = Event()
        self._keeper = Thread(target=self._keep, name="lock", daemon=True)

    def acquire(self) -> Path | None:
        """Return None when the lock is held now, else the file of its holder.

        Raises:
            OSError: the storage cannot be reached.
        """
        self._renew()
        deadline = boot_seconds() + _CONTENTION_TIMEOUT
        while others := self._others():
            winner = min(others, key=lambda file: (file.endswith(_CONTENDS), file))
            if not winner.endswith(_CONTENDS) or winner < self._name or boot_seconds() > deadline:
                return self._folder / winner
            self._ended.wait(_POLL_INTERVAL)
        self._renew()
        # It may have been suspended since it listed them, until its first file was too old.
        if holders := [file for file in self._others() if not file.endswith(_CONTENDS)]:
            return self._folder / holders[0]
        self._keeper.start()
        return None

    def is_held(self) -> bool:
        """Return whether the lock is still held.

        Raises:
            OSError: the storage cannot be reached.
        """
        unrenewed = boot_seconds() - self._renewed
        limit = self._expiry.total_seconds() * _LIMIT
        return unrenewed < limit and self._name in self._contenders()

    def release(self) -> None:
        """Remove the own files; one that cannot be removed expires.

        An earlier file is left when its removal failed, or when the answer to its writing was lost.
        """
        self._ended.set()
        if self._keeper.is_alive():
            self._keeper.join()
        with suppress(OSError):
            for file in self._storage.written(self._folder):
                if file.startswith(self._name):
                    with suppress(OSError):
                        self._storage.delete(self._folder / file)

    def _others(self) -> list[str]:
        """Return the newest file of each other contender; those that expired are removed."""
        found = self._contenders()
        if self._name not in found:
            raise OSError(f"{self._folder}: the file of this run was removed; start it again")
        own, _ = found.pop(self._name)
        expired = {file for at, file in found.values() if own - at > self._expiry}
        for file in expired:
            self._storage.delete(self._folder / file)
        return [file for _, file in found.values() if file not in expired]

    def _contenders(self) -> dict[str, tuple[datetime, str]]:
        """Return the newest file of each contender, with its time."""
        listed = sorted(self._storage.written(self._folder).items())
        return {file.partition(".")[0]: (at, file) for file, at in listed}

    def _keep(self) -> None:
        interval = self._expiry.total_seconds() / _RENEWALS
        while not self._ended.wait(interval):
            with suppress(OSError):  # the next renewal may succeed
                if not self.is_held():  # else a process that was suspended would take it back
                    return
                self._renew()

    def _renew(self) -> None:
        before, began = self._file, boot_seconds()
        file = self._folder / f"{self._name}.{next(self._numbers):06}"
        self._storage.put(file, self._content)
        self._file, self._renewed = file, began
        if before is not None:
            self._storage.delete(before)
