"""MQTT over WebSocket, TLS and proxies, as plants reach their brokers, with a real mosquitto."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings, WebSocketSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.test_mqtt_tls import certificates
from tests.endpoints.exchange import Answer, collect, opened
from tests.endpoints.proxies import ELSEWHERE, PASSWORD, USERNAME, Proxy
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker
__all__ = ["certificates"]

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
SMALL = (1, 125, 126, 4_000)  # mosquitto 2.0.11 sends more than 4 KiB a second later
LARGE = (*SMALL, 65_535, 65_536, 900_000)


def cross(sends: MqttSettings, receives: MqttSettings, sizes: Sequence[int] = SMALL) -> None:
    """Send messages of many sizes and receive them."""
    source, sink = make_source(receives, [Subscription("t")]), make_sink(sends)
    messages = [Message("t", bytes([i % 256]) * size, ONCE) for size in sizes for i in range(20)]
    with opened(source, sink):
        answer = Answer()
        sink.send(messages, answer)

        assert collect(source, len(messages)) == messages
        assert answer.wait() == [ACCEPTED] * len(messages)


@pytest.fixture
def plain(start_mosquitto: StartMosquitto) -> MqttSettings:
    """An endpoint at a WebSocket of a broker."""
    broker = start_mosquitto(websocket=free_port())
    websocket = WebSocketSettings()
    return MqttSettings(name="m", host="127.0.0.1", port=broker.websocket, websocket=websocket)


@pytest.fixture
def encrypted(start_mosquitto: StartMosquitto, certificates: Path) -> MqttSettings:
    """An endpoint at a WebSocket with TLS of a broker."""
    port = free_port()
    start_mosquitto(
        "allow_anonymous true", f"listener {port}", "protocol websockets",
        f"certfile {certificates}/broker.pem", f"keyfile {certificates}/broker.key",
    )  # fmt: skip
    until(lambda: is_open(port), "the WebSocket listener does not open")
    tls = MqttTlsSettings(ca_file=f"{certificates}/authority.pem", server_hostname="broker.test")
    return MqttSettings(
        name="m", host="127.0.0.1", port=port, tls=tls, websocket=WebSocketSettings()
    )


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_messages_of_many_sizes_cross_a_websocket(plain: MqttSettings, version: str) -> None:
    settings = replace(plain, version=version)
    cross(settings, settings)


def test_large_messages_go_out(start_mosquitto: StartMosquitto) -> None:
    broker = start_mosquitto(websocket=free_port())
    receives = MqttSettings(host="127.0.0.1", port=broker.port)
    sends = replace(receives, port=broker.websocket, websocket=WebSocketSettings())
    cross(sends, receives, LARGE)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_messages_of_many_sizes_cross_a_websocket_with_tls(
    encrypted: MqttSettings, version: str
) -> None:
    settings = replace(encrypted, version=version)
    cross(settings, settings)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_proxy_resolves_the_name_of_a_broker(
    mosquitto: Mosquitto, proxy: Proxy, scheme: str
) -> None:
    settings = MqttSettings(host=ELSEWHERE, port=mosquitto.port, proxy=proxy.settings(scheme))
    cross(settings, settings, LARGE)

    assert {*proxy.asked} == {f"{ELSEWHERE}:{mosquitto.port}"}


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_websocket_with_tls_goes_through_a_proxy(
    encrypted: MqttSettings, proxy: Proxy, scheme: str
) -> None:
    settings = replace(encrypted, host=ELSEWHERE, proxy=proxy.settings(scheme))
    cross(settings, settings)

    assert {*proxy.asked} == {f"{ELSEWHERE}:{encrypted.port}"}


def test_variables_of_the_environment_have_no_effect(
    mosquitto: Mosquitto, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    settings = MqttSettings(host="127.0.0.1", port=mosquitto.port)
    cross(settings, settings)

    assert proxy.asked == []


def test_a_plain_listener_is_no_websocket(mosquitto: Mosquitto) -> None:
    settings = MqttSettings(port=mosquitto.port, websocket=WebSocketSettings())

    with pytest.raises(NotConnectedError, match="WebSocket: the server ended the handshake"):
        make_sink(settings).open()


@pytest.mark.parametrize(("offered", "agreed"), [((), ""), (("x-amzn-mqtt-ca",), "x-amzn-mqtt-ca")])
def test_the_protocols_of_alpn_are_offered(
    certificates: Path, offered: tuple[str, ...], agreed: str
) -> None:
    """Mosquitto takes any; so a server that ends after its handshake tells what was agreed on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "broker.pem", certificates / "broker.key")
    context.set_alpn_protocols(["x-amzn-mqtt-ca"])
    found: list[str | None] = []

    def serve() -> None:
        client, _ = server.accept()
        with context.wrap_socket(client, server_side=True) as encrypted:
            found.append(encrypted.selected_alpn_protocol())
            encrypted.recv(1_024)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        future = pool.submit(serve)
        tls = MqttTlsSettings(ca_file=f"{certificates}/authority.pem", alpn=offered)
        settings = MqttSettings(host="127.0.0.1", port=server.getsockname()[1], tls=tls)
        with pytest.raises(NotConnectedError):
            make_sink(settings).open()
        future.result(PATIENCE)

    assert [each or "" for each in found] == [agreed]


def test_connect_tells_address_way_and_certificate(
    encrypted: MqttSettings,
    proxy: Proxy,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROXY_USER", USERNAME)
    monkeypatch.setenv("PROXY_PASSWORD", PASSWORD)
    assert encrypted.tls is not None
    file = tmp_path / "gateway.yaml"
    file.write_text(f"""\
endpoints:
  cloud:
    kind: mqtt
    host: {ELSEWHERE}
    port: {encrypted.port}
    tls: {{ca_file: {encrypted.tls.ca_file}, server_hostname: broker.test, alpn: [mqtt]}}
    websocket: /mqtt?key=1
    proxy:
      url: http://127.0.0.1:{proxy.port}
      username: ${{env:PROXY_USER}}
      password: ${{env:PROXY_PASSWORD}}
routes: {{r: {{from: {{endpoint: cloud, pattern: a}}, to: {{endpoint: cloud, template: b}}}}}}
""")
    assert main(["connect", str(file)]) == 0

    (line,) = capsys.readouterr().out.splitlines()
    way = f"WebSocket /mqtt, by proxy http://127.0.0.1:{proxy.port}"
    assert re.fullmatch(
        rf"cloud: connected to {ELSEWHERE}:{encrypted.port} \([\d.]+ s\); {re.escape(way)}; TLSv1.3"
        r"(, ALPN \S+)?, certificate commonName=broker, by commonName=authority, until .*",
        line,
    )


def test_a_wrong_password_at_the_proxy_is_an_error_with_its_address(
    mosquitto: Mosquitto, proxy: Proxy
) -> None:
    settings = MqttSettings(
        name="m", host=ELSEWHERE, port=mosquitto.port, proxy=proxy.settings("http", "wrong")
    )
    with pytest.raises(EndpointError, match=f"m: {ELSEWHERE}:{mosquitto.port}: proxy") as caught:
        make_sink(settings).open()

    assert "407 Proxy Authentication Required" in str(caught.value)
    assert not caught.value.retryable
