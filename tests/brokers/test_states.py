"""The state of a connection as a retained message with a will, at real brokers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.endpoints.base import Statement, Subscription
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.brokers.wire import Wire
from tests.endpoints.exchange import QUIET, opened
from tests.waiting import until

pytestmark = pytest.mark.broker

TOPIC = "bridge/plant-1/state"
STATE = "state: {{endpoint: {at}, of: {of}, name: bridge/plant-1/state, payload: {payload}}}\n"
CONFIG = """\
gateway: {{name: plant-1}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {plant}, version: '{version}', {fast}}}
  hub: {{kind: mqtt, host: 127.0.0.1, port: {hub}, version: '{version}', {fast}}}
routes:
  up:
    from: {{endpoint: plant, pattern: "line/#"}}
    to: {{endpoint: hub}}
archive: {{path: {folder}/archive}}
"""
FAST = "backoff_min: 0.05, backoff_max: 0.2"


class Told:
    """The states that a reader at a broker was told, in order. Mutable."""

    def __init__(self, port: int, topic: str = TOPIC) -> None:
        self.payloads: list[bytes] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda client, *_: client.subscribe(topic, 1)
        self._client.on_message = lambda _client, _data, message: self.payloads.append(
            bytes(message.payload)
        )
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def wait_for(self, payload: bytes) -> None:
        until(lambda: self.payloads[-1:] == [payload], f"{payload!r} is not told")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def told(broker: Mosquitto) -> Iterator[Told]:
    reader = Told(broker.port)
    try:
        yield reader
    finally:
        reader.close()


def retained(broker: Mosquitto) -> bytes:
    """Return the state that a new subscriber gets."""
    with told(broker) as reader:
        until(lambda: bool(reader.payloads), "nothing is retained")
        return reader.payloads[0]


def write_config(  # the parameters of a table
    folder: Path, plant: int, hub: int, *, at: str = "hub", of: str = "plant",
    version: str = "5", payload: str = "flag",
) -> Path:  # fmt: skip
    file = folder / "gateway.yaml"
    file.write_text(
        CONFIG.format(plant=plant, hub=hub, version=version, folder=folder, fast=FAST)
        + STATE.format(at=at, of=of, payload=payload)
    )
    return file


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_the_state_follows_the_connection_and_a_stop_ends_it(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    plant, hub = start_mosquitto(), start_mosquitto()
    process = Process(write_config(tmp_path, plant.port, hub.port, version=version))
    try:
        with told(hub) as reader:
            reader.wait_for(b"1")
            plant.stop()
            reader.wait_for(b"0")
            plant.start()
            reader.wait_for(b"1")
            assert retained(hub) == b"1"
            assert process.end() == 0
            reader.wait_for(b"0")
    finally:
        process.end(signal.SIGKILL)

    assert retained(hub) == b"0"


def test_a_killed_gateway_leaves_its_will(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    plant, hub = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, plant.port, hub.port)
    with told(hub) as reader:
        for _ in range(3):
            process = Process(config)
            reader.wait_for(b"1")
            process.end(signal.SIGKILL)
            reader.wait_for(b"0")

    assert retained(hub) == b"0"


def test_the_state_at_the_source_side_and_after_the_broker_lost_it(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """The broker of the state is killed with what it retained: the next CONNACK tells it again."""
    plant, hub = start_mosquitto(), start_mosquitto("allow_anonymous true", "persistence false")
    config = write_config(tmp_path, plant.port, hub.port, at="[plant, hub]", of="hub")
    process = Process(config)
    try:
        with told(plant) as reader:
            reader.wait_for(b"1")
            assert retained(hub) == b"1"
            hub.kill()
            reader.wait_for(b"0")
            hub.start()
            reader.wait_for(b"1")
        until(lambda: retained(hub) == b"1")
        process.end()
    finally:
        process.end(signal.SIGKILL)

    assert (retained(plant), retained(hub)) == (b"0", b"0")


def test_a_state_in_json_has_no_address(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    plant, hub = start_mosquitto(), start_mosquitto()
    process = Process(write_config(tmp_path, plant.port, hub.port, payload="json"))
    try:
        until(lambda: json.loads(retained(hub))["connected"])
        found = json.loads(retained(hub))
    finally:
        process.end(signal.SIGKILL)

    assert found == {"gateway": "plant-1", "endpoint": "plant", "connected": True}
    until(lambda: not json.loads(retained(hub))["connected"])


def test_a_state_is_no_copy(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    plant, hub = start_mosquitto(), start_mosquitto()
    process = Process(write_config(tmp_path, plant.port, hub.port))
    try:
        until(lambda: retained(hub) == b"1")
    finally:
        assert process.end() == 0

    assert [*archived(tmp_path)] == []


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_the_will_of_a_frozen_holder_comes_before_the_state_of_the_next_one(
    mosquitto: Mosquitto, version: str
) -> None:
    """Both have one client id; the network of the old one is silent, so that it cannot log out."""
    frozen: list[tuple[MqttSink, Wire]] = []
    try:
        for _ in range(20):
            wire = Wire(mosquitto.port)
            settings = MqttSettings(
                host="127.0.0.1", port=wire.port, version=version, client_id="plant-1"
            )
            sink = MqttSink(settings)
            sink.statement = Statement(TOPIC, b"1", b"0")
            sink.open()
            sink.tell(connected=True)
            frozen.append((sink, wire))
            until(lambda: retained(mosquitto) == b"1")
            wire.stall()
        assert retained(mosquitto) == b"1"
    finally:
        for sink, wire in frozen:
            wire.close()
            sink.close()


def test_a_reader_that_was_away_is_told_the_last_state(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """Its session is kept, and it does not subscribe again: it gets what the broker kept for it."""
    plant, hub = start_mosquitto(), start_mosquitto()
    config = write_config(tmp_path, plant.port, hub.port)
    kept = MqttSettings(host="127.0.0.1", port=hub.port, client_id="away", session_expiry=600)
    with opened(reader := make_source(kept, [Subscription(TOPIC, exclude_retained=True)])):
        assert reader.receive(QUIET) is None
    process = Process(config)
    until(lambda: retained(hub) == b"1")
    process.end(signal.SIGKILL)
    until(lambda: retained(hub) == b"0")
    process = Process(config)
    told_then: list[object] = []
    try:
        until(lambda: retained(hub) == b"1")
        with opened(reader := make_source(kept, [Subscription(TOPIC, exclude_retained=True)])):
            while (batch := reader.receive(QUIET)) is not None:
                told_then += [each.payload for each in batch.messages]
    finally:
        process.end(signal.SIGKILL)

    assert told_then[-1] == b"1"
    assert b"1" in told_then[:-1]


def test_a_broker_that_refuses_the_state_is_named(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    rules = tmp_path / "rules"
    rules.write_text("topic readwrite line/#\ntopic read bridge/#\n")
    plant, hub = start_mosquitto(), start_mosquitto(*OPEN, f"acl_file {rules}")
    process = Process(write_config(tmp_path, plant.port, hub.port))
    try:
        process.wait_for("hub: the broker refuses the state 'bridge/plant-1/state': ")
    finally:
        process.end(signal.SIGKILL)
