"""The options of the library's clients: log-ins, TLS, limits of its queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.endpoints.settings.base import TlsSettings
from gateway.endpoints.settings.kafka import KafkaSettings

client = pytest.importorskip("gateway.endpoints.kafka.client")


def options(settings: KafkaSettings) -> dict[str, Any]:
    found: dict[str, Any] = client.producer_options(settings, "r", client.ClientFaults("lake"))
    return found


def test_an_address_is_shown_without_its_family() -> None:
    class Failure:
        @staticmethod
        def str() -> str:
            return (
                "127.0.0.1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection"
                " refused (after 0ms in state CONNECT)"
            )

    address, reason = client.split_error(KafkaSettings(), Failure())
    assert address == "127.0.0.1:9092"
    assert reason == "Connect to 127.0.0.1:9092 failed: Connection refused"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(KafkaSettings(), {"security.protocol": "plaintext"}, id="plain"),
        pytest.param(
            KafkaSettings(),
            {
                "acks": "all",
                "allow.auto.create.topics": False,
                "connections.max.idle.ms": 180_000,  # Kafka's servers: 600,000 by default
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "receive.message.max.bytes": 8 << 20,
            },
            id="defaults",
        ),
        pytest.param(
            KafkaSettings(tls=TlsSettings()),
            {
                "security.protocol": "ssl",
                "enable.ssl.certificate.verification": True,
                "ssl.endpoint.identification.algorithm": "https",
            },
            id="tls",
        ),
        pytest.param(
            KafkaSettings(tls=TlsSettings(ca_file="a.pem", cert_file="c.pem", key_file="c.key")),
            {
                "ssl.ca.location": "a.pem",
                "ssl.certificate.location": "c.pem",
                "ssl.key.location": "c.key",
            },
            id="mutual-tls",
        ),
        pytest.param(
            KafkaSettings(username="u", password="p", mechanism="SCRAM-SHA-512"),  # noqa: S106
            {
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "p",
            },
            id="scram",
        ),
        pytest.param(
            KafkaSettings(client_id="g-{instance}", bootstrap_servers=("a", "[::1]:1")),
            {"client.id": "g-r", "bootstrap.servers": "a:9092,[::1]:1"},
            id="names",
        ),
        pytest.param(
            KafkaSettings(send_window_bytes=200 << 20, compression="zstd"),
            {"queue.buffering.max.kbytes": 400 << 10, "compression.type": "zstd"},
            id="queue",
        ),
    ],
)
def test_settings_are_options_of_the_library(
    settings: KafkaSettings, expected: dict[str, object]
) -> None:
    assert options(settings).items() >= expected.items()


def test_a_token_is_read_again_at_each_refresh(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-yesterday\n")
    file = tmp_path / "gateway.yaml"
    file.write_text(
        "endpoints: {e: {kind: kafka, token: '${file:token}'}}\n"
        "routes: {r: {from: {endpoint: e, topic: a}, to: {endpoint: e, topic: b}}}\n"
    )
    settings = load(file).endpoints["e"].settings
    assert isinstance(settings, KafkaSettings)
    found = options(settings)

    (tmp_path / "token").write_text("of-today\n")
    assert found["sasl.mechanism"] == "OAUTHBEARER"
    assert found["oauth_cb"]("")[0] == "of-today"


def test_a_state_of_a_client_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    faults = client.ClientFaults("lake")
    with caplog.at_level("DEBUG"):
        for milliseconds in range(5):
            faults.log(7, "%s", f"FAIL: refused (after {milliseconds}ms in state CONNECT)")

    assert [each.getMessage() for each in caplog.records] == [
        "lake: FAIL: refused (after 0ms in state CONNECT)"
    ]
