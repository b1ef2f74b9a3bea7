"""The SMF broker: its socket, its event loop and its thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from threading import Thread
from typing import Self

from gateway.errors import EndpointError
from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.dispatcher import MessageDispatcher
from gateway.trial.brokers.smf.options import DEFAULT_OPTIONS, BrokerOptions
from gateway.trial.brokers.smf.store import BrokerStore
from gateway.trial.brokers.smf.vpn import BrokerState

_LISTEN_BACKLOG = 128
_CHECK_INTERVAL = 1.0  # seconds between checks for silent clients


class SmfBroker:
    """Listens from its creation; serves in `run`, or in its own thread inside `with`.

    `url` is its address; port 0 takes a free port. `state` holds the queues and the options: a new
    broker with the same `state` behaves like a restarted one. With `store`, a folder, guaranteed
    messages are on disk before they are acknowledged, and the next broker with that folder has
    them. With `tls` it serves TLS only.
    Thread-safe: `stop` may be called by any thread.
    """

    def __init__(  # noqa: PLR0913  # most of them by name
        self,
        port: int = 0,
        options: BrokerOptions = DEFAULT_OPTIONS,
        *,
        host: str = "127.0.0.1",
        state: BrokerState | None = None,
        store: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen.

        Raises:
            EndpointError: the port or the store cannot be used.
        """
        self.state = state or BrokerState(options)
        self.faults = self.state.faults
        self._tls = tls
        try:
            self._listener = socket.create_server((host, port), backlog=_LISTEN_BACKLOG)
        except OSError as error:
            raise EndpointError(f"smf broker: cannot listen at {host}:{port}: {error}") from error
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self.url = f"{'tcps' if tls else 'tcp'}://{host}:{self.port}"
        try:
            self.store = BrokerStore(store) if store else None
            if self.store is not None:
                for name, vpn in self.state.vpns.items():
                    vpn.keep_in(self.store, name)
        except EndpointError:
            self._listener.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_ignore)
        self._stopping = asyncio.Event()
        self._dispatcher = MessageDispatcher(self.state, self.store, self._stopping.set)
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.run, name="smf-broker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def run(self) -> None:
        """Serve until `stop`, then close every connection; call it once."""
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            if self.store is not None:
                self.store.close()

    def stop(self) -> None:
        """Make `run` return; any thread or signal handler may call it, repeatedly."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: ClientSession(self._dispatcher), sock=self._listener, ssl=self._tls
        )
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), _CHECK_INTERVAL)
            except TimeoutError:
                self._dispatcher.drop_silent()
        server.close()
        for session in list(self._dispatcher.sessions):
            session.transport.abort()
        await asyncio.sleep(0)  # abort calls `connection_lost` in the next iteration
        await asyncio.sleep(0)


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Ignore errors such as failed handshakes, which end only their connection."""
    del loop, context
