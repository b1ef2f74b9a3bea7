"""A secret that a file has is read again at each attempt to connect, for every kind with one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.config.load import Configuration, load
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, NotConnectedError
from gateway.setting import FileText, current
from tests.brokers import servers
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.nats_server import StartNats
from tests.brokers.rabbitmq_server import Vhost
from tests.endpoints.mqtt.peer import WELCOME
from tests.endpoints.mqtt.web_peer import WebPeer, web
from tests.waiting import PATIENCE

__all__ = ["web"]

ROUTE = "routes: {r: {from: {endpoint: e, pattern: a}, to: {endpoint: e, template: b}}}\n"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("of-yesterday\n")
    return file


def configured(folder: Path, endpoint: str) -> Configuration:
    file = folder / "gateway.yaml"
    file.write_text(f"endpoints:\n  e: {endpoint}\n{ROUTE}")
    return load(file)


@dataclass(frozen=True)
class Guarded:
    """A broker that knows one password, and the endpoint that uses the file `token`."""

    endpoint: str
    password: str


def _mosquitto(request: pytest.FixtureRequest) -> Guarded:
    start: StartMosquitto = request.getfixturevalue("start_mosquitto")
    folder: Path = request.getfixturevalue("tmp_path")
    file = folder / "passwords"
    file.touch()
    subprocess.run(  # noqa: S603
        [*servers.command("mosquitto_passwd"), "-b", file, "gateway", "of-today"],
        check=True,
        capture_output=True,
    )
    broker = start("allow_anonymous false", f"password_file {file}")
    return Guarded(
        f"{{kind: mqtt, port: {broker.port}, username: gateway, password: '${{file:token}}'}}",
        "of-today",
    )


def _nats(request: pytest.FixtureRequest) -> Guarded:
    start: StartNats = request.getfixturevalue("start_nats")
    url = start("authorization {token: of-today}").url
    return Guarded(
        f"{{kind: nats, url: '{url}', jetstream: false, token: '${{file:token}}'}}", "of-today"
    )


def _rabbitmq(request: pytest.FixtureRequest) -> Guarded:
    vhost: Vhost = request.getfixturevalue("rabbitmq")
    return Guarded(
        f"{{kind: rabbitmq, url: '{vhost.url}', username: guest, password: '${{file:token}}'}}",
        "guest",
    )


def _amqp(request: pytest.FixtureRequest) -> Guarded:
    vhost: Vhost = request.getfixturevalue("rabbitmq_4")
    return Guarded(
        f"{{kind: amqp, url: '{vhost.url}', username: guest, password: '${{file:token}}'}}", "guest"
    )


@pytest.mark.broker
@pytest.mark.parametrize("broker", [_mosquitto, _nats, _rabbitmq, _amqp])
def test_the_next_attempt_uses_the_new_secret(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    token: Path,
    broker: Callable[[pytest.FixtureRequest], Guarded],
) -> None:
    guarded = broker(request)
    configuration = configured(tmp_path, guarded.endpoint)
    sink = make_sink(configuration.endpoints["e"].settings)

    with pytest.raises(EndpointError) as refused:
        sink.open()
    token.write_text(f"{guarded.password}\n")
    sink.open()
    sink.close()
    token.unlink()
    with pytest.raises(NotConnectedError, match=r"nothing found for \$\{file:token\}; create") as e:
        sink.open()
    sink.close()

    assert "of-yesterday" not in str(refused.value)
    assert configuration.hidden.hide(f"x {guarded.password}") == "x ${file:token}"
    assert e.value.retryable


def test_headers_are_read_at_each_attempt(web: WebPeer, tmp_path: Path, token: Path) -> None:
    configuration = configured(
        tmp_path,
        f"{{kind: mqtt, host: 127.0.0.1, port: {web.settings.port}, websocket: {{headers:"
        " {Authorization: 'Bearer ${file:token}', X-Site: plain}}}",
    )
    learned: list[str] = []
    configuration.hidden.learned = learned.append
    sink = make_sink(configuration.endpoints["e"].settings)
    for text in ("of-yesterday", "of-today", "of-tomorrow"):
        token.write_text(text)
        future = web.opening(sink)
        web.write(WELCOME)
        future.result(PATIENCE)
        sink.close()

        assert f"\r\nAuthorization: Bearer {text}\r\n".encode() in web.request
        assert b"\r\nX-Site: plain\r\n" in web.request
    assert learned == ["of-today", "of-tomorrow"]


def test_a_value_without_a_file_stays_as_it_is() -> None:
    assert current("plain") == "plain"
    assert current(None) is None
    assert not isinstance("plain", FileText)


def test_a_check_without_secrets_reads_no_file(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints: {e: {kind: mqtt, username: u, password: '${file:absent}'}}\n" + ROUTE
    )
    settings = load(file, without_secrets=True).endpoints["e"].settings

    assert isinstance(settings, MqttSettings)
    assert not isinstance(settings.password, FileText)
