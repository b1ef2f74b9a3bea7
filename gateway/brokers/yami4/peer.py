"""One connection of the YAMI4 broker: what it has sent and what it still has to get."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass

from gateway.brokers.yami4.matching import PatternList
from gateway.errors import WireError
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, Packet

READ_SIZE = 262_144


@dataclass(slots=True, eq=False)
class Subscription:
    """A row of the table; `pending` counts its updates that are not completely written."""

    patterns: PatternList
    destination: bytes
    peer: Peer
    pending: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0


@dataclass(slots=True)
class Memory:
    """What all connections hold together, unwritten and incomplete; every peer books into it."""

    limit: int
    held: int = 0

    @property
    def is_full(self) -> bool:
        return self.held > self.limit


class Peer:
    """A connected socket with its unwritten bytes; `failed` once it is of no more use."""

    def __init__(
        self, connection: socket.socket, location: str, limits: FrameLimits, memory: Memory
    ) -> None:
        self.connection, self.location = connection, location
        self.failed = False
        self.unwritten = 0
        self._memory = memory
        self._decoder = FrameDecoder(limits)
        self._joined = memoryview(b"")  # the part of `unwritten` handed to the kernel next
        self._posted: list[bytes] = []
        self._stream = 0  # bytes ever posted
        self._ends: deque[tuple[int, Subscription]] = deque()  # where each update ends in it

    def read(self) -> list[Packet]:
        """Return the messages that have arrived; a broken or closed stream sets `failed`."""
        before = self._decoder.held
        packets = self._receive()
        self._memory.held += self._decoder.held - before
        if self._memory.is_full and self._decoder.held:
            self.failed = True
        return packets

    def _receive(self) -> list[Packet]:
        try:
            data = self.connection.recv(READ_SIZE)
            packets = self._decoder.feed(data) if data else []
        except (BlockingIOError, InterruptedError):
            return []
        except (OSError, WireError):
            self.failed = True
            return []
        if not data or self._decoder.fault is not None:
            self.failed = True
        return packets

    def post(self, data: bytes, subscription: Subscription | None = None) -> None:
        """Queue bytes for the peer; `flush` writes them."""
        self._posted.append(data)
        self._stream += len(data)
        self.unwritten += len(data)
        self._memory.held += len(data)
        if subscription is not None:
            subscription.pending += 1
            self._ends.append((self._stream, subscription))

    def flush(self) -> None:
        """Write what the kernel takes now."""
        try:
            while self.unwritten:
                if not self._joined:
                    self._joined = memoryview(b"".join(self._posted))
                    self._posted.clear()
                size = self.connection.send(self._joined)
                self._joined = self._joined[size:]
                self.unwritten -= size
                self._memory.held -= size
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.failed = True
        self._count_written()

    def close(self) -> None:
        """Close the socket and forget what it still had to get."""
        self.connection.close()
        self._memory.held -= self.unwritten + self._decoder.held
        self.failed = True

    def _count_written(self) -> None:
        written, ends = self._stream - self.unwritten, self._ends
        while ends and ends[0][0] <= written:
            ends.popleft()[1].pending -= 1
