"""Hard names from MQTT over another system and back, through kills: none is lost or misnamed.

The other system is a broker of `tests/chaos/test_other_systems.py`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.archive.layout import days, reconciled_folder
from gateway.model.message import Message
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_marked, read_archive
from tests.chaos.rig import CONFIRMED, FAST_BACKOFF, Load, Witness, end_after_all, running
from tests.chaos.test_kill import reconcile
from tests.chaos.test_other_systems import (
    Broker,
    amqp,
    connected,
    nats,
    rabbitmq,
    started,
    write_config,
)
from tests.strategies import PIECES

pytestmark = pytest.mark.broker
NAMES, MESSAGES = 60, 10_000
OVER_TWO = """\
gateway: {{name: test}}
endpoints:
  source: {{kind: mqtt, host: 127.0.0.1, port: {source}, {backoff}}}
  middle: {{{work}, {backoff}}}
  ems: {{{ems}, client_id: {mark}, durable: '{mark}-{{pattern}}', answer_timeout: 5, {backoff}}}
  target: {{kind: mqtt, host: 127.0.0.1, port: {target}, {backoff}}}
routes:
  there:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: middle, template: "mid.{{rest...}}"}}
  over:
    from: {{endpoint: middle, pattern: "mid.{{rest...}}"}}
    to: {{endpoint: ems, template: "{mark}.{{rest...}}"}}
  back:
    from: {{endpoint: ems, pattern: "{mark}.{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {folder}/archive}}
spool: {{path: {folder}/spool}}
"""


def hard_names() -> list[str]:
    """Return names of MQTT below one level, the same in every run."""
    chance = random.Random(41)  # noqa: S311  # not for security
    pieces = [each for each in PIECES if not set(each) & set("+#\0/")]
    found: dict[str, None] = {}
    while len(found) < NAMES:
        levels = [
            "".join(chance.choices(pieces, k=chance.randrange(4)))
            for _ in range(chance.randrange(1, 5))
        ]
        found["/".join(levels)] = None
    return list(found)


class NamedLoad(Load):
    """Publishes number n to the name n of `names`, again and again. Mutable as its base is."""

    def __init__(self, port: int, names: list[str], rate: float) -> None:
        super().__init__(port, rate)
        self._names = names

    def _message(self, number: int) -> Message:
        name = self._names[number % len(self._names)]
        return Message(f"src/{name}", b"%d " % number, CONFIRMED)


@pytest.mark.chaos
def test_three_kills_lose_misname_and_disorder_nothing(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with started(nats(tmp_path)) as broker:
        config = write_config(tmp_path, broker, ".", source.port, target.port)
        sent = carry_through_kills(config, broker, hard_names(), source.port, target.port)
    check_night(tmp_path / "archive", 2 * sent)


@pytest.mark.nightly
@pytest.mark.parametrize("make", [rabbitmq, amqp])
def test_names_cross_rabbitmq_and_ems_through_three_kills(
    make: Callable[[Path], Broker],
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    activemq: ActiveMq,
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    names = [name.replace(",", ";") for name in hard_names()]  # ActiveMQ divides a name there
    jars = ", ".join(client_jars())
    ems = f"kind: jms, classpath: [{jars}], factory: {FACTORY}, urls: ['{activemq.url}']"
    with started(make(tmp_path)) as broker:
        config = tmp_path / "gateway.yaml"
        config.write_text(
            OVER_TWO.format(
                source=source.port, work=broker.settings, ems=ems, target=target.port,
                mark="hard", folder=tmp_path, backoff=FAST_BACKOFF,
            )
        )  # fmt: skip
        sent = carry_through_kills(config, broker, names, source.port, target.port)
    check_night(tmp_path / "archive", 3 * sent)


def carry_through_kills(
    config: Path, broker: Broker, names: list[str], source: int, target: int
) -> int:
    """Kill the gateway twice and the broker once; return how many messages arrived, each right."""
    load, witness = NamedLoad(source, names, MESSAGES / 5), Witness(target)
    try:
        with running(config) as gateway:
            connected(gateway)
            load.start(MESSAGES)
            witness.wait_for(MESSAGES // 5)
        with running(config):
            witness.wait_for(2 * MESSAGES // 5)
            broker.kill()
            broker.start()
            witness.wait_for(3 * MESSAGES // 5)
        with running(config) as gateway:
            witness.wait_for(MESSAGES)
            sent = end_after_all(gateway, load, witness)
    finally:
        load.stop()
        witness.stop()

    assert sent > MESSAGES
    arrived = {
        number: address for address, numbers in witness.numbers.items() for number in numbers
    }
    assert arrived == {number: f"dst/{names[number % NAMES]}" for number in range(sent)}
    check_marked(read_archive(config.parent), witness.duplicates)
    return sent


def check_night(archive: Path, copies: int) -> None:
    """Check that a night finds each copy of all routes, and none that is not accounted for."""
    reconcile(archive)
    totals = [
        json.loads((reconciled_folder(archive, day) / "summary.json").read_text())["totals"]
        for day in days(archive)
    ]
    assert sum(each["received"] for each in totals) >= copies
    for name in ("missing", "altered", "unexpected", "refused", "dead-lettered", "in flight"):
        assert [each[name] for each in totals] == [0] * len(totals), (name, totals)
