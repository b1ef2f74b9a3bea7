"""The journal of a broker with a store: a file with one record for each change, in order.

A record is its length, its checksum and msgpack data. Records of messages and publishers are
synchronised with the disk before the publisher gets its acknowledgement. Records of settled or
delivered messages are not: losing one causes a redelivery and no loss.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from enum import IntEnum
from io import FileIO
from pathlib import Path
from struct import Struct
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgpack

from gateway.archive.durable import sync_folder
from gateway.errors import EndpointError
from gateway.file_lock import FileLock

log = logging.getLogger(__name__)

JOURNAL_NAME: Final = "journal"
MAX_JOURNAL_BYTES: Final = 64 << 20  # the file is compacted past this size
_HEAD: Final = Struct(">II")


class RecordType(IntEnum):
    """Types of record; the comments list the values behind the name of the VPN."""

    QUEUE = 0  # name, whether it is exclusive
    QUEUE_REMOVED = 1  # name
    TOPIC = 2  # queue, topic
    TOPIC_REMOVED = 3  # queue, topic
    MESSAGE = 4  # queue, number, topic, flags, parameters, body
    SETTLED = 5  # queue, numbers
    DELIVERED = 6  # queue, the highest number delivered
    PUBLISHER = 7  # flow name, last id


Record: TypeAlias = tuple[Any, ...]  # a type, the name of a VPN, and values
_SYNCHRONISED_TYPES: Final = frozenset(RecordType) - {RecordType.SETTLED, RecordType.DELIVERED}


class BrokerJournal:
    """An open, locked file, and records that wait for `commit`.

    Mutable: owned by the broker's event loop.
    """

    def __init__(self, folder: Path) -> None:
        """Open or create the journal in `folder`.

        Raises:
            EndpointError: the folder cannot be used, or another broker uses it.
        """
        self._path = folder / JOURNAL_NAME
        self._waiting: list[bytes] = []
        self._must_synchronise = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / "lock", "another broker uses it; stop that one")
            self._file = self._open()
        except OSError as error:
            raise EndpointError(f"smf broker: cannot use the store {folder}: {error}") from error
        self.size = self._file.tell()

    def records(self) -> Iterator[Record]:
        """Yield the written records, without a last one that a crash has truncated."""
        with self._path.open("rb") as file:
            while head := file.read(_HEAD.size):
                body = b""
                if len(head) == _HEAD.size:
                    length, checksum = _HEAD.unpack(head)
                    body = file.read(length)
                    if body and len(body) == length and crc32(body) == checksum:
                        yield tuple(msgpack.unpackb(body))
                        continue
                rest = len(head) + len(body) + len(file.read())
                log.warning("smf broker: the last %s bytes of %s are no record", rest, self._path)

    def append(self, kind: RecordType, vpn: str, *values: object) -> None:
        """Add a record to the next `commit`."""
        self._waiting.append(_encode((kind, vpn, *values)))
        self._must_synchronise = self._must_synchronise or kind in _SYNCHRONISED_TYPES

    def commit(self) -> None:
        """Write the waiting records.

        Raises:
            OSError: they may not be on disk.
        """
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting.clear()
        written = 0
        while written < len(data):
            written += self._file.write(memoryview(data)[written:])
        if self._must_synchronise:
            os.fsync(self._file.fileno())
            self._must_synchronise = False
        self.size += len(data)

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the file's records atomically."""
        self._waiting.clear()
        new_file = self._path.with_suffix(".new")
        with new_file.open("wb") as file:
            file.writelines(map(_encode, records))
            file.flush()
            os.fsync(file.fileno())
        self._file.close()
        new_file.replace(self._path)
        sync_folder(self._path.parent)
        self._file = self._open()
        self.size = self._file.tell()

    def close(self) -> None:
        try:
            self.commit()
        except OSError as error:  # its records are not acknowledged
            log.error("smf broker: the store cannot be written: %s", error)  # noqa: TRY400  # the reason is enough
        self._file.close()
        self._lock.close()

    def _open(self) -> FileIO:
        """Open without Python's buffer, which would write at any time."""
        return self._path.open("ab", buffering=0)


def _encode(record: Record) -> bytes:
    body: bytes = msgpack.packb(record)
    return _HEAD.pack(len(body), crc32(body)) + body
