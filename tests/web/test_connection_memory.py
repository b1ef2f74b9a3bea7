"""Memory of closed TLS connections: it is free at once, without a collection of cycles."""

from __future__ import annotations

import gc
import ssl
from asyncio import sslproto
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from gateway.config.process import WebSettings
from gateway.web.server import WebServer
from tests.brokers.test_mqtt_tls import make_certificate
from tests.waiting import until
from tests.web.status_samples import FakeStatus, served, status
from tests.web.test_connection_limits import PROBE, connect, received, unverified

CONNECTIONS = 40  # more than one address may have


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    folder: Path = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    files = WebSettings(
        port=0, cert_file=str(folder / "authority.pem"), key_file=str(folder / "authority.key")
    )
    with served(FakeStatus(status()), files) as server:
        yield server


def half_a_greeting(stack: ExitStack, server: WebServer) -> None:
    connect(stack, server).sendall(b"\x16\x03\x01\x02\x00\x01")


def no_tls(stack: ExitStack, server: WebServer) -> None:
    peer = connect(stack, server)
    peer.sendall(PROBE)
    received(peer)


def idle(stack: ExitStack, server: WebServer) -> None:
    stack.enter_context(unverified().wrap_socket(connect(stack, server)))


def half_a_request(stack: ExitStack, server: WebServer) -> None:
    peer = stack.enter_context(unverified().wrap_socket(connect(stack, server)))
    peer.sendall(PROBE[:20])
    peer.close()


def a_request(stack: ExitStack, server: WebServer) -> None:
    peer = stack.enter_context(unverified().wrap_socket(connect(stack, server)))
    peer.sendall(PROBE)
    received(peer)


@pytest.mark.parametrize("client", [half_a_greeting, no_tls, idle, half_a_request, a_request])
def test_a_closed_tls_connection_leaves_no_memory(
    encrypted: WebServer, client: Callable[[ExitStack, WebServer], None]
) -> None:
    """A cycle would keep 300 KB of each, and the gateway collects cycles seldom."""
    gc.collect()
    gc.disable()
    try:
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):
                with suppress(ConnectionError, ssl.SSLError):  # evicted already
                    client(stack, encrypted)
        until(lambda: handshakes() == 0, "the TLS of all connections is free")
    finally:
        gc.enable()


def handshakes() -> int:
    """The number of TLS connections in memory."""
    return sum(isinstance(each, sslproto.SSLProtocol) for each in gc.get_objects())
