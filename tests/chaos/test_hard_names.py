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
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_marked, read_archive
from tests.chaos.rig import CONFIRMED, Load, Witness, end_after_all, running
from tests.chaos.test_kill import reconcile
from tests.chaos.test_other_systems import NATS, Broker, connected, started, write_config
from tests.strategies import PIECES

pytestmark = pytest.mark.broker
NAMES = 60


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


@pytest.mark.parametrize(
    ("messages", "with_night"),
    [
        pytest.param(2_000, False, id="short"),
        pytest.param(10_000, True, id="long", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize(("make", "separator"), [NATS])
def test_three_kills_lose_misname_and_disorder_nothing(
    tmp_path: Path,
    start_mosquitto: StartMosquitto,
    make: Callable[[Path], Broker],
    separator: str,
    messages: int,
    *,
    with_night: bool,
) -> None:
    source, target, names = start_mosquitto(), start_mosquitto(), hard_names()
    with started(make(tmp_path)) as broker:
        config = write_config(tmp_path, broker, separator, source.port, target.port)
        load, witness = NamedLoad(source.port, names, messages / 5), Witness(target.port)
        try:
            with running(config) as gateway:
                connected(gateway)
                load.start(messages)
                witness.wait_for(messages // 5)
            with running(config):
                witness.wait_for(2 * messages // 5)
                broker.kill()
                broker.start()
                witness.wait_for(3 * messages // 5)
            with running(config) as gateway:
                witness.wait_for(messages)
                sent = end_after_all(gateway, load, witness)
        finally:
            load.stop()
            witness.stop()

    assert sent > messages
    arrived = {
        number: address for address, numbers in witness.numbers.items() for number in numbers
    }
    assert arrived == {number: f"dst/{names[number % NAMES]}" for number in range(sent)}
    check_marked(read_archive(tmp_path), witness.duplicates)
    if with_night:
        check_night(tmp_path / "archive", sent)


def check_night(archive: Path, sent: int) -> None:
    """Check that a night finds each copy of both routes, and none that is not accounted for."""
    reconcile(archive)
    totals = [
        json.loads((reconciled_folder(archive, day) / "summary.json").read_text())["totals"]
        for day in days(archive)
    ]
    assert sum(each["received"] for each in totals) >= 2 * sent
    for name in ("missing", "altered", "unexpected", "refused", "dead-lettered", "in flight"):
        assert [each[name] for each in totals] == [0] * len(totals), (name, totals)
