"""One journal file: records are appended and made durable.

An open journal is locked, so that no converter takes it. The lock ends with its process. A second
file has the number of acknowledged bytes, which survives the process but not the machine: a
journal that is shorter has lost acknowledged rows.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.archive.durable import read_regular, sync_data, sync_folder
from gateway.archive.journal.claim_and_removal import lock_new
from gateway.archive.journal.ends import Head, Trailer
from gateway.archive.layout import ACK
from gateway.archive.signed_json import Previous, new_hash

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_SIZE: Final = struct.Struct("<Q")


class Journal:
    """An open journal: its descriptors, its hash, and the size of its acknowledged content.

    Mutable: owned by the thread that writes it.
    """

    def __init__(self, path: Path, head: Head, key: bytes | None = None) -> None:
        """Create and lock `path`, and write its `head`; with a `key` the trailer is signed.

        Raises:
            OSError: the file exists, or cannot be written.
        """
        self.path, self.head = path, head
        self._acknowledged = os.open(path.with_suffix(ACK), _NEW, 0o640)
        self._file = -1
        content = head.pack()
        try:
            os.pwrite(self._acknowledged, _SIZE.pack(0), 0)  # takes its disk space now
            self._file = os.open(path, _NEW | os.O_APPEND, 0o640)
            lock_new(path, self._file)
            _write(self._file, content)
            sync_data(self._file)  # before a head names it: an empty journal is a lost one then
            sync_folder(path.parent)
        except OSError:
            self.discard()
            raise
        self._hash = new_hash(key, content)
        self._first_size = self.size = len(content)  # of complete records
        self.rows = self._records = 0
        self._has_torn_tail = False

    @property
    def empty(self) -> bool:
        return self.size == self._first_size

    def append(self, records: bytes, rows: int, *, sync: bool) -> None:
        """Write complete records with this number of `rows`; with `sync` they are durable then.

        The first call after an OSError cuts the incomplete write.

        Raises:
            OSError: an unknown part was written; none of the records counts.
        """
        self._write(records, sync=sync)
        self._hash.update(records)
        self.rows += rows
        self._records += 1

    def sync(self) -> None:
        """Make all appended records durable."""
        sync_data(self._file)

    def finish(self, closed: int, *, stopped: bool) -> Previous:
        """Write the trailer, and make all durable; return this journal as a predecessor.

        `closed` is the time in microseconds; `stopped` says whether no other journal follows now.

        Raises:
            OSError: the trailer was not written; the journal can still be appended to.
        """
        digest = self._hash.hexdigest()
        trailer = Trailer(self.rows, self._records, self.size, digest, closed, stopped)
        self._write(trailer.pack(), sync=True)
        return Previous(self.path.stem, digest, closed)

    def close(self) -> None:
        """Cut an incomplete write, make the rest durable, and unlock; never raises."""
        try:
            os.ftruncate(self._file, self.size)
            sync_data(self._file)
        except OSError:
            pass  # acknowledged records are durable already; the converter cuts a torn tail
        finally:
            os.close(self._file)
            os.close(self._acknowledged)

    def _write(self, records: bytes, *, sync: bool) -> None:
        if self._has_torn_tail:
            os.ftruncate(self._file, self.size)
        self._has_torn_tail = True
        _write(self._file, records)
        if sync:
            sync_data(self._file)
        size = self.size + len(records)
        os.pwrite(self._acknowledged, _SIZE.pack(size), 0)
        self.size = size
        self._has_torn_tail = False

    def discard(self) -> None:
        """Close and remove the files of a journal that has no rows, and that no head names."""
        if self._file >= 0:
            os.close(self._file)
            self.path.unlink(missing_ok=True)
        os.close(self._acknowledged)
        self.path.with_suffix(ACK).unlink(missing_ok=True)


def acknowledged_size(path: Path) -> int | None:
    """Return the acknowledged bytes of the journal at `path`; None when their file is absent.

    A crash of the machine may leave an older number, or none, which counts as 0.
    """
    with suppress(FileNotFoundError):
        content = read_regular(path.with_suffix(ACK))
        return _SIZE.unpack(content)[0] if len(content) == _SIZE.size else 0
    return None


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
