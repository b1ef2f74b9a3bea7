"""Whole messages that wait for one connection, and the limit of a slow client."""

from __future__ import annotations

from asyncio import Transport
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.trial.brokers.serving import UnwrittenBytes
from gateway.wire.smf.frames import DISCARDED

if TYPE_CHECKING:
    from gateway.trial.brokers.smf.dispatcher import MessageDispatcher

_BUSY: Final = 1 << 20  # unwritten bytes above which guaranteed messages wait in their queue


class WriteBuffer(UnwrittenBytes):
    """A queue of whole messages in front of one transport.

    Mutable: owned by the broker's event loop.
    """

    def __init__(
        self, transport: Transport, broker: MessageDispatcher, on_ready: Callable[[], None]
    ) -> None:
        """Keep `on_ready`, which is called when the buffer stops being busy."""
        super().__init__(transport, broker.memory)
        self._limit, self._unflushed = broker.options.peer_bytes, broker.unflushed
        self._on_ready = on_ready
        self._dropped = self._is_listed = False
        transport.set_write_buffer_limits(high=_BUSY)

    @property
    def is_busy(self) -> bool:
        """Return whether guaranteed messages wait in their queue."""
        return self.unwritten > _BUSY

    @property
    def _is_full(self) -> bool:
        return self.unwritten > self._limit or (self.unwritten > 0 and self.memory.is_full)

    def relay(self, frame: bytes) -> None:
        """Add a direct message, or drop it when the client is too slow, as Solace brokers do."""
        if self._is_full:
            self.count()
            if self._is_full:
                self._dropped = True
                return
        if self._dropped:
            self._dropped = False
            frame = bytes((frame[0] | DISCARDED,)) + frame[1:]
        self.add(frame)

    def post(self, frame: bytes) -> None:
        """Add a message that must not be dropped; disconnect a client that does not read."""
        self.add(frame)
        if self.unwritten > 2 * self._limit:
            self.transport.abort()

    def add(self, data: bytes) -> None:
        """Queue bytes for the next flush of the broker."""
        super().add(data)
        if not self._is_listed:
            self._is_listed = True
            self._unflushed.append(self)

    def flush(self) -> None:
        """Write as much as the socket takes now; deliver what waited for room."""
        self._is_listed, was_busy = False, self.is_busy
        super().flush()
        if was_busy and not self.is_busy:
            self._on_ready()
