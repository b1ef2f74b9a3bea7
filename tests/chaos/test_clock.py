"""A system clock that is set while a gateway runs, or between two runs."""

from __future__ import annotations

import os
import signal
import struct
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import pytest

from gateway.clock import today
from gateway.night.archive.open_archive import open_archive
from gateway.night.reconcile.job import Job, reconcile
from tests.archived import archived
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
        path = os.pathsep.join([str(SHIFTED), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {"PYTHONPATH": path, "SHIFT_CLOCK_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        """Set the shift from the true time."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("<q", seconds))


@pytest.mark.chaos
@pytest.mark.parametrize("seconds", [-1, -HOUR, -26 * HOUR, HOUR])
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
    check_times(tmp_path)


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
    check_times(tmp_path)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_a_night_finds_nothing_out_of_order_after_steps_of_the_clock(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """The clock is corrected by 2 s during the traffic, and by an hour before the next run."""
    clock, day = Clock(tmp_path), today()
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port, archive=", segment_seconds: 1").write()
    sent = 0
    with load_and_witness(source.port, target.port) as (load, witness):
        for run in range(2):
            with running(config, environment=clock.environment) as gateway:
                for step in range(5):
                    sent += 500
                    load.publish(sent)
                    witness.wait_for(sent)
                    clock.set(-HOUR * run - 2 * step)
                assert gateway.end() == 0

    check_times(tmp_path)
    report = reconcile(open_archive(tmp_path / "archive"), day, Job(), lambda *_: None)
    assert report.total("received") == report.total("delivered") == sent
    assert not report.total("out of order")


def check_times(folder: Path) -> None:
    """Check that no delivery of a name was recorded before that of an earlier message."""
    times: defaultdict[str, list[tuple[bytes, datetime]]] = defaultdict(list)
    for row in archived(folder):
        if row["leg"] != "gap":  # it has no message
            assert row["received"] <= row["time"]
        if row["leg"] == "delivered":
            times[row["name"]].append((row["id"], row["time"]))
    for name, found in times.items():
        at = [time for _, time in sorted(found)]
        assert at == sorted(at), name
