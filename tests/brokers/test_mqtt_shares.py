"""Two gateways that share one subscription (MQTT 5.0, 4.8.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process, clients, started

pytestmark = pytest.mark.broker

CONFIG = """\
gateway: {{name: {name}}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, version: "{version}", client_id: {name}-s}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, version: "{version}", client_id: {name}-t}}
routes:
  relay:
    from: {{endpoint: source, pattern: "$share/team/src/{{unit}}/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{unit}}/{{rest...}}"}}
archive: {{path: {archive}}}
"""


@contextmanager
def member(
    folder: Path, name: str, source: Mosquitto, target: Mosquitto, version: str
) -> Iterator[Process]:
    """One of the gateways."""
    config = folder / f"{name}.yaml"
    text = CONFIG.format(
        name=name,
        source=source.port,
        target=target.port,
        version=version,
        archive=folder / "archive",
    )
    config.write_text(text)
    with started(config) as process:
        yield process


@pytest.mark.parametrize("version", ["5", pytest.param("3.1.1", marks=pytest.mark.nightly)])
def test_each_message_arrives_once_and_both_gateways_carry_some(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    ends = source, target, version
    with (
        member(tmp_path, "one", *ends) as one,
        member(tmp_path, "other", *ends) as other,
        clients(source, target) as (into, out),
    ):
        for number in range(500):
            into.publish(f"src/{number % 7}/a", b"%d" % number)
        out.wait_for(lambda arrived: len(arrived) >= 500)
        assert (one.end(), other.end()) == (0, 0)

    assert sorted(out.arrived) == sorted((f"dst/{n % 7}/a", b"%d" % n) for n in range(500))
    carried = Counter((row["gateway"], row["leg"]) for row in archived(tmp_path))
    assert sum(carried.values()) == 1_000
    assert {gateway for gateway, _ in carried} == {"one", "other"}


def test_messages_of_a_killed_member_arrive_when_it_is_back(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    ends = source, target, "5"
    wanted = {b"%d" % number for number in range(2_000)}
    with member(tmp_path, "one", *ends), clients(source, target) as (into, out):
        with member(tmp_path, "other", *ends):
            for number in range(1_000):
                into.publish("src/a/b", b"%d" % number)
            out.wait_for(lambda arrived: len(arrived) > 100)
        for number in range(1_000, 2_000):
            into.publish("src/a/b", b"%d" % number)
        with member(tmp_path, "other", *ends):
            out.wait_for(lambda arrived: {payload for _, payload in arrived} >= wanted)
