"""The event loop and the thread of a small broker, and the unwritten bytes of its connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread
from typing import Final, Protocol, Self

_CHECK_INTERVAL: Final = 1.0  # seconds


class Connection(Protocol):
    """An open connection."""

    transport: asyncio.Transport


class ServedBroker:
    """A broker that serves in `run`, or in its own thread inside `with`.

    `resources` are closed when it has stopped. Thread-safe: `stop` may be called by any thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        connect: Callable[[], asyncio.Protocol],
        connections: Collection[Connection],
        tls: ssl.SSLContext | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep `connect`, which makes the protocol of a connection, and the open `connections`.

        `check` is called once a second.
        """
        self._listener, self._tls = listener, tls
        self._connect, self._connections, self._check = connect, connections, check
        self._loop = asyncio.new_event_loop()
        # Errors such as failed handshakes end only their connection.
        self._loop.set_exception_handler(lambda *_: None)
        self._stopping = asyncio.Event()
        self._thread = Thread(target=self.run, name=type(self).__name__, daemon=True)
        self.resources = ExitStack()
        self.resources.callback(self._loop.close)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def run(self) -> None:
        """Serve until `stop`, then close every connection; call it once."""
        with self.resources:
            self._loop.run_until_complete(self._serve())

    def stop(self) -> None:
        """Make `run` return; any thread or signal handler may call it, repeatedly."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _serve(self) -> None:
        server = await self._loop.create_server(self._connect, sock=self._listener, ssl=self._tls)
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), _CHECK_INTERVAL)
            except TimeoutError:
                self._check()
        server.close()
        for each in list(self._connections):
            each.transport.abort()
        await asyncio.sleep(0)  # abort calls `connection_lost` in the next iteration
        await asyncio.sleep(0)


def without_delay(transport: asyncio.BaseTransport) -> None:
    """Send small messages at once; asyncio does not for a listener without a protocol number."""
    connection: socket.socket = transport.get_extra_info("socket")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(slots=True)
class MemoryBudget:
    """Bytes that all connections hold, unwritten or incomplete; each connection adds its share.

    Mutable: owned by the broker's event loop.
    """

    limit: int
    held: int = 0

    @property
    def is_full(self) -> bool:
        return self.held > self.limit


class UnwrittenBytes:
    """Messages in front of one transport, joined into large writes.

    The event loop writes what the socket does not take at once: `unwritten` is exact after `count`.
    Mutable: owned by the broker's event loop.
    """

    def __init__(self, transport: asyncio.Transport, memory: MemoryBudget) -> None:
        self.transport, self.memory = transport, memory
        self.unwritten = 0
        self._waiting: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Queue bytes for `flush`."""
        self._waiting.append(data)
        self.unwritten += len(data)
        self.memory.held += len(data)

    def flush(self) -> None:
        """Write as much as the socket takes now."""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self.transport.write(data)
        self.count()

    def count(self) -> None:
        """Count what is still unwritten."""
        unwritten = self.transport.get_write_buffer_size() + sum(map(len, self._waiting))
        self.memory.held += unwritten - self.unwritten
        self.unwritten = unwritten

    def close(self) -> None:
        """Close the connection, and drop all unwritten bytes."""
        self.transport.abort()
        self._waiting.clear()
        self.count()
