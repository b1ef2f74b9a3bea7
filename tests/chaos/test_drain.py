"""A target that stops again and again while its spool drains."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_complete, read_archive, spooled
from tests.chaos.rig import RelayConfig, load_and_witness, repetitions, running
from tests.waiting import until

pytestmark = pytest.mark.broker

SPOOLED_MESSAGES = 10_000  # for each stop of the target


@repetitions(None, 10)
def test_stops_of_a_target_while_its_spool_drains_keep_the_order(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config) as gateway,
    ):
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(SPOOLED_MESSAGES * (times + 1))
        until(lambda: spooled(tmp_path) == load.sent)
        for _ in range(times):
            before = witness.unique
            target.start()
            witness.wait_for(before + 1_000)
            target.stop()
        assert spooled(tmp_path)  # the drain was never complete
        target.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.check_order(sent)
        assert gateway.end() == 0

    check_complete(read_archive(tmp_path), sent)
