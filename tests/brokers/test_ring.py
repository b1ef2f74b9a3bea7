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

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

CONFIG = """\
gateway: {{name: g{number}}}
endpoints:
  source: {{kind: mqtt, version: 5, host: 127.0.0.1, port: {source}, backoff_max: 1{source_id}}}
  target: {{kind: mqtt, version: 5, host: 127.0.0.1, port: {target}{target_id}}}
routes:
  relay:
    from: {{endpoint: source, pattern: "a/{{rest...}}"}}
    to: {{endpoint: target, template: "a/{{rest...}}"}}
archive: {{path: {archive}}}
"""


def start_ring(
    folder: Path, brokers: list[Mosquitto], stack: ExitStack, *, named: bool
) -> list[Gateway]:
    """Start a gateway from each broker to the next; with `named` each broker has a `broker_id`."""
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
                source_id=f", broker_id: b{source.port}" if named else "",
                target_id=f", broker_id: b{target.port}" if named else "",
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


@pytest.mark.parametrize(
    ("named", "cutter", "rounds"),
    [
        pytest.param(True, 2, (1, 1, 1), id="broker-ids"),
        pytest.param(False, 0, (2, 1, 1), id="addresses"),
    ],
)
def test_an_origin_path_ends_a_ring(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    cutter: int,
    rounds: tuple[int, ...],
    *,
    named: bool,
) -> None:
    """The last gateway sees the first broker on the path; without names the first sees itself."""
    count = 2_000
    brokers = [start_mosquitto(*OPEN, "max_queued_messages 0") for _ in range(3)]
    with ExitStack() as stack:
        gateways = start_ring(tmp_path, brokers, stack, named=named)
        cuts = gateways[cutter].counters["relay"]
        witnesses = [stack.enter_context(closing(Client(each.port, "a/#"))) for each in brokers]
        client = stack.enter_context(closing(Client(brokers[0].port)))
        for number in range(count):
            client.publish("a/b", b"%d" % number)
        until(lambda: cuts.loops == count)
        client.publish("a/end", b"end")  # behind every message at each broker
        until(lambda: cuts.loops == count + 1)
        for witness, times in zip(witnesses, rounds, strict=True):
            witness.wait_for(
                lambda arrived, n=times: sum(topic == "a/end" for topic, _ in arrived) == n  # type: ignore[misc]  # a default binds it now
            )

    expected = sorted([b"%d" % number for number in range(count)] + [b"end"])
    arrived = [sorted(payload for _, payload in each.arrived) for each in witnesses]
    assert arrived == [sorted(expected * times) for times in rounds]
    rows = [[row["leg"] for row in archived(tmp_path / f"archive-{n}")] for n in range(3)]
    passed = [0 if named and n == cutter else count + 1 for n in range(3)]
    assert [legs.count("received") for legs in rows] == passed
    assert [legs.count("delivered") for legs in rows] == passed
    assert [legs.count("cut") for legs in rows] == [(n == cutter) * (count + 1) for n in range(3)]
