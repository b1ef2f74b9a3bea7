"""tcps:// through a small TLS relay, as the broker has no encryption of its own."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4 import Yami4Sink, open_source
from gateway.errors import EndpointError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.yami4 import Yami4Broker, Yami4BrokerOptions
from tests.brokers.yami4_client import connect_to
from tests.endpoints.exchange import collect, opened, send

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl command")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "localhost.pem"
    subprocess.run(  # noqa: S603  # our own arguments
        [
            OPENSSL or "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out",
            str(tmp_path / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + (tmp_path / "cert.pem").read_text())
    return path


@pytest.fixture
def url(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with (
        Yami4Broker(options=Yami4BrokerOptions(max_client_queue=10_000)) as broker,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        thread = Thread(target=relay, args=(listener, context, broker.url), daemon=True)
        thread.start()
        yield f"tcps://localhost:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def relay(listener: socket.socket, context: ssl.SSLContext, url: str) -> None:
    """Pass bytes between encrypted connections and the broker until the listener is shut."""
    with ExitStack() as stack:
        while True:
            try:
                outer = listener.accept()[0]
            except OSError:
                return
            try:
                encrypted = context.wrap_socket(outer, server_side=True)
            except OSError:
                outer.close()
                continue
            inner = connect_to(url)
            for each in (encrypted, inner):
                stack.enter_context(each)
            for pair in ((encrypted, inner), (inner, encrypted)):
                Thread(target=copy, args=pair, daemon=True).start()


def copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def test_messages_arrive_over_an_encrypted_connection(url: str, certificate: Path) -> None:
    settings = Yami4Settings(url=url, tls=TlsSettings(ca_file=str(certificate)))
    source, sink = open_source(settings, [Subscription("a")]), Yami4Sink(settings)
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
    messages = [Message("a", str(number) * 100, headers) for number in range(1_000)]
    with opened(source, sink):
        assert send(sink, *messages) == [ACCEPTED] * 1_000
        assert collect(source, 1_000) == messages


def test_a_certificate_of_an_unknown_authority_is_refused(url: str) -> None:
    settings = Yami4Settings(url=url)
    with pytest.raises(EndpointError, match="certificate verify failed") as caught:
        Yami4Sink(settings).open()

    assert not caught.value.retryable
    sink = Yami4Sink(replace(settings, tls=TlsSettings(verify=False)))
    with opened(sink):
        assert send(sink, Message("a", b"")) == [ACCEPTED]


def test_a_certificate_of_another_name_is_refused(url: str, certificate: Path) -> None:
    tls = TlsSettings(ca_file=str(certificate), server_hostname="elsewhere")
    with pytest.raises(EndpointError, match="certificate verify failed"):
        Yami4Sink(Yami4Settings(url=url, tls=tls)).open()


def test_a_missing_file_is_a_permanent_error_that_names_it(url: str) -> None:
    with pytest.raises(EndpointError, match=r"yami4: cannot use /no/such\.pem: ") as caught:
        Yami4Sink(Yami4Settings(url=url, tls=TlsSettings(ca_file="/no/such.pem"))).open()

    assert not caught.value.retryable
