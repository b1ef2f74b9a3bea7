from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.encryption import open_connections, plain_hosts
from gateway.check.examine import examine
from gateway.config.load import load
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.settings.mqtt import MqttSettings, MqttTlsSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.settings.yami4 import Yami4Settings

CONFIG = """\
endpoints:
  near: {{kind: memory, dialect: mqtt}}
  far: {{{far}}}
routes:
  r: {{from: {{endpoint: near, pattern: a}}, to: {{endpoint: far}}}}
"""
FOUND = [
    pytest.param(
        "kind: mqtt, host: b.example, tls: {verify: false}", "tls-unverified", 3, id="off"
    ),
    pytest.param("kind: mqtt, host: b.example, password: '${env:P}'", "no-tls", 3, id="plain"),
    pytest.param(
        "kind: mqtt, host: b.example, websocket: {headers: {Key: '${env:P}'}}",
        "no-tls",
        3,
        id="headers",
    ),
    pytest.param(
        "kind: solace, url: 'tcps://b:1', tls: {verify: false}", "tls-unverified", 3, id="solace"
    ),
    pytest.param(
        "kind: yami4, url: 'tcps://b:1', tls: {verify: false}", "tls-unverified", 3, id="yami4"
    ),
]
NOT_FOUND = [
    pytest.param("kind: mqtt, host: 127.0.0.1, password: '${env:P}'", id="loopback"),
    pytest.param("kind: mqtt, host: b.example, password: '${env:P}', tls: {}", id="encrypted"),
    pytest.param("kind: mqtt, host: b.example", id="nothing-secret"),
    pytest.param("kind: solace, url: 'tcps://b:1', password: '${env:P}'", id="tcps"),
]
PLAIN: list[object] = [
    pytest.param(MqttSettings(host="b"), ["b"], id="mqtt"),
    pytest.param(MqttSettings(host="b", tls=MqttTlsSettings()), [], id="mqtt-tls"),
    pytest.param(MqttSettings(host="::1"), [], id="loopback-6"),
    pytest.param(SolaceSettings(url="tcp://a:55555,tcps://b:55443"), ["a"], id="one-of-two"),
    pytest.param(SolaceSettings(url="a:1,tcps:b:2, tcp:c,[::1]"), ["a", "c"], id="no-slashes"),
    pytest.param(JmsSettings(urls=("ssl://a:7243,tcp://b:7222",)), ["b"], id="ems-pair"),
    pytest.param(
        JmsSettings(urls=("failover:(nio+ssl://a:1,tcp://u:p@b:2)?x=1",)), ["b"], id="failover"
    ),
    pytest.param(JmsSettings(urls=("tcp://[::1]:7222", "tcp://[fe80::1]:1")), ["fe80::1"], id="6"),
    pytest.param(
        JmsSettings(urls=("ssl://a:1",), jndi_url="tibjmsnaming://c:7222"), ["c"], id="jndi"
    ),
    pytest.param(Yami4Settings(url="unix:///run/yami"), [], id="unix"),
]


def found(folder: Path, far: str) -> list[tuple[str, str, int]]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(far=far))
    findings = examine(load(file, {"P": "hunter2"}))
    return [
        (each.rule, each.severity, each.line)
        for each in findings
        if each.rule in {"tls-unverified", "no-tls"}
    ]


@pytest.mark.parametrize(("far", "rule", "line"), FOUND)
def test_an_open_connection_is_a_finding(tmp_path: Path, far: str, rule: str, line: int) -> None:
    severity = "warning" if rule == "tls-unverified" else "note"

    assert found(tmp_path, far) == [(rule, severity, line)]


@pytest.mark.parametrize("far", NOT_FOUND)
def test_a_protected_connection_has_no_finding(tmp_path: Path, far: str) -> None:
    assert found(tmp_path, far) == []


@pytest.mark.parametrize(("settings", "hosts"), PLAIN)
def test_hosts_without_encryption_are_listed(settings: EndpointSettings, hosts: list[str]) -> None:
    assert plain_hosts(settings) == hosts


def test_a_token_in_plain_text_is_noted_as_a_password_is(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints:\n"
        "  bus: {kind: nats, url: 'nats://far:4222', token: '${file:token}'}\n"
        "  lab: {kind: memory, dialect: mqtt}\n"
        'routes: {r: {from: {endpoint: lab, pattern: "#"}, to: {endpoint: bus}}}\n'
    )

    (found,) = open_connections(load(file))

    assert (found.rule, found.line) == ("no-tls", 2)
    assert "the token goes to 'far' in plain text" in found.reason
