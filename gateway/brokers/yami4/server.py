"""The YAMI4 broker's sockets: one thread, large reads, joined writes."""

from __future__ import annotations

import logging
import selectors
import socket
import time
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

from gateway.brokers.yami4.core import Core
from gateway.brokers.yami4.options import DEFAULT_OPTIONS, BrokerOptions
from gateway.brokers.yami4.peer import Peer
from gateway.errors import EndpointError

log = logging.getLogger(__name__)

_BACKLOG = 128
_PAUSE_ABOVE = 4 << 20  # unwritten bytes of a peer at which we stop reading from it


class Yami4Broker:
    """Listens from the moment it is made; serves in `run`, or in a thread inside `with`.

    `url` is `tcp://host:port` or `unix:///path`; port 0 takes a free one, and the attribute
    then says which.
    """

    def __init__(
        self, url: str = "tcp://127.0.0.1:0", options: BrokerOptions = DEFAULT_OPTIONS
    ) -> None:
        self._options = options
        self._core = Core(options)
        self._listener, self.url, self._path = _listen(url)
        self._selector = selectors.DefaultSelector()
        self._peers: dict[Peer, int] = {}  # with the events it is registered for
        self._waker, self._wake = socket.socketpair()
        self._stopping = False
        self._thread: Thread | None = None
        self._accepted = 0

    def __enter__(self) -> Self:
        self._thread = Thread(target=self.run, name="yami4-broker", daemon=True)
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

    def stop(self) -> None:
        """Make `run` return; may be called from any thread, and from a signal handler."""
        self._stopping = True
        try:
            self._waker.send(b"\0")
        except OSError:
            log.debug("yami4 broker: already stopped")

    def run(self) -> None:
        """Serve until `stop`, then close every socket. It runs once."""
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
            peer: Peer | None = key.data
            if peer is not None:
                self._exchange(peer, events)
            elif key.fileobj is self._listener:
                self._accept()
        for peer in self._core.touched():
            peer.flush()
            self._settle(peer)

    def _exchange(self, peer: Peer, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            peer.flush()
        if events & selectors.EVENT_READ and not peer.failed:
            self._core.receive(peer, peer.read())
        self._settle(peer)

    def _settle(self, peer: Peer) -> None:
        """Close a failed peer, or register it for what it waits for."""
        if peer not in self._peers:
            return
        if peer.failed:
            self._drop(peer)
            return
        events = 0 if peer.unwritten > _PAUSE_ABOVE else selectors.EVENT_READ
        if peer.unwritten:
            events |= selectors.EVENT_WRITE
        if events != self._peers[peer]:
            self._peers[peer] = events
            self._selector.modify(peer.connection, events, peer)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError as error:
            log.warning("yami4 broker: cannot accept: %s", error)
            return
        if len(self._peers) >= self._options.max_connections:
            connection.close()
            return
        connection.setblocking(False)
        self._accepted += 1
        location = f"unix://${self._accepted}"
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            location = f"tcp://{address[0]}:{address[1]}"
        peer = Peer(connection, location, self._options.frames, self._core.memory)
        self._peers[peer] = selectors.EVENT_READ
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _drop(self, peer: Peer) -> None:
        del self._peers[peer]
        self._core.drop(peer)
        self._selector.unregister(peer.connection)
        peer.close()

    def _close(self) -> None:
        for peer in list(self._peers):
            peer.flush()
            self._drop(peer)
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
