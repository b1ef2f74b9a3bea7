"""The server over real sockets: limits, refusals, TLS and faults."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.process import WebSettings
from gateway.errors import WebError
from gateway.trial.brokers.listening import free_port
from gateway.web.application import HEADERS, WebApplication
from gateway.web.client import ConnectionOptions, StatusClient
from gateway.web.exchange import HttpRequest, HttpResponse
from gateway.web.http_connection import serve
from gateway.web.server import WebServer
from tests.brokers.test_mqtt_tls import make_certificate
from tests.waiting import PATIENCE
from tests.web.status_samples import FakeStatus, served, status

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def exchange(server: WebServer, sent: bytes) -> bytes:
    """Return all bytes of the server's response to `sent`."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as peer:
        peer.sendall(sent)
        with peer.makefile("rb") as stream:
            return stream.read()


def test_one_connection_serves_many_requests() -> None:
    with served(FakeStatus(status())) as server:
        response = exchange(server, GET + GET + LAST)

    assert response.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert response.count(b"\r\n\r\nok\n") == 3


def test_every_response_has_the_security_headers() -> None:
    requests = [LAST, LAST.replace(b"/healthz", b"/nowhere"), b"nonsense\r\n\r\n"]
    with served(FakeStatus(status())) as server:
        answers = [exchange(server, request).decode() for request in requests]

    assert [answer.split()[1] for answer in answers] == ["200", "404", "400"]
    for answer in answers:
        for name, value in HEADERS.items():
            assert f"\r\n{name}: {value}\r\n" in answer


def test_the_page_may_load_nothing_but_itself() -> None:
    with served(FakeStatus(status())) as server:
        head, _, body = exchange(server, LAST.replace(b"/healthz", b"/")).partition(b"\r\n\r\n")

    (policy,) = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Security")]
    assert b"default-src 'none'" in policy
    assert b"unsafe" not in policy
    assert b"http" not in policy.partition(b":")[2]
    assert b"src=" not in body
    assert b"@import" not in body


def test_head_has_no_body() -> None:
    with served(FakeStatus(status())) as server:
        head, _, body = exchange(server, LAST.replace(b"GET", b"HEAD")).partition(b"\r\n\r\n")

    assert b"Content-Length: 3" in head
    assert body == b""


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000, b"431", id="endless header"),
        pytest.param(b"GET /" + b"a" * 100_000, b"431", id="endless path"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
            b"431",
            id="long head",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n" + b"a" * 5000,
            b"413",
            id="a body",
        ),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", b"400", id="no host"),
        pytest.param(b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n", b"400", id="TLS to a plain port"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"400",
            id="two lengths",
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"400",
            id="length and chunks",
        ),
        pytest.param(
            b"GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"400",
            id="chunks of HTTP/1.0",
        ),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
            b"400",
            id="two tokens",
        ),
        pytest.param(b"GET / HTTP/1.1\nHost: a\n\n", b"400", id="bare LF"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", b"400", id="one bare LF"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", b"400", id="folded line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n\tc\r\n\r\n", b"400", id="folded by a tab"),
    ],
)
def test_oversized_and_malformed_requests_are_refused(sent: bytes, code: bytes) -> None:
    with served(FakeStatus(status())) as server:
        response = exchange(server, sent)
        assert exchange(server, LAST).endswith(b"ok\n")

    assert response.startswith(b"HTTP/1.1 " + code)


def test_an_address_in_use_is_an_error() -> None:
    with served(FakeStatus(status())) as server:
        ref = WebSettings(port=server.port)
        with pytest.raises(WebError, match=f"cannot listen at 127.0.0.1:{server.port}: Address"):
            WebServer(WebApplication(FakeStatus(status()), mutual_tls=False), ref)


def test_a_server_that_never_started_frees_its_port() -> None:
    port = free_port()
    for _ in range(2):
        server = WebServer(
            WebApplication(FakeStatus(status()), mutual_tls=False), WebSettings(port=port)
        )
        server.stop()
        server.stop()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


# A connection whose task is cancelled before it began is closed when its socket is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_clients_that_connect_while_the_server_stops_make_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connected = threading.Semaphore(0)

    def connect(port: int) -> None:
        with suppress(OSError):
            while True:
                socket.create_connection(("127.0.0.1", port), timeout=0.1).close()
                connected.release()

    for _ in range(10):
        with served(FakeStatus(status())) as server:
            clients = [threading.Thread(target=connect, args=(server.port,)) for _ in range(3)]
            for client in clients:
                client.start()
            for _ in range(10):  # the server is in the midst of accepting them
                assert connected.acquire(timeout=PATIENCE)
        for client in clients:
            client.join()

    assert "cannot accept" not in caplog.text


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "stranger", None)
    make_certificate(folder, "server", "authority", "subjectAltName=IP:127.0.0.1")
    make_certificate(folder, "client", "authority")
    return folder


def guarded(folder: Path) -> WebSettings:
    return WebSettings(
        port=0,
        cert_file=str(folder / "server.pem"),
        key_file=str(folder / "server.key"),
        client_ca_file=str(folder / "authority.pem"),
    )


