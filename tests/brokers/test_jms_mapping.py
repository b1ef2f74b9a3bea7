"""The example mapping of MQTT and EMS names carries real messages through ActiveMQ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.load import load
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import Mosquitto
from tests.endpoints.exchange import QUIET, collect, opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

MAPPING = Path(__file__).parents[2] / "mappings/pairs/mqtt-ems.yaml"
SECRETS = {"MQTT_HOST": "127.0.0.1", "MQTT_PASSWORD": "x", "EMS_PASSWORD": "x"}
ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


def with_brokers(mosquitto: Mosquitto, broker: ActiveMq) -> dict[str, Any]:
    """Return the mapping with the brokers of this test."""
    mapping: dict[str, Any] = yaml.safe_load(MAPPING.read_text(encoding="utf-8"))
    mapping["endpoints"]["plant"] |= {"port": mosquitto.port}
    mapping["endpoints"]["office"] |= {
        "classpath": list(client_jars()),
        "factory": FACTORY,
        "urls": [broker.url],
    }
    return mapping


def test_the_tests_of_the_mapping_hold_with_real_brokers(
    tmp_path: Path, mosquitto: Mosquitto, activemq: ActiveMq
) -> None:
    mapping = with_brokers(mosquitto, activemq)
    file = tmp_path / "gateway.yaml"
    file.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    plant = MqttSettings(name="plant", host="127.0.0.1", port=mosquitto.port, client_id="test")
    office = activemq.settings(name="office")
    senders = {"plant": make_sink(plant, instance="in"), "office": make_sink(office)}
    listeners = {
        "plant": make_source(plant, [Subscription("assets/#")]),
        "office": make_source(office, [Subscription("ASSETS.>")]),
    }
    gateway = Gateway(load(file, SECRETS))
    gateway.start()
    try:
        up = "connected"
        until(lambda: all(s.connection.value == up for s in gateway.states), "connections")
        with opened(*senders.values(), *listeners.values()):
            for name, test in mapping["tests"].items():
                given, expected = test["given"], test["expect"]
                assert send(senders[given["endpoint"]], message(given)) == [ACCEPTED]
                (own,) = collect(listeners[given["endpoint"]], 1)
                (got,) = collect(listeners[expected["endpoint"]], 1)

                assert own.address == given["name"]
                assert got.address == expected["name"], name
                assert got.payload == message(given).payload
            for listener in listeners.values():
                assert listener.receive(QUIET) is None  # no echo
    finally:
        assert gateway.stop(PATIENCE)


def message(given: Mapping[str, str]) -> Message:
    return Message(given["name"], given.get("payload", "").encode(), ONCE)
