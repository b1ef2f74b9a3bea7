"""Whole messages that wait for one connection: joined into large writes, and bounded."""

from __future__ import annotations

from asyncio import Transport
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.wire.smf.frames import DISCARDED

CHUNK: Final = 1 << 20  # bytes of one write to the transport


@dataclass(slots=True)
class MemoryBudget:
    """Bytes that all connections hold, unwritten or incomplete; each connection adds its share.

    Mutable: owned by the broker's event loop.
    """

    limit: int
    held: int = 0


class WriteBuffer:
    """A queue of whole messages in front of one transport.

    Mutable: owned by the broker's event loop.
    """

    def __init__(
        self,
        transport: Transport,
        limit: int,
        memory: MemoryBudget,
        unflushed: list[WriteBuffer],
        on_ready: Callable[[], None],
    ) -> None:
        """Keep `on_ready`, which is called when the buffer stops being busy."""
        self._transport, self._limit = transport, limit
        self._memory, self._unflushed = memory, unflushed
        self._on_ready = on_ready
        self._waiting: deque[bytes] = deque()
        self._unwritten = self._counted = 0
        self._paused = self._dropped = self._is_listed = False
        transport.set_write_buffer_limits(high=CHUNK, low=CHUNK // 4)

    @property
    def is_busy(self) -> bool:
        """Return whether guaranteed messages wait in their queue."""
        return self._paused or self._unwritten > CHUNK

    def relay(self, frame: bytes) -> None:
        """Add a direct message, or drop it when the client is too slow, as Solace brokers do."""
        if self._unwritten > self._limit or (
            self._unwritten and self._memory.held > self._memory.limit
        ):
            self._dropped = True
            return
        if self._dropped:
            self._dropped = False
            frame = bytes((frame[0] | DISCARDED,)) + frame[1:]
        self._add(frame)

    def post(self, frame: bytes) -> None:
        """Add a message that must not be dropped; disconnect a client that does not read."""
        self._add(frame)
        if self._unwritten > 2 * self._limit:
            self._transport.abort()

    def _add(self, frame: bytes) -> None:
        self._waiting.append(frame)
        self._unwritten += len(frame)
        if not self._is_listed:
            self._is_listed = True
            self._unflushed.append(self)

    def flush(self) -> None:
        """Write as much as the transport accepts; `resume` writes the rest."""
        self._write(makes_room=self._unwritten > CHUNK)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._write(makes_room=True)

    def _write(self, *, makes_room: bool) -> None:
        self._is_listed = False
        while self._waiting and not self._paused:
            if self._unwritten <= CHUNK:
                data = b"".join(self._waiting)
                self._waiting.clear()
            else:
                data = self._next_chunk()
            self._unwritten -= len(data)
            self._transport.write(data)
        self._memory.held += self._unwritten - self._counted
        self._counted = self._unwritten
        if makes_room and not self.is_busy:
            self._on_ready()

    def close(self) -> None:
        """Drop all unwritten messages."""
        self._waiting.clear()
        self._memory.held -= self._counted
        self._unwritten = self._counted = 0
        self._paused = True

    def _next_chunk(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while self._waiting and size < CHUNK:
            parts.append(self._waiting.popleft())
            size += len(parts[-1])
        return b"".join(parts)
