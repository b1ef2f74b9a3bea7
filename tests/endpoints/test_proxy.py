"""A proxy that refuses, lies or says nothing: an error with its address, in bounded time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from time import monotonic

import pytest

from gateway.endpoints.proxy import connect_through
from gateway.endpoints.settings.proxy import ProxySettings
from gateway.errors import EndpointError, NotConnectedError
from tests.endpoints.proxies import ELSEWHERE, Proxy
from tests.waiting import PATIENCE


class Answering:
    """A proxy that answers each part of a request with the next of its answers. Mutable."""

    def __init__(self, *answers: bytes, stays: bool = False) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._answers, self._stays = answers, stays
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        client, _ = self._server.accept()
        client.settimeout(PATIENCE)
        with client, self._server:
            for answer in self._answers:
                client.recv(65_536)
                client.sendall(answer)
            if self._stays:
                self._ended.wait(PATIENCE)

    def end(self) -> None:
        self._ended.set()
        self.thread.join(PATIENCE)


@pytest.fixture
def ended() -> Iterator[list[Answering]]:
    made: list[Answering] = []
    yield made
    for each in made:
        each.end()


HEAD = b"HTTP/1.1 200 OK\r\n"
LOG_IN = b"\5\2"
HOSTILE = [
    pytest.param("http", [b"HTTP/1.1 407 Auth\r\n\r\n"], "it answers 407 Auth to CONNECT", False,
                 id="log-in"),
    pytest.param("http", [b"HTTP/1.1 403 No\r\n\r\n"], "it answers 403 No to CONNECT b.test:8883",
                 True, id="forbidden"),
    pytest.param("http", [b"HTTP/1.1 502 Bad Gateway\r\n\r\n"], "502 Bad Gateway", True, id="away"),
    pytest.param("http", [b""], "it closed the connection", True, id="closes"),
    pytest.param("http", [HEAD + b"X: " + b"x" * 70_000], "proxy http://127", True,
                 id="endless-head"),
    pytest.param("http", [b"SSH-2.0-server\r\n\r\n"], "proxy http://127", True, id="no-http"),
    pytest.param("http", [HEAD + b"\r\n\x20\x02\0\0"], "bytes came before", True, id="early-bytes"),
    pytest.param("http", [b"HTTP/1.1 100 Continue\r\n\r\n" * 600], "proxy http://127", True,
                 id="endless-interim"),
    pytest.param("socks5", [b"HTTP"], "does not speak SOCKS5", True, id="no-socks"),
    pytest.param("socks5", [b"\5\xff"], "it wants another log-in", False, id="no-method"),
    pytest.param("socks5", [b"\5\1"], "it wants another log-in", False, id="method-not-offered"),
    pytest.param("socks5", [LOG_IN, b"\1\1"], "it refuses the log-in", False, id="wrong-password"),
    pytest.param("socks5", [LOG_IN, b"\1\0", b"\5\4\0\1"], "does not connect to b.test:8883: host",
                 True, id="host-unreachable"),
    pytest.param("socks5", [LOG_IN, b"\1\0", b"\5\0"], "it closed the connection", True,
                 id="closes-in-the-middle"),
    pytest.param("socks5", [LOG_IN, b"\1\0", b"\5\x63\0\1"], "failure 99", True,
                 id="unknown-reply"),
]  # fmt: skip


@pytest.mark.parametrize(("scheme", "answers", "reason", "retryable"), HOSTILE)
def test_a_proxy_that_does_not_connect_is_an_error_with_its_address(
    ended: list[Answering], scheme: str, answers: list[bytes], reason: str, retryable: bool
) -> None:
    ended.append(proxy := Answering(*answers))
    settings = ProxySettings(url=f"{scheme}://127.0.0.1:{proxy.port}", username="u", password="p")  # noqa: S106

    with pytest.raises(EndpointError, match=reason) as caught:
        connect_through("m: b.test:8883", settings, "b.test", 8883, monotonic() + PATIENCE)

    assert str(caught.value).startswith(f"m: b.test:8883: proxy {scheme}://127.0.0.1:{proxy.port}:")
    assert caught.value.retryable is retryable


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_that_never_answers_is_an_error_at_the_deadline(
    ended: list[Answering], scheme: str
) -> None:
    ended.append(proxy := Answering(stays=True))
    settings = ProxySettings(url=f"{scheme}://127.0.0.1:{proxy.port}")

    with pytest.raises(NotConnectedError, match="no answer in time"):
        connect_through("m", settings, "b.test", 8883, monotonic() + 0.2)


def test_an_absent_proxy_is_an_error_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    settings = ProxySettings(url=f"http://127.0.0.1:{port}")

    with pytest.raises(NotConnectedError, match=f"proxy http://127.0.0.1:{port}: cannot connect"):
        connect_through("m", settings, "b.test", 8883, monotonic() + PATIENCE)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
@pytest.mark.parametrize("host", [ELSEWHERE, "127.0.0.1", "::1"])
def test_the_proxy_gets_the_name_as_it_is_written(proxy: Proxy, scheme: str, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        settings = proxy.settings(scheme)
        connect_through("m", settings, host, port, monotonic() + PATIENCE).close()

    assert [each.replace("[", "").replace("]", "") for each in proxy.asked] == [f"{host}:{port}"]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_name_that_socks_cannot_carry_is_an_error(proxy: Proxy, scheme: str) -> None:
    with pytest.raises(EndpointError):
        connect_through("m", proxy.settings(scheme), "a" * 300 + "ä", 1, monotonic() + PATIENCE)


@pytest.mark.parametrize(
    ("url", "name", "password", "reason"),
    [
        ("http://p:3128", None, None, ""),
        ("socks5://[::1]:1080/", "u", "p", ""),
        ("https://p:3128", None, None, "is no address of a proxy"),
        ("http://p", None, None, "is no address of a proxy"),
        ("http://p:0", None, None, "is no address of a proxy"),
        ("http://u:p@p:3128", None, None, "has a user name or a password"),
        ("http://p:3128", "u", None, "a user name needs a password"),
    ],
)
def test_faults(url: str, name: str | None, password: str | None, reason: str) -> None:
    settings = ProxySettings(url=url, username=name, password=password)
    faults = [each.reason for each in settings.faults()]

    assert len(faults) == bool(reason)
    assert all(reason in each for each in faults)
    assert all("u:p" not in each for each in faults)
