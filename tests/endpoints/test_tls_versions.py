"""Every endpoint requires TLS 1.2 or later, also from a peer that offers less."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.settings.base import EndpointSettings, TlsSettings
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.tls import client_context
from gateway.errors import GatewayError
from tests.waiting import PATIENCE

KINDS = ["mqtt", "yami4", "solace", "nats", "rabbitmq", "amqp"]
GREETING = b'INFO {"version": "2.9.10", "tls_required": true, "max_payload": 1048576}\r\n'
pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")


class Server:
    """Accepts one connection with one version of TLS, and keeps the agreed version. Mutable."""

    def __init__(self, certificate: Path, version: ssl.TLSVersion, greeting: bytes) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        context.load_cert_chain(certificate)
        self.agreed: str | None = None
        self.done = threading.Event()
        self._context, self._greeting = context, greeting
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with self._listening, suppress(OSError):
            connection, _ = self._listening.accept()
            connection.settimeout(PATIENCE)
            connection.sendall(self._greeting)
            with self._context.wrap_socket(connection, server_side=True) as encrypted:
                self.agreed = encrypted.version()
        self.done.set()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    subprocess.run(  # noqa: S603
        [  # noqa: S607
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", file,
            "-out", file.with_suffix(".crt"),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + file.with_suffix(".crt").read_text())
    return file


def settings(kind: str, port: int, certificate: Path) -> EndpointSettings:
    tls = MqttTlsSettings(ca_file=str(certificate.with_suffix(".crt")))
    host = f"127.0.0.1:{port}"
    match kind:
        case "mqtt":
            return MqttSettings(host="127.0.0.1", port=port, tls=tls, connect_timeout=5)
        case "yami4":
            return Yami4Settings(url=f"tcps://{host}", tls=tls, connect_timeout=5)
        case "nats":
            return NatsSettings(url=f"tls://{host}", tls=tls, connect_timeout=5)
        case "amqp":
            return AmqpSettings(url=f"amqps://{host}", tls=tls, connect_timeout=5)
        case "rabbitmq":
            return RabbitmqSettings(url=f"amqps://{host}", tls=tls, connect_timeout=5)
        case _:
            pytest.importorskip("solace.messaging")
            return SolaceSettings(url=f"tcps://{host}", tls=tls, connect_timeout=5)


def connect(kind: str, version: ssl.TLSVersion, certificate: Path) -> str | None:
    """Return the agreed version, or None."""
    server = Server(certificate, version, GREETING if kind == "nats" else b"")
    sink = make_sink(settings(kind, server.port, certificate))
    with suppress(GatewayError):  # it is not a broker
        sink.open()
    sink.close()
    assert server.done.wait(PATIENCE)
    return server.agreed


@pytest.mark.parametrize("kind", KINDS)
def test_tls_1_1_is_refused(kind: str, certificate: Path) -> None:
    assert connect(kind, ssl.TLSVersion.TLSv1_1, certificate) is None


@pytest.mark.parametrize("kind", KINDS)
def test_tls_1_2_is_accepted(kind: str, certificate: Path) -> None:
    assert connect(kind, ssl.TLSVersion.TLSv1_2, certificate) == "TLSv1.2"


def test_the_least_version_does_not_depend_on_the_build_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some builds leave the least version to the settings of OpenSSL."""
    made = ssl.create_default_context()
    made.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: made)

    assert client_context("plant", TlsSettings()).minimum_version is ssl.TLSVersion.TLSv1_2
