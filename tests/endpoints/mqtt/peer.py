"""The broker's side of a conversation that mosquitto does not have."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.mqtt import open_sink, open_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import QUIET, receive
from tests.waiting import PATIENCE

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
WELCOME = b"\x20\x03\x00\x00\x00"
WELCOME_BACK = b"\x20\x03\x01\x00\x00"
WELCOME_3 = b"\x20\x02\x00\x00"


class Peer:
    """The broker's side of a connection, scripted by the test. Mutable."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE)
        self.settings = MqttSettings(
            name="p", host="127.0.0.1", port=self._server.getsockname()[1], qos=2,
            connect_timeout=5, dropped_topic="",
        )  # fmt: skip
        self._sock: socket.socket | None = None
        self._witnesses: list[socket.socket] = []
        self._pool = ThreadPoolExecutor(1)

    def opening(self, endpoint: object) -> Future[None]:
        """Let the endpoint connect, and read its CONNECT."""
        assert hasattr(endpoint, "open")
        self.hang_up()
        future: Future[None] = self._pool.submit(endpoint.open)
        self.accept()
        return future

    def accept(self) -> None:
        """Take the next connection, and read its CONNECT."""
        while b"-witness" in (connect := self._next_connect()):
            self.write(WELCOME if self.settings.version == "5" else WELCOME_3)
            assert self._sock is not None
            self._witnesses.append(self._sock)
        assert connect[0] == 0x10

    def has_bytes(self) -> bool:
        """Whether the endpoint has sent more."""
        assert self._sock is not None
        return bool(select.select([self._sock], [], [], QUIET)[0])

    def _next_connect(self) -> bytes:
        self._sock, _ = self._server.accept()
        self._sock.settimeout(PATIENCE)
        return self.read()

    def read(self) -> bytes:
        """One packet of less than 128 bytes."""
        head = self.exactly(2)
        return head + self.exactly(head[1])

    def exactly(self, size: int) -> bytes:
        """So many bytes."""
        assert self._sock is not None
        data = b""
        while len(data) < size:
            part = self._sock.recv(size - len(data))
            assert part, "the endpoint hung up"
            data += part
        return data

    def write(self, data: bytes) -> None:
        assert self._sock is not None
        self._sock.sendall(data)

    def hang_up(self) -> None:
        if self._sock is not None:
            self._sock.close()

    def close(self) -> None:
        self.hang_up()
        for witness in self._witnesses:
            witness.close()
        self._server.close()
        self._pool.shutdown()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


def listening(peer: Peer, counts: bytes = b"") -> Source:
    """Return an open source with a granted subscription to "t"; `counts` answers that to them."""
    source = open_source(peer.settings, [Subscription("t")])
    future = peer.opening(source)
    peer.write(WELCOME)
    grant(peer)
    if counts:
        grant(peer, counts)
    future.result(PATIENCE)
    return source


def grant(peer: Peer, reason: bytes = b"\x02") -> bytes:
    """Answer the next SUBSCRIBE with `reason`; return the SUBSCRIBE."""
    subscribe = peer.read()
    assert subscribe[0] == 0x82
    peer.write(b"\x90\x04" + subscribe[2:4] + b"\x00" + reason)
    return subscribe


def connected(peer: Peer) -> Sink:
    sink = open_sink(peer.settings)
    future = peer.opening(sink)
    peer.write(WELCOME)
    future.result(PATIENCE)
    return sink


def lost_after_qos_2(peer: Peer) -> Source:
    """Return such a source that has lost its connection after it took message 8 of QoS 2."""
    source = listening(peer)
    peer.write(b"\x34\x07\x00\x01t\x00\x08\x00a")
    receive(source).settle([ACCEPTED])
    assert peer.read() == b"\x50\x02\x00\x08"
    peer.hang_up()
    return source
