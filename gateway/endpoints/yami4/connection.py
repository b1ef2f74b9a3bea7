"""A connection to a YAMI4 broker: it reads whole messages and writes bytes."""

from __future__ import annotations

import logging
import select
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from gateway.endpoints.leader_followers import wait_readable
from gateway.endpoints.settings.base import Server, TlsSettings, server_of
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.tls import client_context, connect_error
from gateway.errors import EndpointError, NotConnectedError, WireError
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, Packet

log = logging.getLogger(__name__)

READ_SIZE = 262_144
_MAX_HEADER = 65_536  # bytes of header beside the longest message that we send
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Yami4Connection:
    """A connected socket.

    Thread-safe: one thread may read while another writes.
    """

    def __init__(self, connection: socket.socket, settings: Yami4Settings) -> None:
        connection.setblocking(False)
        self._socket, self._name, self._settings = connection, settings.name, settings
        self._heard = False  # whether the broker has sent anything well-formed
        size = settings.max_message + _MAX_HEADER
        limits = FrameLimits(payload=size, message=size, held=2 * size)
        self._decoder = FrameDecoder(limits, skip_large=True)
        self._skipped = self._taken = 0  # messages too large; those that the source knows of
        self._lock = Lock()  # TLS must not read and write at the same time

    def read(self, timeout: float) -> list[Packet] | None:
        """Return the messages that one read completes, or None after `timeout` seconds.

        It returns None sooner when the calling thread has handled another connection meanwhile.

        Raises:
            NotConnectedError: the connection is lost, or the broker violated the protocol.
        """
        if self._decoder.fault is not None:
            raise self.lost(str(self._decoder.fault))
        try:
            data = self._receive()
            if data is None and timeout > 0 and wait_readable(self.fileno, timeout):
                data = self._receive()
            if data is None:
                return None
            if data:
                return self._decode(data)
        except (OSError, ValueError, WireError) as error:  # ValueError: closed by another thread
            raise self.lost(f"connection lost: {error}") from error
        raise self.lost("the broker closed the connection")

    def write(self, data: bytes, timeout: float) -> int:
        """Write `data` and return the bytes written: all of them, or the connection is broken.

        It gives up when the socket takes nothing for `timeout` seconds.
        """
        view = memoryview(data)
        sent = 0
        with suppress(OSError, ValueError):
            while sent < len(data):
                size = self._send(view[sent:])
                sent += size
                if not size and not self._wait_until_writable(timeout):
                    break
        return sent

    def take_skipped(self) -> int:
        """Return how many messages were too large and lost since the last call."""
        taken, self._taken = self._skipped - self._taken, self._skipped
        return taken

    @property
    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Close; a thread that reads or writes here returns at once."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._socket.close()

    def _decode(self, data: bytes) -> list[Packet]:
        packets = self._decoder.feed(data)
        self._heard = self._heard or bool(packets)
        if self._decoder.skipped > self._skipped:
            self._skipped = self._decoder.skipped
            log.error("%s: a message was too large and is lost; see max_message", self._name)
        return packets

    def lost(self, reason: str) -> EndpointError:
        """Return the error of this connection; before its first answer, with address and cause."""
        error = NotConnectedError(f"{self._name}: {reason}")
        if self._heard or self._settings.url.startswith("unix"):
            return error
        return connect_error(
            self._settings, _server(self._settings), OSError(reason), self._settings.tls
        )

    def _receive(self) -> bytes | None:
        try:
            with self._lock:
                return self._socket.recv(READ_SIZE)
        except _WOULD_BLOCK:
            return None

    def _send(self, view: memoryview) -> int:
        try:
            with self._lock:
                return self._socket.send(view)
        except _WOULD_BLOCK:
            return 0

    def _wait_until_writable(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(timeout * 1000))


def connect(settings: Yami4Settings) -> Yami4Connection:
    """Open a connection.

    Raises:
        NotConnectedError: no broker answers there now.
        EndpointError: the URL is invalid, or the broker's certificate is not trusted.
    """
    try:
        connection = _connect(settings)
    except ssl.SSLCertVerificationError as error:
        raise connect_error(settings, _server(settings), error, settings.tls) from error
    except ValueError as error:
        raise EndpointError(f"{settings.name}: {settings.url!r}: {error}") from error
    except OSError as error:
        if settings.url.startswith("unix"):
            reason = error.strerror or error
            raise NotConnectedError(f"{settings.name}: {settings.url}: {reason}") from error
        raise connect_error(settings, _server(settings), error, settings.tls) from error
    return Yami4Connection(connection, settings)


def _server(settings: Yami4Settings) -> Server:
    return server_of(settings.url, 0, is_encrypted=settings.url.startswith("tcps"))


def _connect(settings: Yami4Settings) -> socket.socket:
    scheme, _, rest = settings.url.partition("://")
    if scheme == "unix":
        return _connect_unix(Path(rest), settings.connect_timeout)
    parts = urlsplit(settings.url)
    if scheme not in {"tcp", "tcps"} or parts.port is None:
        raise ValueError("expected tcp://host:port, tcps://host:port or unix:///path")
    host = parts.hostname or "localhost"
    connection = socket.create_connection((host, parts.port), settings.connect_timeout)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if scheme == "tcp" else _encrypt(connection, host, settings)
    except BaseException:
        connection.close()
        raise


def _connect_unix(path: Path, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _encrypt(connection: socket.socket, host: str, settings: Yami4Settings) -> socket.socket:
    tls = settings.tls or TlsSettings()
    context = client_context(settings.name, tls)
    return context.wrap_socket(connection, server_hostname=tls.server_hostname or host)
