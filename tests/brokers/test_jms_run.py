"""`gateway run` from MQTT over JMS to MQTT: a killed broker, and the end of the process."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.cli import main
from gateway.runtime.delivery.rows import fingerprint
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.archived import archived
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.running import Client, Process

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {mqtt}, backoff_min: 0.05, backoff_max: 0.2}}
  core:
    kind: jms
    dialect: ems
    classpath: [{jars}]
    factory: {factory}
    urls: ["{jms}"]
    client_id: {root}
    durable: "test-{{pattern}}"
    close_timeout: 0.5
    backoff_min: 0.05
    backoff_max: 0.2
routes:
  there:
    from: {{endpoint: plant, pattern: "src/{{rest...}}"}}
    to: {{endpoint: core, template: "{root}.{{rest...}}"}}
  back:
    from: {{endpoint: core, pattern: "{root}.{{rest...}}"}}
    to: {{endpoint: plant, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""
SIDES = [("plant", "source"), ("plant", "sink"), ("core", "source"), ("core", "sink")]


@contextmanager
def running(folder: Path, mosquitto: Mosquitto, broker: ActiveMq) -> Iterator[Process]:
    config = folder / "gateway.yaml"
    config.write_text(
        CONFIG.format(
            mqtt=mosquitto.port,
            jms=broker.url,
            jars=", ".join(client_jars()),
            factory=FACTORY,
            root=f"R{uuid4().hex[:8]}",
            archive=folder / "archive",
        )
    )
    gateway = Process(config)
    try:
        for endpoint, side in SIDES:
            gateway.wait_for("connected", endpoint=endpoint, side=side)
        yield gateway
    finally:
        gateway.end(signal.SIGKILL)


@contextmanager
def clients(mosquitto: Mosquitto) -> Iterator[tuple[Client, Client]]:
    into, out = Client(mosquitto.port), Client(mosquitto.port, "dst/#")
    try:
        yield into, out
    finally:
        into.close()
        out.close()


@pytest.mark.nightly
def test_a_killed_jms_broker_loses_no_message(
    tmp_path: Path, mosquitto: Mosquitto, activemq: ActiveMq
) -> None:
    """Killed twice under traffic; the archive marks repeated messages, and is proven."""
    with running(tmp_path, mosquitto, activemq) as gateway, clients(mosquitto) as (into, out):
        for life in range(2):
            first = life * 2_000
            for number in range(first, first + 1_000):
                into.publish(f"src/{number % 7}", b"%d" % number)
            out.wait_for(lambda arrived, floor=first: len(arrived) > floor + 100)  # type: ignore[misc]  # a default binds it now
            activemq.kill()
            for number in range(first + 1_000, first + 2_000):
                into.publish(f"src/{number % 7}", b"%d" % number)
            activemq.start()
        wanted = {b"%d" % number for number in range(4_000)}
        out.wait_for(lambda arrived: {payload for _, payload in arrived} >= wanted)
        assert gateway.end() == 0

    assert "stopped" in [line["message"] for line in gateway.lines]
    assert in_order(out.arrived)
    rows = archived(tmp_path)
    for route in ("there", "back"):
        ids = {
            leg: {row["id"] for row in rows if (row["route"], row["leg"]) == (route, leg)}
            for leg in ("received", "delivered")
        }
        assert ids["received"] == ids["delivered"]
        assert len(ids["received"]) >= len(wanted)
    copies = Counter(payload for _, payload in out.arrived)
    assert {payload for payload, times in copies.items() if times > 1} <= suspects(rows, wanted)
    assert main(["archive", "verify", str(tmp_path / "archive")]) == 0


def in_order(arrived: list[tuple[str, bytes]]) -> bool:
    """Return whether the first copies under each name arrived in order of publication."""
    names: dict[str, dict[int, None]] = {}
    for name, payload in arrived:
        names.setdefault(name, {}).setdefault(int(payload))
    return all(list(numbers) == sorted(numbers) for numbers in names.values())


def suspects(rows: list[dict[str, object]], payloads: set[bytes]) -> set[bytes]:
    """Return the messages that the archive marks as redelivered, or as sent again after a break."""
    known = {fingerprint(payload)[1]: payload for payload in payloads}
    hashes = [row["hash"] for row in rows if row["redelivered"] or row["attempt"] != 1]
    return {known[each] for each in hashes if isinstance(each, bytes)}


@pytest.mark.parametrize(
    ("number", "away"),
    [
        pytest.param(signal.SIGTERM, False, id="terminated"),
        pytest.param(signal.SIGINT, True, id="interrupted-broker-away", marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, True, id="terminated-broker-away", marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, False, id="interrupted", marks=pytest.mark.nightly),
    ],
)
def test_a_signal_ends_the_process_and_its_jvm(
    tmp_path: Path, mosquitto: Mosquitto, activemq: ActiveMq, number: signal.Signals, away: bool
) -> None:
    with running(tmp_path, mosquitto, activemq) as gateway, clients(mosquitto) as (into, out):
        for each in range(100):
            into.publish("src/a", b"%d" % each)
        out.wait_for(lambda arrived: len(arrived) >= 100)
        if away:
            activemq.kill()
            gateway.wait_for("core", level="warning")

        assert gateway.end(number) == 0

    assert gateway.lines[-1]["message"] == "stopped"
    assert gateway.lines[-1]["settled"] is True
