"""Repeated reloads under traffic, each with other settings: no loss, order kept."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_complete, read_archive
from tests.chaos.rig import RelayConfig, load_and_witness, repetitions, running

pytestmark = pytest.mark.broker

ROUTE = """\
  extra-{number}:
    from: {{endpoint: source, pattern: "extra/{number}/{{rest...}}"}}
    to: {{endpoint: target, template: "extra/{number}/{{rest...}}"}}
"""


@repetitions(3, 20)
def test_reloads_keep_the_order_of_each_subject(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    tick = threading.Event()
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port, 2_000) as (load, witness),
        running(config) as gateway,
    ):
        load.start()
        for number in range(times):
            unreachable = chance.random() < 0.5
            if unreachable:
                target.stop()
            tick.wait(chance.uniform(0.1, 0.4))
            RelayConfig(
                tmp_path,
                source.port,
                target.port,
                source_settings=f", receive_window: {chance.choice([100, 5_000])}",
                target_settings=f", send_window: {chance.choice([50, 5_000])}",
                route="".join(ROUTE.format(number=each) for each in range(number + 1)),
            ).write()
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reloaded", routes=number + 2)
            if unreachable:
                target.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.check_order(sent)
        assert gateway.end() == 0

    check_complete(read_archive(tmp_path), sent)
