"""Certificates that are replaced: a reload connects again with the files that are there now."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import ConnectionState
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.test_mqtt_tls import make_certificate, serve
from tests.runtime.gateway.running import BrokerClient, configured
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  office:
    kind: mqtt
    host: 127.0.0.1
    port: {port}
    tls: {{ca_file: ca.pem, cert_file: used.pem, key_file: used.key}}
    backoff_max: 0.5
routes:
  all: {{from: {{endpoint: plant, pattern: "a/#"}}, to: {{endpoint: office}}}}
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rotation")
    make_certificate(folder, "authority", None)
    make_certificate(folder, "stranger", None)
    make_certificate(folder, "broker", "authority", "subjectAltName=IP:127.0.0.1")
    for name in ("first", "second"):
        make_certificate(folder, name, "authority", "extendedKeyUsage=clientAuth")
    return folder


@pytest.fixture
def plant() -> Iterator[BrokerClient]:
    client = BrokerClient("plant", "mqtt")
    yield client
    client.close()


def test_a_reload_takes_another_client_certificate_and_authority_into_use(
    start_mosquitto: StartMosquitto,
    certificates: Path,
    plant: BrokerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acl").write_text("user second\ntopic readwrite #\n")
    broker = serve(
        start_mosquitto, certificates, "require_certificate true",
        "use_identity_as_username true", f"acl_file {tmp_path / 'acl'}",
    )  # fmt: skip

    def use(name: str, authority: str = "authority") -> None:
        shutil.copy(certificates / f"{name}.pem", "used.pem")
        shutil.copy(certificates / f"{name}.key", "used.key")
        shutil.copy(certificates / f"{authority}.pem", "ca.pem")

    def state() -> ConnectionState:
        return gateway.lanes["office"].state.connection

    use("first")
    text = CONFIG.format(port=broker.port)
    gateway = Gateway(configured(text))
    gateway.start()
    try:
        until(lambda: state() is ConnectionState.CONNECTED)
        plant.publish(Message("a/1", b"denied", Headers(mode=DeliveryMode.AT_LEAST_ONCE)))
        until(lambda: sum(gateway.counters["all"].rules.values()) == 1)

        use("second")
        gateway.reload(configured(text))
        until(lambda: gateway.lanes["office"].state.connection is ConnectionState.CONNECTED)
        plant.publish(Message("a/2", b"permitted"))
        until(lambda: gateway.counters["all"].delivered == 1)

        use("second", "stranger")
        gateway.reload(configured(text))
        until(lambda: state() is ConnectionState.REFUSED)

        use("second")
        gateway.reload(configured(text))
        until(lambda: state() is ConnectionState.CONNECTED)
        sink = gateway.lanes["office"].state.reconnects
        gateway.reload(configured(text))
        assert gateway.lanes["office"].state.reconnects == sink, "the files are the same"
    finally:
        gateway.stop(PATIENCE)
