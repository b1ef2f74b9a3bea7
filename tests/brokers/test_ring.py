"""Three gateways in a ring of real brokers."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.brokers.running import Client
from tests.waiting import until

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: g{number}}}
endpoints:
  source: {{kind: mqtt, version: {version}, host: 127.0.0.1, port: {source}, backoff_max: 1}}
  target: {{kind: mqtt, version: {version}, host: 127.0.0.1, port: {target}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "a/{{rest...}}"}}
    to: {{endpoint: target, template: "a/{{rest...}}"}}
archive: {{path: {archive}}}
"""


def start_ring(
    folder: Path, brokers: list[Mosquitto], stack: ExitStack, version: str
) -> list[Gateway]:
    """Start a gateway from each broker to the next."""
    gateways: list[Gateway] = []
    for number, source in enumerate(brokers):
        target = brokers[(number + 1) % len(brokers)]
        file = folder / f"g{number}.yaml"
        archive = folder / f"archive-{number}" / "archive"
        file.write_text(
            CONFIG.format(
                number=number,
                source=source.port,
                target=target.port,
                archive=archive,
                version=version,
            )
        )
        gateway = Gateway(load(file))
        gateway.start()
        stack.callback(gateway.stop, 10)
        gateways.append(gateway)
    for gateway in gateways:
        until(lambda g=gateway: all(lane.direct for lane in g.lanes.values()))  # type: ignore[misc]  # a default binds it now
        until(lambda g=gateway: all(s.connection.value == "connected" for s in g.states))  # type: ignore[misc]
    return gateways


def test_an_origin_path_ends_a_ring_after_one_round(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """The last gateway sees the first broker on the path, and sends nothing back to it."""
    count = 2_000
    brokers = [start_mosquitto(*OPEN, "max_queued_messages 0") for _ in range(3)]
    with ExitStack() as stack:
        gateways = start_ring(tmp_path, brokers, stack, "5")
        counters = [gateway.counters["relay"] for gateway in gateways]
        witnesses = [stack.enter_context(closing(Client(each.port, "a/#"))) for each in brokers]
        client = stack.enter_context(closing(Client(brokers[0].port)))
        for number in range(count):
            client.publish("a/b", b"%d" % number)
        until(lambda: counters[2].loops == count)
        client.publish("a/end", b"end")  # behind every message at each broker
        for witness in witnesses:
            witness.wait_for(lambda arrived: any(topic == "a/end" for topic, _ in arrived))
        until(lambda: counters[2].loops == count + 1)

    expected = [b"%d" % number for number in range(count)] + [b"end"]
    assert [[payload for _, payload in each.arrived] for each in witnesses] == [expected] * 3
    rows = [[row["leg"] for row in archived(tmp_path / f"archive-{n}")] for n in range(3)]
    assert [legs.count("received") for legs in rows] == [count + 1, count + 1, 0]
    assert [legs.count("delivered") for legs in rows] == [count + 1, count + 1, 0]
    assert [legs.count("cut") for legs in rows] == [0, 0, count + 1]
