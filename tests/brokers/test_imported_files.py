"""Each kind of file is imported, checked and run, and a message arrives at a real broker.

The bridges of mosquitto have their own tests (test_imported_bridge.py). ActiveMQ stands in for EMS:
its address and its factory are written into the mapping, as a person writes the server's.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import pika
import pytest

from gateway.cli import main
from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import open_sink, open_source
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Client, Process
from tests.endpoints.exchange import collect, opened, send
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker


def imported(system: str, file: Path, text: str, *, status: int = 0) -> Path:
    """Import a file; `status` is that of the command."""
    mapping = file.with_suffix(".yaml")
    file.write_text(text)
    assert main(["import", system, str(file), "-o", str(mapping)]) == status
    return mapping


@contextmanager
def running(mapping: Path, *sides: tuple[str, str]) -> Iterator[Process]:
    """Run a mapping that passes the check, until each side of it is connected."""
    text = mapping.read_text()
    mapping.write_text(text.replace("web: {}", "web: {port: 0}"))
    assert main(["check", str(mapping)]) == 0
    gateway = Process(mapping)
    try:
        for endpoint, side in sides:
            gateway.wait_for("connected", endpoint=endpoint, side=side)
        yield gateway
    finally:
        gateway.end(signal.SIGKILL)


def contains(message: tuple[str, bytes], arrived: list[tuple[str, bytes]]) -> bool:
    return message in arrived


def crosses(one: Client, name: str, other: Client, arrives_as: str) -> None:
    one.publish(name, name.encode()).wait_for_publish(PATIENCE)
    other.wait_for(partial(contains, (arrives_as, name.encode())))


NANOMQ = """\
listeners.tcp {{ bind = "127.0.0.1:{local}" }}
bridges.mqtt.hub {{
  server = "mqtt-tcp://127.0.0.1:{remote}"
  proto_ver = 5
  forwards = [
    {{ local_topic = "state/#", remote_topic = "", prefix = "plants/7/", qos = 1 }}
    {{ local_topic = "log/#", remote_topic = "logs", qos = 1 }}
  ]
  subscription = [{{ remote_topic = "cmd/#", local_topic = "", qos = 1 }}]
}}
"""
EMQX = """\
listener.tcp.external = 127.0.0.1:{local}
bridge.mqtt.hub.address = 127.0.0.1:{remote}
bridge.mqtt.hub.proto_ver = mqttv5
bridge.mqtt.hub.forwards = state/#,log/#
bridge.mqtt.hub.forward_mountpoint = plants/7/
bridge.mqtt.hub.subscription.1.topic = cmd/#
bridge.mqtt.hub.subscription.1.qos = 1
"""
BRIDGES = [
    pytest.param("nanomq.conf", NANOMQ, "logs", id="nanomq"),
    pytest.param("emqx_bridge_mqtt.conf", EMQX, "plants/7/log/x", id="emqx-4"),
]


@pytest.mark.parametrize(("name", "text", "log"), BRIDGES)
def test_a_bridge_of_nanomq_or_emqx(
    tmp_path: Path, start_mosquitto: StartMosquitto, name: str, text: str, log: str
) -> None:
    local, remote = start_mosquitto(), start_mosquitto()
    filled = text.format(local=local.port, remote=remote.port)

    mapping = imported("nanomq", tmp_path / name, filled)

    ends = ("hub", "source"), ("hub", "sink"), ("hub-local", "source"), ("hub-local", "sink")
    with running(mapping, *ends), clients(local, remote) as (here, there):
        crosses(here, "state/press", there, "plants/7/state/press")
        crosses(here, "log/x", there, log)
        crosses(there, "cmd/stop", here, "cmd/stop")


@contextmanager
def clients(local: Mosquitto, remote: Mosquitto) -> Iterator[tuple[Client, Client]]:
    here, there = Client(local.port, "#"), Client(remote.port, "#")
    try:
        yield here, there
    finally:
        here.close()
        there.close()


def shovels(url: str) -> str:
    ends = {"src-uri": url, "dest-uri": url}
    values = {
        "queues": {"src-queue": "in", "dest-queue": "out"},
        "keys": {
            "src-exchange": "amq.topic",
            "src-exchange-key": "plant.#",
            "dest-exchange": "amq.direct",
        },
    }
    parameters = [
        {"component": "shovel", "name": name, "vhost": "/", "value": {**ends, **value}}
        for name, value in values.items()
    ]
    return json.dumps({"parameters": parameters})


@pytest.mark.nightly
def test_the_shovels_of_rabbitmq(
    tmp_path: Path, rabbitmq: Vhost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in ("QUEUES_SOURCE", "QUEUES_TARGET", "KEYS_SOURCE", "KEYS_TARGET"):
        monkeypatch.setenv(f"{end}_USERNAME", "guest")
        monkeypatch.setenv(f"{end}_PASSWORD", "guest")
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for queue in ("in", "out", "keys"):
            channel.queue_declare(queue, durable=True)
        channel.queue_bind("keys", "amq.direct", "plant.line.1")
        mapping = imported("rabbitmq", tmp_path / "definitions.json", shovels(rabbitmq.url))

        with running(mapping, ("queues-source", "source"), ("keys-source", "source")):
            channel.basic_publish("", "in", b"by queue")
            channel.basic_publish("amq.topic", "plant.line.1", b"by key")

            assert next_body(connection, channel, "out") == b"by queue"
            assert next_body(connection, channel, "keys") == b"by key"


def next_body(
    connection: pika.BlockingConnection,
    channel: pika.adapters.blocking_connection.BlockingChannel,
    queue: str,
) -> bytes:
    """Wait for the next message of a queue."""
    for method, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=PATIENCE):
        channel.cancel()
        assert method is not None, f"nothing comes to {queue}"
        found: bytes = body
        return found
    raise AssertionError(connection)


def bridges_conf(topic: str, queue: str) -> str:
    return f"[topic:{topic}]\nqueue={queue} selector=\"kind in ('a', 'b')\"\n"


def script(topic: str, queue: str) -> str:
    return (
        f"create queue {queue}\ncreate bridge source=topic:{topic} target=queue:{queue}"
        " selector=\"kind in ('a','b')\"\ncommit\n"
    )


def server_json(topic: str, queue: str) -> str:
    target = {"name": queue, "type": "queue", "selector": "kind in ('a')"}
    bridge = {"source_name": topic, "source_type": "topic", "targets": [target]}
    return json.dumps({"bridges": [bridge], "model_version": "1.0"}, indent=2)


FILES = [
    pytest.param("bridges.conf", bridges_conf, id="bridges.conf"),
    pytest.param("bridges.script", script, id="script"),
    pytest.param("tibemsd.json", server_json, id="tibemsd.json"),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_a_bridge_of_ems(tmp_path: Path, activemq: ActiveMq, name: str, text: object) -> None:
    assert callable(text)
    run = uuid4().hex[:8]
    topic, queue = f"ORDERS.{run}", f"BILLING.{run}"
    mapping = imported("ems", tmp_path / name, text(topic, queue))
    reached = f"urls: [{activemq.url}]\n    factory: {FACTORY}"
    mapping.write_text(
        mapping.read_text()
        .replace('urls: ["tcp://localhost:7222"]', reached)
        .replace('classpath: ["${env:EMS_CLASSPATH}"]', f"classpath: {json.dumps(client_jars())}")
    )
    settings = activemq.settings()
    source, sink = open_source(settings, [Subscription(f"queue:{queue}")]), open_sink(settings)

    with running(mapping, ("ems", "source"), ("ems", "sink")), opened(source, sink):
        kinds = [Headers(properties={"kind": each}) for each in ("z", "a")]
        sent = [Message(topic, b"order", headers) for headers in kinds]
        assert send(sink, *sent) == [ACCEPTED] * 2
        (message,) = collect(source, 1)

    assert message.headers.properties is not None
    assert (message.payload, message.headers.properties["kind"]) == (b"order", "a")
