"""A system clock that is set while a gateway runs, or between two runs."""

from __future__ import annotations

import signal
import struct
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import days, segments
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_complete, check_without_gap, read_archive
from tests.chaos.rig import RelayConfig, load_and_witness, running

pytestmark = pytest.mark.broker

HOUR = 3_600
SHIFTED = Path(__file__).parent / "shifted"


class Clock:
    """A shifted clock for processes with its `environment`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shift"
        self.set(0)
        self.environment = {"PYTHONPATH": str(SHIFTED), "SHIFT_CLOCK_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        """Set the shift from the true time."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(-1, marks=pytest.mark.chaos),
        pytest.param(-HOUR, marks=pytest.mark.chaos),
        -26 * HOUR,
        HOUR,
    ],
)
def test_a_clock_set_during_a_run_changes_no_delivery(
    tmp_path: Path, start_mosquitto: StartMosquitto, seconds: int
) -> None:
    clock = Clock(tmp_path)
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config, environment=clock.environment) as gateway,
    ):
        load.publish(500)
        witness.wait_for(500)
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(1_000)
        clock.set(seconds)
        load.publish(1_500)
        target.start()
        witness.wait_for(1_500)
        load.publish(2_000)
        witness.wait_for(2_000)
        witness.check_order(2_000)
        assert gateway.end() == 0

    check_complete(read_archive(tmp_path), 2_000)
    assert spread(tmp_path / "archive") > 0.9 * abs(seconds)  # the rows show that the clock was set


def test_a_clock_set_back_between_two_runs_keeps_the_order(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    clock = Clock(tmp_path)
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with load_and_witness(source.port, target.port) as (load, witness):
        with running(config, environment=clock.environment) as gateway:
            load.publish(500)
            witness.wait_for(500)
            target.stop()
            gateway.wait_for("target", level="warning")
            load.publish(1_000)
            gateway.end(signal.SIGKILL)
        clock.set(-HOUR)
        with running(config, target=False, environment=clock.environment) as gateway:
            load.publish(1_500)
            target.start()
            witness.wait_for(1_500)
            assert gateway.end() == 0
        witness.check_order(1_500)

    check_without_gap(read_archive(tmp_path), 1_500)


def spread(archive: Path) -> float:
    """Seconds between the earliest and the latest row."""
    bounds = [
        pc.min_max(pq.read_table(segment, columns=["time"], partitioning=None)["time"]).as_py()
        for day in days(archive)
        for segment in segments(archive, day)
    ]
    first, last = min(each["min"] for each in bounds), max(each["max"] for each in bounds)
    return float((last - first).total_seconds())
