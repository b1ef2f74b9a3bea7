"""What a connection still has to get: joined writes, bounded; it knows no protocol."""

from __future__ import annotations

from asyncio import Transport
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.wire.smf.frames import DISCARDED

CHUNK: Final = 1 << 20  # bytes handed to the transport at once


@dataclass(slots=True)
class Memory:
    """What all connections hold, unwritten and incomplete; each of them books into it."""

    limit: int
    held: int = 0


class Outbox:
    """Mutable: a queue of whole messages in front of one transport."""

    def __init__(
        self,
        transport: Transport,
        limit: int,
        memory: Memory,
        dirty: list[Outbox],
        eased: Callable[[], None],
    ) -> None:
        """`eased` is called when it was busy and is no longer."""
        self._transport, self._limit, self._memory, self._dirty = transport, limit, memory, dirty
        self._eased = eased
        self._waiting: deque[bytes] = deque()
        self._unwritten = self._booked = 0
        self._paused = self._dropped = self._marked = False
        transport.set_write_buffer_limits(high=CHUNK, low=CHUNK // 4)

    @property
    def is_busy(self) -> bool:
        """Whether guaranteed messages should wait in their queue."""
        return self._paused or self._unwritten > CHUNK

    def relay(self, frame: bytes) -> None:
        """Add a direct message; when the client is too slow it is dropped, as real brokers do."""
        if self._unwritten > self._limit or (
            self._unwritten and self._memory.held > self._memory.limit
        ):
            self._dropped = True
            return
        if self._dropped:
            self._dropped = False
            frame = bytes((frame[0] | DISCARDED,)) + frame[1:]
        self._waiting.append(frame)
        self._unwritten += len(frame)
        if not self._marked:
            self._marked = True
            self._dirty.append(self)

    def post(self, frame: bytes) -> None:
        """Add what must not be dropped; a client that never reads its answers is cut off."""
        self._waiting.append(frame)
        self._unwritten += len(frame)
        if not self._marked:
            self._marked = True
            self._dirty.append(self)
        if self._unwritten > 2 * self._limit:
            self._transport.abort()

    def flush(self) -> None:
        """Write what the transport takes; `resume` goes on with the rest."""
        self._write(eases=self._unwritten > CHUNK)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._write(eases=True)

    def _write(self, *, eases: bool) -> None:
        self._marked = False
        while self._waiting and not self._paused:
            if self._unwritten <= CHUNK:
                data = b"".join(self._waiting)
                self._waiting.clear()
            else:
                data = self._next_chunk()
            self._unwritten -= len(data)
            self._transport.write(data)
        self._memory.held += self._unwritten - self._booked
        self._booked = self._unwritten
        if eases and not self.is_busy:
            self._eased()

    def close(self) -> None:
        """Forget everything that was not written."""
        self._waiting.clear()
        self._memory.held -= self._booked
        self._unwritten = self._booked = 0
        self._paused = True

    def _next_chunk(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while self._waiting and size < CHUNK:
            parts.append(self._waiting.popleft())
            size += len(parts[-1])
        return b"".join(parts)
