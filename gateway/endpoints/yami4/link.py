"""A connection to a YAMI4 broker: whole messages in, bytes out; it knows no commands."""

from __future__ import annotations

import logging
import select
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Lock
from urllib.parse import urlsplit

from gateway.endpoints.attention import wait_readable
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import EndpointError, NotConnectedError, WireError
from gateway.wire.yami4.frames import FrameDecoder, FrameLimits, Packet

log = logging.getLogger(__name__)

READ_SIZE = 262_144
_HEADER_ROOM = 65_536  # bytes of header on top of the longest message we would send
_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Link:
    """A connected socket; one thread may read while another writes."""

    def __init__(self, connection: socket.socket, name: str, max_message: int) -> None:
        connection.setblocking(False)
        self._connection, self._name = connection, name
        size = max_message + _HEADER_ROOM
        limits = FrameLimits(payload=size, message=size, held=2 * size)
        self._decoder = FrameDecoder(limits, skip_large=True)
        self._skipped = 0
        self._lock = Lock()  # a TLS connection must not be read and written at the same time

    def read(self, timeout: float) -> list[Packet] | None:
        """Return the messages that one read finishes, or None when `timeout` seconds pass.

        It may return None sooner, when the calling thread has had to look after something else.

        Raises:
            NotConnectedError: the connection is gone, or the broker broke its protocol.
        """
        if self._decoder.fault is not None:
            raise NotConnectedError(f"{self._name}: {self._decoder.fault}")
        try:
            data = self._receive()
            if data is None and timeout > 0 and wait_readable(self.fileno, timeout):
                data = self._receive()
            if data is None:
                return None
            if data:
                return self._cut(data)
        except (OSError, ValueError, WireError) as error:  # ValueError: closed by another thread
            raise NotConnectedError(f"{self._name}: connection lost: {error}") from error
        raise NotConnectedError(f"{self._name}: the broker closed the connection")

    def write(self, data: bytes, timeout: float) -> int:
        """Write `data` and return how much of it the system took: all, or the link is broken.

        It gives up when nothing moves for `timeout` seconds.
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

    @property
    def fileno(self) -> int:
        return self._connection.fileno()

    def close(self) -> None:
        """Close; a thread that reads or writes here finds out at once."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._connection.close()

    def _cut(self, data: bytes) -> list[Packet]:
        packets = self._decoder.feed(data)
        if self._decoder.skipped > self._skipped:
            self._skipped = self._decoder.skipped
            log.error("%s: a message was too large and is lost; see max_message", self._name)
        return packets

    def _receive(self) -> bytes | None:
        try:
            with self._lock:
                return self._connection.recv(READ_SIZE)
        except _WOULD_BLOCK:
            return None

    def _send(self, view: memoryview) -> int:
        try:
            with self._lock:
                return self._connection.send(view)
        except _WOULD_BLOCK:
            return 0

    def _wait_until_writable(self, timeout: float) -> bool:
        poll = select.poll()
        poll.register(self._connection, select.POLLOUT)
        return bool(poll.poll(timeout * 1000))


def connect(settings: Yami4Settings) -> Link:
    """Open a connection.

    Raises:
        NotConnectedError: nobody answers there now.
        EndpointError: the address is none, or the broker's certificate is not to be trusted.
    """
    try:
        connection = _connect(settings)
    except (ssl.SSLCertVerificationError, ValueError) as error:
        raise EndpointError(f"{settings.name}: {settings.url!r}: {error}") from error
    except OSError as error:
        raise NotConnectedError(f"{settings.name}: {settings.url!r}: {error}") from error
    return Link(connection, settings.name, settings.max_message)


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
        return connection if scheme == "tcp" else _encrypt(connection, host, settings.tls)
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


def _encrypt(connection: socket.socket, host: str, tls: TlsSettings | None) -> socket.socket:
    tls = tls or TlsSettings()
    context = ssl.create_default_context(cafile=tls.ca_file)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file is not None:
        context.load_cert_chain(tls.cert_file, tls.key_file, tls.key_password)
    return context.wrap_socket(connection, server_hostname=tls.server_hostname or host)
