"""The sockets of the YAMI4 broker: one thread with large reads and joined writes."""

from __future__ import annotations

import logging
import selectors
import socket
import time
from pathlib import Path
from threading import Thread
from typing import Self

from gateway.errors import EndpointError
from gateway.trial.brokers.yami4.client import ClientConnection
from gateway.trial.brokers.yami4.core import DEFAULT_OPTIONS, BrokerCore, Yami4BrokerOptions

log = logging.getLogger(__name__)

_BACKLOG = 128
_PAUSE_ABOVE = 4 << 20  # unwritten bytes of a client above which it is not read


class Yami4Broker:
    """Listens once it is made; serves in `run`, or in a thread inside `with`.

    `url` is `tcp://host:port` or `unix:///path`. Port 0 takes a free port, which the attribute
    `url` then names.
    """

    def __init__(
        self, url: str = "tcp://127.0.0.1:0", options: Yami4BrokerOptions = DEFAULT_OPTIONS
    ) -> None:
        self._options = options
        self._core = BrokerCore(options)
        self._listener, self.url, self._path = _listen(url)
        self._selector = selectors.DefaultSelector()
        self._clients: dict[ClientConnection, int] = {}  # with its registered events
        self._waker, self._wake = socket.socketpair()
        self._stopping = False
        self._thread: Thread | None = None
        self._accepted = 0

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.run, name="yami4-broker", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def stop(self) -> None:
        """Make `run` return; any thread or a signal handler may call it."""
        self._stopping = True
        try:
            self._waker.send(b"\0")
        except OSError:
            log.debug("yami4 broker: already stopped")

    def run(self) -> None:
        """Serve until `stop`, then close every socket; it can run once only."""
        ready_at = time.monotonic() + self._options.warm_up
        self._core.warming_up = self._options.warm_up > 0
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        try:
            while not self._stopping:
                left = ready_at - time.monotonic()
                self._core.warming_up = left > 0
                self._serve(left if left > 0 else None)
        finally:
            self._close()

    def _serve(self, timeout: float | None) -> None:
        for key, events in self._selector.select(timeout):
            client: ClientConnection | None = key.data
            if client is not None:
                self._exchange(client, events)
            elif key.fileobj is self._listener:
                self._accept()
        for client in self._core.posted_to():
            client.flush()
            self._update_events(client)

    def _exchange(self, client: ClientConnection, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            client.flush()
        if events & selectors.EVENT_READ and not client.failed:
            self._core.receive(client, client.read())
        self._update_events(client)

    def _update_events(self, client: ClientConnection) -> None:
        """Close a failed client, or register the events that it waits for."""
        if client not in self._clients:
            return
        if client.failed:
            self._drop(client)
            return
        events = 0 if client.unwritten > _PAUSE_ABOVE else selectors.EVENT_READ
        if client.unwritten:
            events |= selectors.EVENT_WRITE
        if events != self._clients[client]:
            self._clients[client] = events
            self._selector.modify(client.connection, events, client)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError as error:
            log.warning("yami4 broker: cannot accept: %s", error)
            return
        if len(self._clients) >= self._options.max_connections:
            connection.close()
            return
        connection.setblocking(False)
        self._accepted += 1
        location = f"unix://${self._accepted}"
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            location = f"tcp://{address[0]}:{address[1]}"
        client = ClientConnection(connection, location, self._options.frames, self._core.usage)
        self._clients[client] = selectors.EVENT_READ
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _drop(self, client: ClientConnection) -> None:
        del self._clients[client]
        self._core.drop(client)
        self._selector.unregister(client.connection)
        client.close()

    def _close(self) -> None:
        for client in list(self._clients):
            client.flush()
            self._drop(client)
        self._selector.close()
        for each in (self._listener, self._waker, self._wake):
            each.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _listen(url: str) -> tuple[socket.socket, str, Path | None]:
    scheme, _, rest = url.partition("://")
    try:
        if scheme == "unix":
            return _listen_unix(Path(rest))
        if scheme == "tcp":
            return _listen_tcp(rest)
    except (OSError, ValueError) as error:
        raise EndpointError(f"yami4 broker: cannot listen at {url!r}: {error}") from error
    raise EndpointError(f"yami4 broker: {url!r} is neither tcp:// nor unix://")


def _listen_tcp(rest: str) -> tuple[socket.socket, str, None]:
    host, _, port = rest.rpartition(":")
    host = "0.0.0.0" if host in {"", "*"} else host  # noqa: S104  # asked for by name
    number = 0 if port == "*" else int(port)
    listener = socket.create_server((host, number), backlog=_BACKLOG)
    listener.setblocking(False)
    address = listener.getsockname()
    return listener, f"tcp://{address[0]}:{address[1]}", None


def _listen_unix(path: Path) -> tuple[socket.socket, str, Path]:
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener, f"unix://{path}", path
