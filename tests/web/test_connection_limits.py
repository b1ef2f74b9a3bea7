"""Connections of an attacker: none starves a health probe, and all of them are counted."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.process import WebSettings
from gateway.web.connection_limits import (
    MAX_CONNECTIONS,
    MAX_PER_ADDRESS,
    RESERVED_FOR_PROBES,
    Connections,
    PeerConnection,
    address_of,
)
from gateway.web.server import WebServer
from gateway.web.snapshot import StatusSnapshot
from tests.brokers.test_mqtt_tls import make_certificate
from tests.waiting import PATIENCE
from tests.web.status_samples import FakeStatus, busy, served, status

PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
PAGE = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
ATTACKERS = 4 * MAX_PER_ADDRESS  # connections from one address
STALLED = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"GET /healthz HTTP/1.1\r\nHost: ", id="half a request"),
    pytest.param(PROBE.replace(b"close", b"keep-alive"), id="an idle connection"),
    pytest.param(PAGE, id="a response that is not read"),
    pytest.param(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", id="half a body"),
]


def connect(stack: ExitStack, server: WebServer, source: str = "127.0.0.1") -> socket.socket:
    address = ("127.0.0.1", server.port)
    peer = socket.create_connection(address, timeout=PATIENCE, source_address=(source, 0))
    return stack.enter_context(peer)


def received(peer: socket.socket) -> bytes:
    """Return all bytes until the server closes the connection."""
    found = b""
    try:
        while data := peer.recv(1 << 16):
            found += data
    except ConnectionResetError:
        pass
    return found


def probe(stack: ExitStack, server: WebServer, source: str = "127.0.0.1") -> bytes:
    peer = connect(stack, server, source)
    peer.sendall(PROBE)
    return received(peer)


@pytest.mark.parametrize("sent", STALLED)
@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2"])
def test_stalled_connections_do_not_starve_a_probe(sent: bytes, source: str) -> None:
    with served(FakeStatus(busy(0))) as server, ExitStack() as stack:
        stalled = [connect(stack, server) for _ in range(ATTACKERS)]
        for peer in stalled:
            try:
                peer.sendall(sent)
            except ConnectionError:  # evicted already
                continue
        for _ in range(3):
            assert probe(stack, server, source).endswith(b"ok\n")


def test_connections_of_many_addresses_do_not_starve_a_probe() -> None:
    with served(FakeStatus(status())) as server, ExitStack() as stack:
        for number in range(2 * MAX_CONNECTIONS):
            connect(stack, server, f"127.0.1.{number + 1}")
        assert probe(stack, server).endswith(b"ok\n")


class SlowStatus(FakeStatus):
    """A status that is complete when the test says so."""

    def __init__(self) -> None:
        super().__init__(status())
        self.complete = threading.Event()

    def snapshot(self) -> StatusSnapshot:
        self.complete.wait(PATIENCE)
        return super().snapshot()


def test_slow_pages_do_not_starve_a_probe() -> None:
    source = SlowStatus()
    with served(source) as server, ExitStack() as stack:
        pages = [
            connect(stack, server, f"127.0.0.{number % 4 + 2}") for number in range(MAX_CONNECTIONS)
        ]
        for page in pages:
            page.sendall(PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert probe(stack, server).endswith(b"ok\n")
        source.complete.set()
        answers = [received(page).split(b"\r\n")[0] for page in pages]

    served_pages = answers.count(b"HTTP/1.1 200 OK")
    assert MAX_CONNECTIONS - RESERVED_FOR_PROBES - 1 <= served_pages < MAX_CONNECTIONS


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    folder: Path = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "server", "authority", "subjectAltName=IP:127.0.0.1")
    certificate, key = str(folder / "server.pem"), str(folder / "server.key")
    settings = WebSettings(port=0, cert_file=certificate, key_file=key)
    with served(FakeStatus(status()), settings) as server:
        yield server


def unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


HALF_OPEN = [
    pytest.param(b"", id="no byte"),
    pytest.param(b"\x16\x03\x01\x02\x00\x01", id="half a greeting"),
]


@pytest.mark.parametrize("sent", HALF_OPEN)
def test_half_open_tls_connections_are_counted(encrypted: WebServer, sent: bytes) -> None:
    before = descriptors()
    with ExitStack() as stack:
        peers = [connect(stack, encrypted) for _ in range(ATTACKERS)]
        for peer in peers:
            try:
                peer.sendall(sent)
            except ConnectionError:  # evicted already
                continue
        for peer in peers[: ATTACKERS - MAX_PER_ADDRESS]:
            assert received(peer) == b""
        with unverified().wrap_socket(connect(stack, encrypted)) as peer:
            peer.sendall(PROBE)
            assert received(peer).endswith(b"ok\n")
        assert descriptors() - before <= len(peers) + MAX_PER_ADDRESS + 2


def test_tls_connections_that_do_not_end_are_counted(encrypted: WebServer) -> None:
    with ExitStack() as stack:
        peers = []
        for _ in range(MAX_PER_ADDRESS + 1):  # each is answered and never closes its side
            raw = connect(stack, encrypted)
            peer = unverified().wrap_socket(raw, suppress_ragged_eofs=False)
            stack.enter_context(peer).sendall(PROBE)
            while not peer.recv(1 << 16).endswith(b"ok\n"):
                pass
            peers.append(peer)
        address = ("127.0.0.1", encrypted.port)
        with socket.create_connection(address, timeout=PATIENCE):
            first = socket.socket(fileno=os.dup(peers[0].fileno()))
            with first:
                first.settimeout(PATIENCE)
                received(first)  # evicted: no connection waits for the client to close it


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def opened(connections: Connections, address: str, closed: list[PeerConnection]) -> PeerConnection:
    connection = connections.admit(address)
    assert connection is not None
    connection.close = lambda: closed.append(connection)
    return connection


def test_the_oldest_connection_of_the_busiest_address_is_evicted() -> None:
    ticks = iter(range(1_000))
    connections, closed = Connections(lambda: next(ticks)), list[PeerConnection]()
    quiet = opened(connections, "10.0.0.1", closed)
    flood = [opened(connections, "10.0.0.2", closed) for _ in range(MAX_PER_ADDRESS + 1)]
    connections.begin(flood[1], probe=False)
    opened(connections, "10.0.0.2", closed)

    assert closed == [flood[0], flood[2]]
    assert quiet not in closed


def test_an_address_that_only_serves_is_refused() -> None:
    connections = Connections()
    for _ in range(MAX_PER_ADDRESS):
        connections.begin(opened(connections, "10.0.0.1", []), probe=True)

    assert connections.admit("10.0.0.1") is None
    assert connections.admit("10.0.0.2") is not None


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["page", "probe", "idle", "close"]))))
def test_no_sequence_passes_the_bounds(steps: list[tuple[int, str]]) -> None:
    connections, there = Connections(), list[PeerConnection]()
    for number, action in steps * 8:
        connection = connections.admit(f"10.0.0.{number}")
        if connection is None:
            continue
        there.append(connection)
        connection.close = partial(there.remove, connection)
        if action in {"page", "probe"}:
            begun = connections.begin(connection, probe=action == "probe")
            serving = sum(each.serving for each in there)
            assert begun or action == "page"
            if begun and action == "page":
                assert serving <= MAX_CONNECTIONS - RESERVED_FOR_PROBES
        elif action == "close":
            connections.remove(connection)
            there.remove(connection)
        assert len(there) <= MAX_CONNECTIONS
        assert sum(each.address == f"10.0.0.{number}" for each in there) <= MAX_PER_ADDRESS


def test_a_network_of_ipv6_is_one_address() -> None:
    assert address_of("2001:db8::1") == address_of("2001:db8::ffff:1") == "2001:db8::"
    assert address_of("fe80::1%eth0") == "fe80::"
    assert address_of("192.0.2.7") == "192.0.2.7"
