"""One client connection of the YAMI4 broker: messages received, and bytes to be written."""

from __future__ import annotations

import socket
from collections import deque
from dataclasses import dataclass

from gateway.errors import WireError
from gateway.trial.brokers.yami4.matching import PatternList
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, Packet

READ_SIZE = 262_144


@dataclass(slots=True, eq=False)
class SubscriptionRow:
    """A row of the subscription table; `pending` counts updates that are not fully written.

    Mutable: its counters change with each update.
    """

    patterns: PatternList
    destination: bytes
    client: ClientConnection
    pending: int = 0
    sent_messages: int = 0
    sent_bytes: int = 0


@dataclass(slots=True)
class BufferUsage:
    """Bytes that all connections hold: unwritten ones, and those of incomplete messages.

    Mutable: each connection adds and subtracts its own.
    """

    limit: int
    held: int = 0

    @property
    def is_full(self) -> bool:
        return self.held > self.limit


class ClientConnection:
    """A connected socket with its unwritten bytes; `failed` once it has to be closed.

    Mutable: owned by the thread of the server.
    """

    def __init__(
        self, connection: socket.socket, location: str, limits: FrameLimits, usage: BufferUsage
    ) -> None:
        self.connection, self.location = connection, location
        self.failed = False
        self.unwritten = 0
        self._usage = usage
        self._decoder = FrameDecoder(limits)
        self._joined = memoryview(b"")  # the unwritten bytes to be sent next
        self._posted: list[bytes] = []
        self._posted_bytes = 0  # in total
        # the end of each update, counted in posted bytes
        self._ends: deque[tuple[int, SubscriptionRow]] = deque()

    def read(self) -> list[Packet]:
        """Return the messages that have arrived; set `failed` for a broken or closed stream."""
        before = self._decoder.held
        packets = self._receive()
        self._usage.held += self._decoder.held - before
        if self._usage.is_full and self._decoder.held:
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

    def post(self, data: bytes, subscription: SubscriptionRow | None = None) -> None:
        """Queue bytes for the client; `flush` writes them."""
        self._posted.append(data)
        self._posted_bytes += len(data)
        self.unwritten += len(data)
        self._usage.held += len(data)
        if subscription is not None:
            subscription.pending += 1
            self._ends.append((self._posted_bytes, subscription))

    def flush(self) -> None:
        """Write the bytes that the socket takes now."""
        try:
            while self.unwritten:
                if not self._joined:
                    self._joined = memoryview(b"".join(self._posted))
                    self._posted.clear()
                size = self.connection.send(self._joined)
                self._joined = self._joined[size:]
                self.unwritten -= size
                self._usage.held -= size
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.failed = True
        self._count_written()

    def close(self) -> None:
        """Close the socket and drop its unwritten bytes."""
        self.connection.close()
        self._usage.held -= self.unwritten + self._decoder.held
        self.failed = True

    def _count_written(self) -> None:
        written, ends = self._posted_bytes - self.unwritten, self._ends
        while ends and ends[0][0] <= written:
            ends.popleft()[1].pending -= 1