def test_with_mutual_tls_only_known_clients_are_answered(certificates: Path) -> None:
    folder = certificates
    authority = folder / "authority.pem"
    with served(FakeStatus(status()), guarded(folder)) as server:
        known = ConnectionOptions(
            server.url, None, authority, folder / "client.pem", folder / "client.key"
        )
        assert StatusClient(known).status()["gateway"] == "plant-1"
        unknown = [
            ConnectionOptions(server.url, None, authority),
            ConnectionOptions(
                server.url, None, authority, folder / "stranger.pem", folder / "stranger.key"
            ),
        ]
        for options in unknown:
            with pytest.raises(WebError):
                StatusClient(options).status()
        assert StatusClient(known).status()["ready"] is True


def test_other_certificates_and_another_token_are_taken_into_use(certificates: Path) -> None:
    folder = certificates
    make_certificate(folder, "other-authority", None)
    make_certificate(folder, "other", "other-authority", "subjectAltName=IP:127.0.0.1")
    old = WebSettings(
        port=0, cert_file=str(folder / "server.pem"), key_file=str(folder / "server.key"),
        token="the-first-token-of-the-page",  # noqa: S106  # only of this test
    )  # fmt: skip
    new = replace(
        old, cert_file=str(folder / "other.pem"), key_file=str(folder / "other.key"),
        token="the-second-token-of-the-page",  # noqa: S106  # only of this test
    )  # fmt: skip
    with served(FakeStatus(status()), old) as server:
        old_token, new_token = folder / "old-token", folder / "new-token"
        old_token.write_text(str(old.token))
        new_token.write_text(str(new.token))
        before = ConnectionOptions(server.url, old_token, folder / "authority.pem")
        after = ConnectionOptions(server.url, new_token, folder / "other-authority.pem")
        assert StatusClient(before).status()["ready"] is True

        take = server.prepared(new)
        assert StatusClient(before).status()["ready"] is True
        take()

        assert StatusClient(after).status()["ready"] is True
        server.prepared(replace(new, previous_token=old.token))()
        for right in (after, replace(after, token_file=old_token)):
            assert StatusClient(right).status()["ready"] is True
        take()
        for wrong in (replace(after, ca_file=before.ca_file), replace(after, token_file=old_token)):
            with pytest.raises(WebError):
                StatusClient(wrong).status()


def test_certificates_that_cannot_be_used_change_nothing(certificates: Path) -> None:
    settings = guarded(certificates)
    with served(FakeStatus(status()), settings) as server:
        with pytest.raises(WebError, match="cannot use the certificates"):
            server.prepared(replace(settings, cert_file=str(certificates / "absent.pem")))
        known = ConnectionOptions(
            server.url, None, certificates / "authority.pem",
            certificates / "client.pem", certificates / "client.key",
        )  # fmt: skip
        assert StatusClient(known).status()["ready"] is True


def test_unusable_certificates_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    for name in ("bad.pem", "absent.pem"):
        ref = WebSettings(port=0, cert_file=str(tmp_path / name))
        with pytest.raises(WebError, match=f"cannot use the certificates .*{name}: "):
            WebServer(WebApplication(FakeStatus(status()), mutual_tls=False), ref)


async def _response(sent: list[bytes]) -> bytes:
    """Return the response of one connection to `sent`."""
    application = WebApplication(FakeStatus(status()), mutual_tls=False)

    async def answer(request: HttpRequest) -> HttpResponse:
        return application.answer(request)

    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    with theirs:
        for part in sent:
            theirs.sendall(part)
        theirs.shutdown(socket.SHUT_WR)
        await serve(reader, writer, answer)
        writer.close()
        await writer.wait_closed()
        theirs.settimeout(PATIENCE)
        with theirs.makefile("rb") as stream:
            return stream.read()


@given(
    st.lists(
        st.sampled_from(
            [
                b"GET ", b"HEAD ", b"CONNECT ", b"/", b"/api/status", b"?text=%", b" HTTP/1.1",
                b" HTTP/1.0", b"\r\n", b"\r\n\r\n", b"Host: localhost", b"Host:\xff", b"X: y",
                b"Content-Length: 3", b"Content-Length: -1", b"Transfer-Encoding: chunked",
                b"Expect: 100-continue", b"Upgrade: h2c", b"abc", b"0", b"\0",
            ]
        )
        | st.binary(max_size=20),
        max_size=12,
    )
)  # fmt: skip
def test_any_bytes_get_an_http_response_or_none(sent: list[bytes]) -> None:
    response = asyncio.run(_response(sent))

    assert response == b"" or response.startswith(b"HTTP/1.1 ")
    assert b"HTTP/1.1 5" not in response


def test_an_internal_error_does_not_reveal_its_text() -> None:
    class Broken(FakeStatus):
        def snapshot(self) -> object:  # type: ignore[override]  # the test needs a fault
            raise RuntimeError("hunter22")

    with served(Broken(status())) as server:
        response = exchange(server, LAST.replace(b"/healthz", b"/api/status"))
        assert exchange(server, LAST).endswith(b"ok\n")

    assert response.startswith(b"HTTP/1.1 500 ")
    assert b"hunter22" not in response
    assert "log" in json.loads(response.partition(b"\r\n\r\n")[2])["error"]
