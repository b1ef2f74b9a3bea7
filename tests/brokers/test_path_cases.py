"""Three set-ups of users where a message was lost or went round, with real brokers and clients."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.cli import main
from gateway.config.load import load
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Client
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

MOST_NAMED = 6  # two gateways are the first ones between each two brokers of the mesh
MOST_COPIES = 22  # of one message at one broker of a mesh of three, without names of brokers
DERIVED = """\
gateway: {{name: edge}}
archive: {{path: {folder}/archive}}
endpoints:
  edge: {{kind: mqtt, host: 127.0.0.1, port: {edge}}}
  hub: {{kind: mqtt, host: 127.0.0.1, port: {hub}}}
routes:
  all:
    from: {{endpoint: edge, pattern: "{{rest...}}"}}
    to: {{endpoint: hub, template: "{{rest...}}"}}
    direction: both
"""
REDRIVE = """\
gateway: {{name: redrive}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
endpoints:
  work: {{kind: rabbitmq, url: "{url}", unique_message_ids: {unique}}}
routes:
  redrive:
    from: {{endpoint: work, pattern: "queue:work.dlq"}}
    to: {{endpoint: work, template: "queue:work"}}
"""


@contextmanager
def running(file: Path) -> Iterator[Gateway]:
    gateway = Gateway(load(file))
    gateway.start()
    try:
        until(lambda: all(each.connection.value == "connected" for each in gateway.states))
        until(lambda: all(lane.direct for lane in gateway.lanes.values()))
        yield gateway
    finally:
        gateway.stop(10)


def imported(folder: Path, ports: list[int], own: int, *, named: bool) -> Path:
    """Import the bridge of a broker to each of the others; with `named` each has its name."""
    folder.mkdir()
    lines = [f"listener {ports[own]}"]
    for number, port in enumerate(ports):
        if number != own:
            lines += [f"connection to{number}", f"address 127.0.0.1:{port}", "topic # both 0"]
    (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
    file = folder / "gateway.yaml"
    main(["import", "mosquitto", str(folder / "mosquitto.conf"), "-o", str(file)])
    text = re.sub("name: to.-bridge", f"name: site-{own}", file.read_text())
    if named:
        text = re.sub("(?m)^    port: ([0-9]+)$", r"\g<0>\n    broker_id: b\1", text)
    file.write_text(text)
    return file


@pytest.mark.parametrize("named", [True, False], ids=["broker-ids", "addresses"])
def test_an_imported_mesh_of_three_ends(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    record_property: Callable[[str, object], None],
    *,
    named: bool,
) -> None:
    """Each gateway names its own broker `localhost`, and the others by their addresses."""
    brokers = [start_mosquitto() for _ in range(3)]
    ports = [each.port for each in brokers]
    with ExitStack() as stack:
        gateways = [
            stack.enter_context(running(imported(tmp_path / str(n), ports, n, named=named)))
            for n in range(3)
        ]
        witnesses = [stack.enter_context(closing(Client(each, "x/#"))) for each in ports]
        stack.enter_context(closing(Client(ports[0]))).publish("x/y", b"m1")
        received = Quiet(gateways)
        until(lambda: all(each.arrived for each in witnesses))
        until(received.is_quiet, every=1.0)
        copies = [len(each.arrived) for each in witnesses]

    record_property("figures", f"copies at a mesh of three, names {named}: {copies}")
    assert max(copies) <= (MOST_NAMED if named else MOST_COPIES), copies
    assert copies[0] == 1 or not named  # where it was published
    dead = [
        row["rule"] for n in range(3) for row in archived(tmp_path / str(n)) if row["leg"] == "dead"
    ]
    assert {*dead} <= {"hops"}


class Quiet:
    """Whether gateways receive anything. Mutable: it compares with the last look."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self._gateways = gateways
        self._before = -1

    def is_quiet(self) -> bool:
        counters = [each for gateway in self._gateways for each in gateway.counters.values()]
        received = sum(each.received + each.loops + each.duplicates for each in counters)
        before, self._before = self._before, received
        return before == received


@contextmanager
def flow(port: int) -> Iterator[None]:
    """Run a flow that converts, and publishes with the user properties that it received."""
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)

    def convert(_client: Any, _data: object, message: paho.MQTTMessage) -> None:  # noqa: ANN401
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # of paho
        properties.UserProperty = message.properties.UserProperty  # type: ignore[union-attr]
        client.publish(f"derived/{message.topic.rpartition('/')[2]}", b"69.8", 1, False, properties)

    subscribed: list[object] = []
    client.on_message = convert
    client.on_subscribe = lambda *_: subscribed.append(True)
    client.connect("127.0.0.1", port)
    client.loop_start()
    client.subscribe("sensors/#", 1)
    try:
        until(lambda: bool(subscribed))
        yield
    finally:
        client.disconnect()
        client.loop_stop()


def test_a_result_with_copied_user_properties_crosses(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    edge, hub = start_mosquitto(), start_mosquitto()
    file = tmp_path / "gateway.yaml"
    file.write_text(DERIVED.format(folder=tmp_path, edge=edge.port, hub=hub.port))
    with running(file) as gateway, flow(hub.port), ExitStack() as stack:
        at_edge, at_hub = (
            stack.enter_context(closing(Client(each.port, "#"))) for each in (edge, hub)
        )
        stack.enter_context(closing(Client(edge.port))).publish("sensors/t1", b"21")
        until(lambda: all(each.loops == 1 for each in gateway.counters.values()))
        for each in (at_edge, at_hub):
            each.wait_for(lambda arrived: len(arrived) == 2)

    expected = {("sensors/t1", b"21"), ("derived/t1", b"69.8")}
    assert {*at_edge.arrived} == {*at_hub.arrived} == expected


@pytest.mark.parametrize("unique", ["false", "true"], ids=["no-ids", "unique-ids"])
@pytest.mark.nightly
def test_a_redriven_dead_letter_queue_ends_among_the_dead_letters(
    tmp_path: Path, rabbitmq: Vhost, unique: str
) -> None:
    """The consumer rejects what it gets, so that RabbitMQ sets it aside, and the route moves it."""
    import pika  # noqa: PLC0415  # the fixture skips without it

    aside = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work.dlq"}
    rabbitmq.api("PUT", "queues", "/work.dlq", {"durable": True})
    rabbitmq.api("PUT", "queues", "/work", {"durable": True, "arguments": aside})
    file = tmp_path / "gateway.yaml"
    file.write_text(REDRIVE.format(folder=tmp_path, url=rabbitmq.url, unique=unique))
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq.url))
    channel, rejected, deadline = connection.channel(), 0, time.monotonic() + PATIENCE
    with running(file) as gateway, closing(connection):
        properties = pika.BasicProperties(delivery_mode=2, message_id="invoice-1")
        channel.basic_publish("", "work", b"invoice 1", properties)
        while not (dead := gateway.counters["redrive"].dead):
            assert time.monotonic() < deadline
            method, _, body = channel.basic_get("work")
            if method is not None:
                assert body == b"invoice 1"
                channel.basic_reject(method.delivery_tag, requeue=False)
                rejected += 1

    assert (dead, rejected) == (1, 9)  # at first, and after 8 hops
    rows = [row for row in archived(tmp_path) if row["leg"] == "dead"]
    assert [(row["rule"], row["source_name"]) for row in rows] == [("hops", "queue:work.dlq")]
    assert Counter(row["leg"] for row in archived(tmp_path))["cut"] == 0
