"""`restore_retained`: a target whose broker lost what it retained gets it again, and no other."""

from __future__ import annotations

import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.memory_session import MemorySession
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, StartMosquitto
from tests.brokers.rabbitmq_server import RabbitmqServer, Vhost, skip_without_rabbitmq
from tests.brokers.running import Process
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: plant-1}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {fast}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: '{version}', {fast},
    restore_retained: true}}
  other: {{kind: mqtt, host: 127.0.0.1, port: {other}, version: '{version}', {fast}}}
routes:
  up:
    from: {{endpoint: source, pattern: "line/#"}}
    to: [{{endpoint: target}}, {{endpoint: other}}]
archive: {{path: {folder}/archive}}
"""
FAST = "backoff_min: 0.05, backoff_max: 0.2"
RETAINED = Headers(mode=DeliveryMode.AT_LEAST_ONCE, retained=True)
MADE = "its broker began empty"


def at(port: int) -> MqttSettings:
    return MqttSettings(host="127.0.0.1", port=port)


def kept(broker: MqttSettings, count: int, pattern: str = "line/#") -> set[tuple[str, bytes]]:
    """Return what a new subscriber gets, once it is so many messages."""
    settings = replace(broker, session_expiry=0, client_id="reader")
    reader = make_source(settings, [Subscription(pattern)])
    with opened(reader):
        got = collect(reader, count)
        assert reader.receive(QUIET) is None
    return {(each.address, bytes(each.payload)) for each in got if each.headers.retained}  # type: ignore[arg-type]  # bytes


@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.nightly
def test_a_target_that_began_empty_gets_what_is_retained(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    source, other = start_mosquitto(), start_mosquitto()
    target = start_mosquitto(*OPEN)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        CONFIG.format(
            source=source.port, target=target.port, other=other.port, version=version,
            folder=tmp_path, fast=FAST,
        )
    )  # fmt: skip
    publisher = make_sink(MqttSettings(host="127.0.0.1", port=source.port, client_id="lamps"))
    lamps = {(f"line/{number}", b"%d" % number) for number in range(5)}
    process = Process(config)
    try:
        process.connected()
        process.wait_for("retained messages are restored", endpoint="target")
        with opened(publisher):
            send(publisher, *(Message(name, payload, RETAINED) for name, payload in sorted(lamps)))
        until(lambda: kept(at(target.port), 5) == lamps)
        target.kill()
        (target.folder / "mosquitto.db").unlink(missing_ok=True)
        target.start()
        process.wait_for("retained messages are restored", times=2, endpoint="target")
        assert kept(at(target.port), 5) == lamps

        target.stop()  # with its database: nothing is to be restored
        target.start()
        process.wait_for("connected", times=3, endpoint="target", side="sink")
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)

    rows = archived(tmp_path)
    delivered = [row["target"] for row in rows if row["leg"] == "delivered"]
    assert (delivered.count("target"), delivered.count("other")) == (10, 5)
    assert sum(row["leg"] == "received" and row["redelivered"] is True for row in rows) == 5
    assert sum(MADE in str(line["message"]) for line in process.lines) == 2


def in_rabbitmq(port: int, vhost: str = "/") -> MqttSettings:
    return MqttSettings(
        host="127.0.0.1", port=port, version="3.1.1", username=f"{vhost}:guest",
        password="guest",  # noqa: S106  # of every new server
    )  # fmt: skip


@pytest.mark.nightly  # it is the only one in each run that needs a node with MQTT
def test_rabbitmq_keeps_the_session_of_a_target_that_was_restored(rabbitmq_of_mqtt: Vhost) -> None:
    settings = in_rabbitmq(rabbitmq_of_mqtt.server.mqtt_port, rabbitmq_of_mqtt.name)
    session = MemorySession(settings, "plant/+/1-out")
    assert not session.is_present()
    assert not session.is_present()  # the question made none
    session.make()

    assert session.is_present()


IN_RABBITMQ = """\
gateway: {{name: plant-1}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, version: '{version}', {fast}, {source_of}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: 3.1.1, {fast}, {target_of},
    restore_retained: true}}
routes:
  up: {{from: {{endpoint: source, pattern: "line/1"}}, to: {{endpoint: target}}}}
"""
GUEST = "username: '{user}', password: '${{env:SECRET}}'"
SECRET = {"SECRET": "guest"}


@pytest.mark.nightly
def test_a_target_in_rabbitmq_is_restored_once_and_after_its_database_is_lost(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    skip_without_rabbitmq()
    source = start_mosquitto()
    (folder := tmp_path / "rabbitmq").mkdir()
    target = RabbitmqServer(folder, mqtt=True)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        IN_RABBITMQ.format(
            source=source.port, target=target.mqtt_port, version="5", fast=FAST, source_of="qos: 1",
            target_of=GUEST.format(user="guest"),
        )
    )  # fmt: skip
    with opened(publisher := make_sink(at(source.port))):
        send(publisher, Message("line/1", b"1", RETAINED))
    target.start()
    process = Process(config, SECRET)
    try:
        process.wait_for("retained messages are restored", endpoint="target")
        for connections, end in ((2, target.stop), (3, target.kill)):
            end()
            target.start()
            process.wait_for("connected", times=connections, endpoint="target", side="sink")
        assert sum(MADE in str(line["message"]) for line in process.lines) == 1
        target.stop()
        shutil.rmtree(folder / "mnesia")
        target.start()
        process.wait_for("retained messages are restored", times=2, endpoint="target")
        assert kept(in_rabbitmq(target.mqtt_port), 1, "line/1") == {("line/1", b"1")}
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)
        target.kill()


@pytest.mark.nightly
def test_what_rabbitmq_retains_is_restored_by_a_route_without_a_wildcard(
    tmp_path: Path, start_mosquitto: StartMosquitto, rabbitmq_of_mqtt: Vhost
) -> None:
    target, source = start_mosquitto(*OPEN), rabbitmq_of_mqtt
    settings = in_rabbitmq(source.server.mqtt_port, source.name)
    config = tmp_path / "gateway.yaml"
    config.write_text(
        IN_RABBITMQ.format(
            source=settings.port, target=target.port, version="3.1.1", fast=FAST,
            source_of=GUEST.format(user=settings.username), target_of="qos: 1",
        )
    )  # fmt: skip
    with opened(publisher := make_sink(settings)):
        send(publisher, Message("line/1", b"1", RETAINED))
    process = Process(config, SECRET)
    try:
        for times in (1, 2):
            process.wait_for("retained messages are restored", times=times, endpoint="target")
            assert kept(at(target.port), 1) == {("line/1", b"1")}
            target.kill()
            (target.folder / "mosquitto.db").unlink(missing_ok=True)
            target.start()
        assert process.end() == 0
    finally:
        process.end(signal.SIGKILL)
