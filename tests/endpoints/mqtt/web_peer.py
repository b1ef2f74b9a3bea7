"""The server's side of a WebSocket, scripted by the test."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator

import pytest

from gateway.endpoints.settings.mqtt import MqttSettings, WebSocketSettings
from tests.endpoints.mqtt.peer import Peer
from tests.waiting import PATIENCE

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
BINARY, TEXT, CLOSE, PING, PONG, CONTINUED = 0x82, 0x81, 0x88, 0x89, 0x8A, 0x80
NOT_LAST = 0x7F  # mask of a first byte: more fragments follow


def frame(first: int, payload: bytes, size: int | None = None) -> bytes:
    """Return a frame; `size` is what its header says, where that is a lie."""
    size = len(payload) if size is None else size
    if size < 126:
        return bytes((first, size)) + payload
    if size < 65_536:
        return bytes((first, 126)) + size.to_bytes(2, "big") + payload
    return bytes((first, 127)) + size.to_bytes(8, "big") + payload


class WebPeer(Peer):
    """A `Peer` behind a WebSocket: what it writes and reads are the payloads of frames. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = MqttSettings(
            name="p", host="127.0.0.1", port=self.settings.port, qos=2, connect_timeout=5,
            dropped_topic="", websocket=WebSocketSettings(),
        )  # fmt: skip
        self.request = b""
        self.answer: Callable[[bytes], bytes] = accepting
        self._payload = b""

    def shake(self) -> None:
        """Take the next connection and answer its handshake."""
        self._sock, _ = self._server.accept()
        self._sock.settimeout(PATIENCE)
        self.request, self._payload = b"", b""
        while b"\r\n\r\n" not in self.request:
            self.request += self._sock.recv(65_536)
        self._sock.sendall(self.answer(self.request))

    def _next_connect(self) -> bytes:
        self.shake()
        return self.read()

    def raw(self, data: bytes) -> None:
        assert self._sock is not None
        self._sock.sendall(data)

    def write(self, data: bytes) -> None:
        self.raw(frame(BINARY, data))

    def exactly(self, size: int) -> bytes:
        while len(self._payload) < size:
            first, payload = self.frame()
            assert first == BINARY, (first, payload)
            self._payload += payload
        data, self._payload = self._payload[:size], self._payload[size:]
        return data

    def frame(self) -> tuple[int, bytes]:
        """Read one frame, which is masked (RFC 6455, 5.1)."""
        first, size = super().exactly(2)
        assert size & 0x80
        size &= 0x7F
        if size == 126:
            size = int.from_bytes(super().exactly(2), "big")
        elif size == 127:
            size = int.from_bytes(super().exactly(8), "big")
        mask = super().exactly(4)
        return first, bytes(byte ^ mask[i % 4] for i, byte in enumerate(super().exactly(size)))


def accepting(request: bytes, *, protocol: bytes = b"mqtt", key: bytes | None = None) -> bytes:
    """Return the answer that opens a WebSocket."""
    nonce = next(
        line.partition(b":")[2].strip()
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"sec-websocket-key:")
    )
    digest = hashlib.sha1(nonce + _MAGIC).digest()  # noqa: S324  # as RFC 6455 has it
    lines = [
        b"HTTP/1.1 101 Switching Protocols",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Accept: " + (key or base64.b64encode(digest)),
    ]
    if protocol:
        lines.append(b"Sec-WebSocket-Protocol: " + protocol)
    return b"\r\n".join([*lines, b"", b""])


@pytest.fixture
def web() -> Iterator[WebPeer]:
    peer = WebPeer()
    yield peer
    peer.close()
