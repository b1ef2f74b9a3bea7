"""`kill -9` of a gateway under traffic: nothing is lost, and what comes twice is marked."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.books import digest_of, have_no_gap, read_books, spooled
from tests.chaos.rig import Setting, load_and_witness, profiles, running
from tests.waiting import until

pytestmark = pytest.mark.broker

SHORT = 5  # kills
RATE = 1_000  # messages a second, over all lives
PART = 20_000  # messages in the spool for each kill
LONGEST = 0.8  # seconds of a life that is connected
START = 1.2  # seconds, about those it takes to connect


@profiles(SHORT, 100)
@pytest.mark.parametrize("spool", ["", None], ids=["spool", "no-spool"])
def test_a_gateway_killed_at_any_moment_loses_nothing_and_marks_what_it_doubles(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, spool: str | None
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    config = Setting(tmp_path, source.port, target.port, spool=spool).write()
    tick = threading.Event()
    with load_and_witness(source.port, target.port, RATE) as (load, witness):
        with running(config):  # the session at the source broker is there from now on
            load.start()
        for _ in range(times):
            young = chance.random() < 0.2  # killed perhaps before it is connected
            away = chance.random() < 0.3  # its target is, so that it spools
            if away:
                target.stop()
            with running(config, source=not young, target=not (young or away)):
                tick.wait(chance.uniform(0, START if young else LONGEST))
            if away:
                target.start()
        load.stop()
        with running(config) as gateway:
            sent = load.finish()
            witness.wait_for(sent)
            assert gateway.end() == 0
        witness.has_all_in_order(sent)

    books = read_books(tmp_path)
    have_no_gap(books, sent)
    assert {digest_of(number) for number in witness.twice} <= books.marked
    if times > SHORT:  # Spark takes its time
        reconcile(tmp_path / "archive")


@profiles(1, 10)
def test_a_gateway_killed_while_its_spool_drains_marks_what_it_sends_again(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = Setting(tmp_path, source.port, target.port).write()
    with load_and_witness(source.port, target.port) as (load, witness):
        target.stop()
        with running(config, target=False):
            load.publish(PART * (times + 1))
            until(lambda: spooled(tmp_path) == load.sent)
        target.start()
        for kills in range(times):
            with running(config, target=False):
                witness.wait_for(PART * kills + 1_000)
        with running(config) as gateway:
            sent = load.finish()
            witness.wait_for(sent)
            assert gateway.end() == 0
        witness.has_all_in_order(sent)

    books = read_books(tmp_path)
    have_no_gap(books, sent)
    assert witness.twice  # else it was never killed in the middle of it
    assert {digest_of(number) for number in witness.twice} <= books.marked


def reconcile(archive: Path) -> None:
    """Reconcile every day of the archive.

    Raises:
        AssertionError: something is missing, altered, or doubled without a mark.
    """
    for folder in archive.glob("date=*"):
        day = folder.name.removeprefix("date=")
        done = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "gateway", "reconcile", str(archive), "--date", day],
            capture_output=True, text=True, timeout=1_200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
