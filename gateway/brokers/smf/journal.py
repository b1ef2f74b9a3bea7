"""The file of a broker that has a store: records in the order of what happened.

A record is its length, its checksum and msgpack. What a publisher is told to be safe has been
synchronised with the disk before it is told; that a message was settled or handed out is written
without waiting, for forgetting it costs a repetition and no message.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from enum import IntEnum
from io import FileIO
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final, TypeAlias
from zlib import crc32

import msgpack

from gateway.errors import EndpointError

log = logging.getLogger(__name__)

NAME: Final = "journal"
ROOM: Final = 64 << 20  # bytes a journal may take before it is written anew
_HEAD: Final = Struct(">II")


class Step(IntEnum):
    """What a record says, with what follows the VPN's name."""

    QUEUE = 0  # name, whether it is exclusive
    QUEUE_GONE = 1  # name
    TOPIC = 2  # queue, topic
    TOPIC_GONE = 3  # queue, topic
    MESSAGE = 4  # queue, number, topic, flags, parameters, body
    SETTLED = 5  # queue, numbers
    HANDED_OUT = 6  # queue, the highest number so far
    PUBLISHER = 7  # flow name, last id


Record: TypeAlias = tuple[Any, ...]  # a step, the name of a VPN, and what the step takes
_SYNCHRONISED: Final = frozenset(Step) - {Step.SETTLED, Step.HANDED_OUT}


class Journal:
    """Mutable: an open file that nobody else writes, and records that wait for `commit`."""

    def __init__(self, folder: Path) -> None:
        """Raises: EndpointError: the folder cannot be used, or another broker uses it."""
        self._path = folder / NAME
        self._waiting: list[bytes] = []
        self._is_pressing = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
            self._file = self._open()
        except OSError as error:
            raise EndpointError(f"smf broker: cannot use the store {folder}: {error}") from error
        self.size = self._file.tell()

    def records(self) -> Iterator[Record]:
        """What was written, up to a record that a crash has cut."""
        with self._path.open("rb") as file:
            while head := file.read(_HEAD.size):
                body = b""
                if len(head) == _HEAD.size:
                    length, checksum = _HEAD.unpack(head)
                    body = file.read(length)
                    if body and len(body) == length and crc32(body) == checksum:
                        yield tuple(msgpack.unpackb(body))
                        continue
                left = len(head) + len(body) + len(file.read())
                log.warning("smf broker: the last %s bytes of %s are no record", left, self._path)

    def note(self, step: Step, vpn: str, *facts: object) -> None:
        """Keep a record for the next `commit`."""
        self._waiting.append(_encode((step, vpn, *facts)))
        self._is_pressing = self._is_pressing or step in _SYNCHRONISED

    def commit(self) -> None:
        """Write what waits; raises OSError when it is not safe afterwards."""
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting.clear()
        written = 0
        while written < len(data):
            written += self._file.write(memoryview(data)[written:])
        if self._is_pressing:
            os.fsync(self._file.fileno())
            self._is_pressing = False
        self.size += len(data)

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the file by these records; a crash leaves the old one or the new one."""
        self._waiting.clear()
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as file:
            file.writelines(map(_encode, records))
            file.flush()
            os.fsync(file.fileno())
        self._file.close()
        fresh.replace(self._path)
        _synchronise(self._path.parent)
        self._file = self._open()
        self.size = self._file.tell()

    def close(self) -> None:
        try:
            self.commit()
        except OSError as error:  # nobody was told of what is in it
            log.error("smf broker: the store cannot be written: %s", error)  # noqa: TRY400  # no fault of ours
        self._file.close()
        self._lock.close()

    def _open(self) -> FileIO:
        """Without a buffer of Python's, which would write at its own time."""
        return self._path.open("ab", buffering=0)


def _locked(path: Path) -> BinaryIO:
    """`path`, open for nobody else; raises OSError when somebody has it."""
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def _encode(record: Record) -> bytes:
    body: bytes = msgpack.packb(record)
    return _HEAD.pack(len(body), crc32(body)) + body


def _synchronise(folder: Path) -> None:
    """Make the new name of a file in `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
