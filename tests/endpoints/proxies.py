"""Proxies on loopback: HTTP CONNECT and SOCKS5 with a log-in; a link as slow as a test says."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from gateway.endpoints.settings.proxy import ProxySettings

ELSEWHERE = "broker.elsewhere.test"  # no machine knows it but the proxy
USERNAME, PASSWORD = "plant", "open:sesame"  # of a proxy on loopback


class Proxy:
    """Relays to loopback, whatever name is asked for. Mutable: notes what it was asked."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.asked: list[str] = []  # HOST:PORT as the client wrote it
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def settings(self, scheme: str, password: str = PASSWORD) -> ProxySettings:
        url = f"{scheme}://127.0.0.1:{self.port}"
        return ProxySettings(url=url, username=USERNAME, password=password)

    def close(self) -> None:
        self._server.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._open.append(client)
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, IndexError), client.makefile("rb", buffering=0) as lines:
            first = lines.read(1) or b""
            port = self._socks(client, lines) if first == b"\5" else self._http(client, lines)
            if port is None:
                return
            with socket.create_connection(("127.0.0.1", port)) as broker:
                back = threading.Thread(target=_copy, args=[broker, client], daemon=True)
                back.start()
                _copy(client, broker)
                back.join()

    def _http(self, client: socket.socket, lines: socket.SocketIO) -> int | None:
        target = lines.readline().split()[1].decode()
        head = [line for line in iter(lines.readline, b"\r\n") if line]
        pair = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode())
        self.asked.append(target)
        if not any(line.split()[1:] == [b"Basic", pair] for line in head):
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            return None
        client.sendall(b"HTTP/1.1 200 Connection ")  # in two parts, as a slow proxy does
        client.sendall(b"established\r\nVia: 1.1 here\r\n\r\n")
        return int(target.rpartition(":")[2])

    def _socks(self, client: socket.socket, stream: socket.SocketIO) -> int | None:
        methods = stream.read((stream.read(1) or b"")[0]) or b""
        client.sendall(b"\5\2" if 2 in methods else b"\5\xff")
        stream.read(1)
        given = [stream.read((stream.read(1) or b"")[0]) for _ in range(2)]
        if given != [USERNAME.encode(), PASSWORD.encode()]:
            client.sendall(b"\1\1")
            return None
        client.sendall(b"\1\0")
        kind = (stream.read(4) or b"")[3]
        size = {1: 4, 4: 16}.get(kind) or (stream.read(1) or b"")[0]
        host = stream.read(size) or b""
        port = int.from_bytes(stream.read(2) or b"", "big")
        shown = (
            host.decode()
            if kind == 3
            else socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, host)
        )
        self.asked.append(f"{shown}:{port}")
        client.sendall(b"\5\0\0\3\4host\0\1")
        return port


class SlowLink:
    """Relays to a port of loopback; of what clients send, it passes on what a test lets through.

    Thread-safe: guarded by self._changed.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.connections = 0  # so far
        self._allowed = self._passed = 0  # bytes
        self._changed = threading.Condition()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def let(self, count: int) -> None:
        """Let so many more bytes through, as soon as they come."""
        with self._changed:
            self._allowed += count
            self._changed.notify_all()

    @property
    def is_spent(self) -> bool:
        """Whether all that it may pass on has come and is passed on."""
        return self._passed == self._allowed

    def close(self) -> None:
        self._server.close()
        self.let(1 << 40)
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, broker]
                self.connections += 1
                threading.Thread(target=_copy, args=[broker, client], daemon=True).start()
                threading.Thread(target=self._pass_on, args=[client, broker], daemon=True).start()

    def _pass_on(self, client: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: not self.is_spent)
                    room = self._allowed - self._passed
                data = client.recv(min(65_536, room))
                if not data:
                    break
                broker.sendall(data)
                with self._changed:
                    self._passed += len(data)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    proxy = Proxy()
    yield proxy
    proxy.close()
