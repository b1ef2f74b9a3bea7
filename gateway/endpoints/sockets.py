"""A non-blocking socket, plain or TLS, that reads large blocks and joins writes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

BLOCK = 2_097_152  # bytes read at once, so that a batch of large messages fits
SMALL_BLOCK = 65_536  # bytes read while less arrives: a buffer of `BLOCK` is mapped and unmapped
TLS_RECORD = 16_384  # bytes of a TLS record at most (RFC 8446, 5.1)
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)  # Linux only; the kernel resets it
MAX_PIECES = 64  # written with one call


class NonBlockingSocket:
    """A connected socket with the bytes that it has not taken yet.

    Thread-safe: any thread may write, one thread reads; self._lock guards writes, and TLS reads.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self.fileno = sock, sock.fileno()
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._lock = threading.Lock()
        self._out: deque[memoryview] = deque()
        self.backlog = 0  # bytes that wait to be written
        self._ended = False
        self.end_reason = ""  # what the peer said at the end of the stream
        self.written = 0  # bytes the socket has taken
        self.more = False  # the last read stopped before the socket was empty
        self._wanted = SMALL_BLOCK  # bytes

    def read(self) -> bytes | None:
        """Return a block of bytes; None when there are none, b"" at the end of the stream.

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
            self._wanted = BLOCK if len(data) >= SMALL_BLOCK else SMALL_BLOCK
            return data
        return self._read_records()

    def acknowledge(self) -> None:
        """Have the kernel send the TCP acknowledgement now, and not with our next bytes.

        A broker without TCP_NODELAY (mosquitto by default) delays its next message until then, and
        our next bytes are the acknowledgement of a message, which waits for the disk.
        """
        if _QUICK_ACK is not None:
            with suppress(OSError):  # a lost connection is found by the next read
                self._sock.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)

    def _read_records(self) -> bytes | None:
        """Read TLS records until none is left: `poll` does not report decrypted bytes."""
        parts: list[bytes] = []
        size = 0
        self.more = True
        while size < BLOCK:
            try:
                with self._lock:
                    data = self._sock.recv(TLS_RECORD)
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
        """Write what the socket takes now and keep the rest; return whether nothing is left.

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
        """Write the kept bytes; return whether nothing is left. Raises as `write` does."""
        with self._lock:
            return self._flush()

    def _flush(self, more: int = 0) -> bool:
        """Write the kept pieces; `more` of their bytes are not in `backlog` yet."""
        out, left = self._out, self.backlog + more
        while out:
            try:
                sent = self._send()
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                break
            except OSError:  # nothing is left to write; the peer's last bytes can still be read
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
        """Send the first pieces (TLS: the first one); return the bytes taken."""
        if self._tls:
            return self._sock.send(self._out[0])
        return self._sock.sendmsg([*islice(self._out, MAX_PIECES)])

    def close(self) -> None:
        with self._lock:
            self._sock.close()
