"""SIGHUP again and again under traffic, with other settings each time: order stays, all arrives."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.books import are_whole, read_books
from tests.chaos.rig import Setting, load_and_witness, profiles, running

pytestmark = pytest.mark.broker

ROUTE = """\
  extra-{number}:
    from: {{endpoint: source, pattern: "extra/{number}/{{rest...}}"}}
    to: {{endpoint: target, template: "extra/{number}/{{rest...}}"}}
"""


@profiles(3, 20)
def test_a_reload_keeps_the_order_of_each_subject_over_spool_and_connections(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    tick = threading.Event()
    source, target = start_mosquitto(), start_mosquitto()
    config = Setting(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port, 2_000) as (load, witness),
        running(config) as gateway,
    ):
        load.start()
        for number in range(times):
            away = chance.random() < 0.5
            if away:
                target.stop()
            tick.wait(chance.uniform(0.1, 0.4))
            Setting(
                tmp_path,
                source.port,
                target.port,
                from_more=f", receive_maximum: {chance.choice([100, 5_000])}",
                to_more=f", inflight: {chance.choice([50, 5_000])}",
                route="".join(ROUTE.format(number=each) for each in range(number + 1)),
            ).write()
            gateway.process.send_signal(signal.SIGHUP)
            gateway.wait_for("reloaded", routes=number + 2)
            if away:
                target.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.has_all_in_order(sent)
        assert gateway.end() == 0

    are_whole(read_books(tmp_path), sent)
