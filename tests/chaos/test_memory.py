"""A target that is away or slow while many messages come: the memory stays where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.chaos.books import are_whole, read_books, spooled
from tests.chaos.rig import Memory, Setting, load_and_witness, profiles, running
from tests.waiting import until

pytestmark = pytest.mark.broker

GROWTH = 40.0  # MB, between the first tenth of the messages and all of them
SLOWED = 15_000  # messages of SIZE: 240 MB, more than lane and source may hold
SIZE = 16_000
HELD = 130.0  # MB: 64 of the lane, 16 of the source, and what Python adds
SMALL = ", bytes: 1000000"  # 60 messages
FROZEN = 6.0  # seconds: three times the keep-alive


@profiles(50_000, 1_000_000)
def test_a_target_that_is_away_fills_the_disk_and_not_the_memory(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = Setting(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port, size=100) as (load, witness),
        running(config) as gateway,
    ):
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(times // 10)
        until(lambda: spooled(tmp_path) >= times // 20)
        memory = Memory(gateway.process.pid)
        load.publish(times)
        until(lambda: spooled(tmp_path) == times, seconds=300)
        target.start()
        sent = times + times // 5
        load.publish(sent)  # while it drains, and behind it
        witness.wait_for(sent, 600)
        memory.stop()
        witness.has_all_in_order(sent)
        assert gateway.end() == 0

    assert max(memory.samples) - memory.samples[0] < GROWTH
    are_whole(read_books(tmp_path), sent)


@pytest.mark.parametrize(
    ("version", "goes", "spool"),
    [
        pytest.param("5", False, None, id="5-frozen-no-spool"),
        pytest.param("5", False, SMALL, id="5-frozen-small-spool", marks=pytest.mark.chaos),
        pytest.param("5", True, None, id="5-away-no-spool", marks=pytest.mark.chaos),
        pytest.param("5", True, SMALL, id="5-away-small-spool", marks=pytest.mark.chaos),
        pytest.param("3.1.1", False, None, id="3-frozen-no-spool", marks=pytest.mark.chaos),
        pytest.param("3.1.1", False, SMALL, id="3-frozen-small-spool", marks=pytest.mark.chaos),
        pytest.param("3.1.1", True, None, id="3-away-no-spool", marks=pytest.mark.chaos),
        pytest.param("3.1.1", True, SMALL, id="3-away-small-spool"),
    ],
)
def test_a_slow_target_slows_the_source_which_keeps_its_connection(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str, goes: bool, spool: str | None
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    more = f', version: "{version}", keepalive: 2'
    setting = Setting(tmp_path, source.port, target.port, from_more=more, spool=spool)
    with (
        load_and_witness(source.port, target.port, size=SIZE) as (load, witness),
        running(setting.write()) as gateway,
    ):
        load.publish(100)
        witness.wait_for(100)
        memory = Memory(gateway.process.pid)
        (target.stop if goes else target.freeze)()
        load.publish(SLOWED)
        memory.wait(FROZEN)
        (target.start if goes else target.thaw)()
        witness.wait_for(SLOWED, 120)
        memory.stop()
        witness.has_all_in_order(SLOWED)
        assert gateway.end() == 0

    assert connects(source) == 1  # and no broker gave up on it
    assert max(memory.samples) - memory.samples[0] < HELD


def connects(broker: Mosquitto) -> int:
    """How often the gateway's source connected."""
    lines = (broker.folder / "log").read_text().splitlines()
    return sum("New client connected" in line and "gateway-source" in line for line in lines)
