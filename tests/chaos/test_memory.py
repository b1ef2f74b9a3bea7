"""Memory of a gateway whose target is unreachable or slow under load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.chaos.archived import check_complete, read_archive, spooled
from tests.chaos.rig import MemorySampler, RelayConfig, load_and_witness, repetitions, running
from tests.waiting import until

pytestmark = pytest.mark.broker

MESSAGES = 10_000  # of SIZE: 160 MB, more than lane and source may hold
SIZE = 16_000
# 64 of the lane, 16 of the source, and the overhead of Python. A million messages of 100 bytes
# would take half a gigabyte; how much of the windows they use depends on the machine's load.
MAX_HELD_MB = 130.0
SMALL_SPOOL = ", bytes: 1000000"  # 60 messages
FREEZE_SECONDS = 6.0  # three times the keep-alive


@repetitions(None, 1_000_000)
def test_an_unreachable_target_fills_the_disk_and_not_the_memory(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port, size=100) as (load, witness),
        running(config) as gateway,
    ):
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(times // 10)
        until(lambda: spooled(tmp_path) >= times // 20)
        memory = MemorySampler(gateway.process.pid)
        load.publish(times)
        until(lambda: spooled(tmp_path) == times, seconds=300)
        target.start()
        sent = times + times // 5
        load.publish(sent)  # during the drain and after it
        witness.wait_for(sent, 600)
        memory.stop()
        witness.check_order(sent)
        assert gateway.end() == 0

    assert max(memory.samples) - memory.samples[0] < MAX_HELD_MB
    check_complete(read_archive(tmp_path), sent)


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("version", "stops", "spool"),
    [
        pytest.param("5", False, None, id="5-frozen-no-spool"),
        pytest.param("5", False, SMALL_SPOOL, id="5-frozen-small-spool"),
        pytest.param("5", True, None, id="5-unreachable-no-spool"),
        pytest.param("5", True, SMALL_SPOOL, id="5-unreachable-small-spool"),
        pytest.param("3.1.1", False, None, id="3-frozen-no-spool"),
        pytest.param("3.1.1", False, SMALL_SPOOL, id="3-frozen-small-spool"),
        pytest.param("3.1.1", True, None, id="3-unreachable-no-spool"),
        pytest.param("3.1.1", True, SMALL_SPOOL, id="3-unreachable-small-spool"),
    ],
)
def test_a_slow_target_slows_the_source_without_a_lost_connection(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str, stops: bool, spool: str | None
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    more = f', version: "{version}", keepalive: 2'
    config = RelayConfig(tmp_path, source.port, target.port, source_settings=more, spool=spool)
    with (
        load_and_witness(source.port, target.port, size=SIZE) as (load, witness),
        running(config.write()) as gateway,
    ):
        load.publish(100)
        witness.wait_for(100)
        memory = MemorySampler(gateway.process.pid)
        (target.stop if stops else target.freeze)()
        load.publish(MESSAGES)
        memory.wait(FREEZE_SECONDS)
        (target.start if stops else target.thaw)()
        witness.wait_for(MESSAGES, 120)
        memory.stop()
        witness.check_order(MESSAGES)
        assert gateway.end() == 0

    assert connects(source) == 1  # no broker closed the connection
    assert max(memory.samples) - memory.samples[0] < MAX_HELD_MB


def connects(broker: Mosquitto) -> int:
    """The number of connections of the gateway's source."""
    lines = (broker.folder / "log").read_text().splitlines()
    return sum("New client connected" in line and "test-source" in line for line in lines)
