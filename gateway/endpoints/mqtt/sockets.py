"""A non-blocking connection, plain or TLS, that reads large blocks and joins writes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, NotConnectedError

BLOCK = 2_097_152  # bytes read at once: a batch of large messages, too, is worth its overhead
LITTLE = 65_536  # bytes asked for while no more came: a buffer of `BLOCK` is mapped and unmapped
RECORD = 16_384  # bytes that TLS gives at most at once (RFC 8446, 5.1)
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux; it holds for a while
AT_ONCE = 64  # pieces written with one call


def connect(settings: MqttSettings) -> socket.socket:
    """A connected socket, TLS done, that does not block.

    Raises:
        NotConnectedError: nobody answers there now.
        EndpointError: the certificates do not fit.
    """
    where = f"{settings.name}: {settings.host}:{port(settings)}"
    context = _context(settings)
    try:
        sock = socket.create_connection(
            (settings.host, port(settings)), timeout=settings.connect_timeout
        )
    except OSError as error:
        raise NotConnectedError(f"{where}: cannot connect: {error}") from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None and settings.tls is not None:
            name = settings.tls.server_hostname or settings.host
            sock = context.wrap_socket(sock, server_hostname=name)
        sock.setblocking(False)
    except (ssl.SSLEOFError, TimeoutError, ConnectionError) as error:
        sock.close()
        raise NotConnectedError(f"{where}: the TLS handshake broke off: {error}") from error
    except (ssl.SSLError, ValueError) as error:
        sock.close()
        raise EndpointError(f"{where}: TLS: {error}; check the certificates") from error
    return sock


def port(settings: MqttSettings) -> int:
    """The port, or the usual one."""
    return settings.port or (8883 if settings.tls else 1883)


def _context(settings: MqttSettings) -> ssl.SSLContext | None:
    tls = settings.tls
    if tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file, tls.key_password or "")
    except (OSError, ssl.SSLError) as error:
        files = [file for file in (tls.ca_file, tls.cert_file, tls.key_file) if file]
        raise EndpointError(
            f"{settings.name}: cannot use {', '.join(files)}: {error}; check the files"
        ) from error
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Stream:
    """Bytes both ways over a connected socket; mutable: it holds what could not be written yet.

    Any thread may write; one thread reads. TLS takes one call at a time, so a lock stands
    around both.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._lock = threading.Lock()
        self._out: deque[memoryview] = deque()
        self.backlog = 0  # bytes that wait to be written
        self._ended = False
        self.written = 0  # bytes the socket has taken
        self.more = False  # the last read stopped before the socket was empty
        self._wanted = LITTLE  # bytes

    @property
    def fileno(self) -> int:
        return self._sock.fileno()

    def read(self) -> bytes | None:
        """A block of what is there; None when there is nothing, b"" at the end.

        Raises:
            OSError: the connection broke.
        """
        if self._ended:
            return b""
        if not self._tls:
            try:
                data = self._sock.recv(self._wanted)
            except BlockingIOError:
                self.more = False
                return None
            self.more = len(data) == self._wanted
            self._wanted = BLOCK if len(data) >= LITTLE else LITTLE
            return data
        return self._read_records()

    def acknowledge(self) -> None:
        """Have the kernel acknowledge what was read now, and not with our next bytes.

        A broker that does not set TCP_NODELAY (mosquitto by default) holds the next message back
        until then, and our next bytes are the answer to a message, which waits for the disk.
        """
        if _QUICK_ACK is not None:
            with suppress(OSError):  # a lost connection shows elsewhere
                self._sock.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)

    def _read_records(self) -> bytes | None:
        """TLS gives one record at a time, and `poll` does not see those that are decrypted."""
        parts: list[bytes] = []
        size = 0
        self.more = True
        while size < BLOCK:
            try:
                with self._lock:
                    data = self._sock.recv(RECORD)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self.more = False
                break
            if not data:
                self._ended = True
                break
            parts.append(data)
            size += len(data)
        if not parts and not self._ended:
            return None
        return b"".join(parts)

    def write(self, pieces: Sequence[bytes]) -> bool:
        """Write now what the socket takes and keep the rest; True when nothing is left over.

        Raises:
            OSError: the connection broke.
        """
        size = sum(map(len, pieces))
        with self._lock:
            waits = bool(self._out)
            self._out.extend([memoryview(piece) for piece in pieces if piece])
            if not waits:
                return self._flush(size)
            self.backlog += size
            return False

    def flush(self) -> bool:
        """Write what was kept; True when nothing is left. Raises as `write` does."""
        with self._lock:
            return self._flush()

    def _flush(self, more: int = 0) -> bool:
        """Write what waits, `more` bytes of which are new."""
        out, left = self._out, self.backlog + more
        while out:
            try:
                sent = self._send()
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                break
            except OSError:  # it is over, and nothing waits; the peer's last words can be read
                out.clear()
                self.backlog = 0
                raise
            left -= sent
            self.written += sent
            while out and sent >= len(out[0]):
                sent -= len(out.popleft())
            if sent:
                out[0] = out[0][sent:]
        self.backlog = left
        return not out

    def _send(self) -> int:
        """Hand over the first pieces, many at once where TLS takes one; the bytes taken."""
        if self._tls:
            return self._sock.send(self._out[0])
        return self._sock.sendmsg([*islice(self._out, AT_ONCE)])

    def close(self) -> None:
        with self._lock:
            self._sock.close()
