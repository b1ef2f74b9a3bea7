"""The SMF broker's socket and thread, and what may be asked of it from other threads."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self, TypeVar

from gateway.brokers.smf.consuming import shut_queue
from gateway.brokers.smf.core import Core
from gateway.brokers.smf.options import DEFAULT_OPTIONS, BrokerOptions
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.store import open_store
from gateway.brokers.smf.vpn import State
from gateway.errors import EndpointError

T = TypeVar("T")

_BACKLOG = 128
_LOOK = 1.0  # seconds between looks for silent clients


class SmfBroker:
    """Listens from the moment it is made; serves in `run`, or in a thread inside `with`.

    `url` says where; port 0 takes a free one. `state` holds the queues: give it to a new broker
    and clients find what they left, as after the restart of a real one; its options are kept
    too. With `store`, a folder, guaranteed messages are on disk before they are acknowledged, and
    are there for the next broker with that folder. With `tls` it serves TLS only.
    """

    def __init__(  # noqa: PLR0913  # all but the first two by name
        self,
        port: int = 0,
        options: BrokerOptions = DEFAULT_OPTIONS,
        *,
        host: str = "127.0.0.1",
        state: State | None = None,
        store: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Raises: EndpointError: the port or the store cannot be used."""
        self.state = state or State(options)
        self.faults = self.state.faults
        self._tls = tls
        try:
            self._listener = socket.create_server((host, port), backlog=_BACKLOG)
        except OSError as error:
            raise EndpointError(f"smf broker: cannot listen at {host}:{port}: {error}") from error
        self.host, self.port = host, int(self._listener.getsockname()[1])
        self.url = f"{'tcps' if tls else 'tcp'}://{host}:{self.port}"
        try:
            self.journal = open_store(store, self.state.vpns) if store else None
        except EndpointError:
            self._listener.close()
            raise
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_ignore)
        self._stopping = asyncio.Event()
        self._core = Core(self.state, self.journal, self._stopping.set)
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.run, name="smf-broker", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def run(self) -> None:
        """Serve until `stop`, then close every connection. It runs once."""
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()
            if self.journal is not None:
                self.journal.close()

    def stop(self) -> None:
        """Make `run` return; any thread, a signal handler, twice is fine."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopping.set)

    def drop_connections(self) -> int:
        """Cut every client off without a word; returns how many."""

        def cut() -> int:
            sessions = list(self._core.sessions)
            for session in sessions:
                session.transport.abort()
            return len(sessions)

        return self._ask(cut)

    def clients(self, vpn: str = "default") -> list[str]:
        """The names of those who are logged in."""
        return self._ask(lambda: list(self.state.vpns[vpn].clients))

    def depth(self, queue: str, vpn: str = "default") -> int:
        """Messages in a queue, those that a consumer holds included; 0 when there is none."""

        def look() -> int:
            found = self.state.vpns[vpn].queues.get(queue.encode())
            return found.depth if found else 0

        return self._ask(look)

    def held(self, queue: str, vpn: str = "default") -> int:
        """Messages of a queue that consumers have and have not settled."""

        def look() -> int:
            found = self.state.vpns[vpn].queues.get(queue.encode())
            return sum(len(flow.unacked) for flow in found.flows) if found else 0

        return self._ask(look)

    def shut_queue(self, queue: str, vpn: str = "default") -> None:
        """Unbind everybody from a queue and let nobody bind or publish to it."""

        def shut() -> None:
            shut_queue(self.state.vpns[vpn].queues[queue.encode()])
            self._core.flush()

        self._ask(shut)

    def _ask(self, question: Callable[[], T]) -> T:
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001  # it belongs to the one who asked
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return answer.result(timeout=10)

    async def _serve(self) -> None:
        server = await self._loop.create_server(
            lambda: Session(self._core), sock=self._listener, ssl=self._tls
        )
        while not self._stopping.is_set():
            try:
                await asyncio.wait_for(self._stopping.wait(), _LOOK)
            except TimeoutError:
                self._core.drop_silent()
                self._core.tidy()
        server.close()
        for session in list(self._core.sessions):
            session.transport.abort()
        await asyncio.sleep(0)  # abort calls `connection_lost` in the next turn
        await asyncio.sleep(0)


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Failed handshakes and the like end a connection, nothing else."""
    del loop, context
