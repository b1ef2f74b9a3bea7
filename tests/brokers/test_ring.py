"""Three gateways in a ring of real brokers, with and without origin paths."""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.runtime.delivery import loop_limit
from gateway.runtime.delivery.loop_limit import MAX_ROUNDS, PROOF, WEIGHT
from gateway.runtime.gateway import Gateway
from tests.archived import archived
from tests.brokers.mosquitto import OPEN, Mosquitto, StartMosquitto
from tests.brokers.running import Client
from tests.waiting import until

pytestmark = pytest.mark.broker

ROUNDS = 16  # scaled down
RETURNS = PROOF // WEIGHT  # of a marked copy, until it is cut
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


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("count", "rounds"),
    [
        pytest.param(5, MAX_ROUNDS, id="few"),
        pytest.param(600, ROUNDS, id="rounds-longer-than-any-window"),
    ],
)
def test_a_ring_that_no_origin_path_shows_comes_to_rest(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    count: int,
    rounds: int,
) -> None:
    monkeypatch.setattr(loop_limit, "MAX_ROUNDS", rounds)
    caplog.set_level(logging.WARNING, "gateway")
    brokers = [start_mosquitto(*OPEN, "max_queued_messages 0") for _ in range(3)]
    with ExitStack() as stack:
        gateways = start_ring(tmp_path, brokers, stack, "3.1.1")
        counters = [gateway.counters["relay"] for gateway in gateways]
        client = stack.enter_context(closing(Client(brokers[0].port)))
        for number in range(count):
            client.publish("a/b", b"%d" % number)
        until(lambda: sum(each.loops for each in counters) == count)
        until(lambda: all(each.received == each.delivered for each in counters))

    rows = [row for number in range(3) for row in archived(tmp_path / f"archive-{number}")]
    cut = [row for row in rows if row["leg"] == "cut"]
    assert [row["rule"] for row in cut] == ["loop-limit"] * count
    assert len({row["hash"] for row in cut}) == count
    gaps = [row for row in rows if row["leg"] == "gap" and row["rule"] == "loop-limit"]
    assert sum(row["size"] for row in gaps) == count  # so that no night with them is clean
    received = sum(row["leg"] == "received" for row in rows)
    assert count * 3 * rounds <= received <= count * 3 * (rounds + RETURNS + 1)
    assert "came back" in caplog.text


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
