"""`kill -9` of a gateway under traffic: no message is lost, and duplicates are marked."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import check_marked, check_without_gap, read_archive, spooled
from tests.chaos.rig import RelayConfig, end_after_all, load_and_witness, repetitions, running
from tests.waiting import until

pytestmark = pytest.mark.broker

FEW_KILLS = 4  # kills
RATE = 1_000  # messages a second, over all runs
SPOOLED_MESSAGES = 10_000  # for each kill
MAX_RUN = 0.8  # seconds of a connected run
MAX_EARLY_RUN = 1.2  # seconds, about the time to connect


@repetitions(FEW_KILLS, 100)
@pytest.mark.parametrize(
    "spool", ["", pytest.param(None, marks=pytest.mark.chaos)], ids=["spool", "no-spool"]
)
def test_a_gateway_killed_at_any_moment_loses_no_message_and_marks_duplicates(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, spool: str | None
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port, spool=spool).write()
    tick = threading.Event()
    with load_and_witness(source.port, target.port, RATE) as (load, witness):
        with running(config):  # the broker keeps the session from now on
            load.start()
        for _ in range(times):
            early = chance.random() < 0.2  # killed perhaps before it has connected
            unreachable = chance.random() < 0.3  # so that the gateway spools
            if unreachable:
                target.stop()
            with running(config, source=not early, target=not (early or unreachable)):
                tick.wait(chance.uniform(0, MAX_EARLY_RUN if early else MAX_RUN))
            if unreachable:
                target.start()
        with running(config) as gateway:
            sent = end_after_all(gateway, load, witness)

    archived = read_archive(tmp_path)
    check_without_gap(archived, sent)
    check_marked(archived, witness.duplicates)
    if times > FEW_KILLS:  # Spark is slow
        reconcile(tmp_path / "archive")


@pytest.mark.chaos
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_the_night_of_kills_beside_a_tap_is_clean(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    """The tap saw what a killed gateway sent and could not record.

    Each gateway dies while it delivers what waited for it, some messages after the first.
    """
    chance = random.Random(20)  # noqa: S311  # the same numbers in every run
    source, target = start_mosquitto(), start_mosquitto()
    settings = f', version: "{version}"'
    config = RelayConfig(
        tmp_path, source.port, target.port, source_settings=settings, target_settings=settings,
        tap=', observe: "dst/#"',
    ).write()  # fmt: skip
    with load_and_witness(source.port, target.port, RATE) as (load, witness):
        with running(config):
            load.start()
        for _ in range(20):
            with running(config):
                witness.wait_for(witness.unique + chance.randrange(1, RATE // 4))
        with running(config) as gateway:
            end_after_all(gateway, load, witness)

    assert witness.duplicates  # otherwise no kill hit a message on its way
    read_archive(tmp_path)
    reconcile(tmp_path / "archive")


@repetitions(None, 10)
def test_a_gateway_killed_while_its_spool_drains_marks_duplicates(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with load_and_witness(source.port, target.port) as (load, witness):
        target.stop()
        with running(config, target=False):
            load.publish(SPOOLED_MESSAGES * (times + 1))
            until(lambda: spooled(tmp_path) == load.sent)
        target.start()
        for kills in range(times):
            with running(config, target=False):
                witness.wait_for(SPOOLED_MESSAGES * kills + 1_000)
        with running(config) as gateway:
            sent = end_after_all(gateway, load, witness)

    archived = read_archive(tmp_path)
    check_without_gap(archived, sent)
    assert witness.duplicates  # otherwise no kill hit a drain
    check_marked(archived, witness.duplicates)


def reconcile(archive: Path) -> None:
    """Reconcile every day of the archive.

    Raises:
        AssertionError: a message is missing, altered, or duplicated without a mark.
    """
    for folder in archive.glob("date=*"):
        day = folder.name.removeprefix("date=")
        done = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "reconcile", str(archive), "--date", day],
            capture_output=True, text=True, timeout=1_200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
