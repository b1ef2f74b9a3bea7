"""Three gateways in a ring of real brokers whose protocol carries no origin path."""

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
  source: {{kind: mqtt, version: 3.1.1, host: 127.0.0.1, port: {source}, backoff_max: 1}}
  target: {{kind: mqtt, version: 3.1.1, host: 127.0.0.1, port: {target}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "a/{{rest...}}"}}
    to: {{endpoint: target, template: "a/{{rest...}}"}}
archive: {{path: {archive}}}
"""


def start_ring(folder: Path, brokers: list[Mosquitto], stack: ExitStack) -> list[Gateway]:
    """Start a gateway from each broker to the next."""
    gateways: list[Gateway] = []
    for number, source in enumerate(brokers):
        target = brokers[(number + 1) % len(brokers)]
        file = folder / f"g{number}.yaml"
        archive = folder / f"archive-{number}" / "archive"
        file.write_text(
            CONFIG.format(number=number, source=source.port, target=target.port, archive=archive)
        )
        gateway = Gateway(load(file))
        gateway.start()
        stack.callback(gateway.stop, 10)
        gateways.append(gateway)
    for gateway in gateways:
        until(lambda g=gateway: all(lane.direct for lane in g.lanes.values()))  # type: ignore[misc]  # a default binds it now
        until(lambda g=gateway: all(s.connection.value == "connected" for s in g.states))  # type: ignore[misc]
    return gateways


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
        gateways = start_ring(tmp_path, brokers, stack)
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
