"""The `gateway run` process between two real brokers."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.brokers.running import CONFIG, Process, bridged, clients
from tests.waiting import PATIENCE

pytestmark = pytest.mark.broker


def test_the_process_bridges_archives_and_stops_cleanly(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, out):
        for number in range(500):
            into.publish(f"src/v1.2//{number}", b"%d" % number)
        out.wait_for(lambda arrived: len(arrived) >= 500)
        assert gateway.end() == 0

    assert out.arrived == [(f"dst/v1.2//{n}", b"%d" % n) for n in range(500)]
    legs = Counter(row["leg"] for row in archived(tmp_path))
    assert legs == {"received": 500, "delivered": 500}
    assert gateway.lines[-1]["message"] == "stopped"


def test_a_target_that_dies_and_comes_back_gets_everything_in_order(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, out):
        into.publish("src/a", b"0")
        out.wait_for(lambda arrived: len(arrived) >= 1)
        target.stop()
        gateway.wait_for("target", level="warning")  # although nothing was sent meanwhile
        for number in range(1, 300):
            into.publish("src/a", b"%d" % number).wait_for_publish(PATIENCE)
        target.start()
        out.wait_for(lambda arrived: arrived[-1][1] == b"299")
        assert gateway.end() == 0

    firsts = list(dict.fromkeys(payload for _, payload in out.arrived))
    assert firsts == [b"%d" % number for number in range(300)]


@pytest.mark.nightly
def test_a_killed_gateway_loses_nothing(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with clients(source, target) as (into, out):
        for life in range(3):
            with bridged(tmp_path, source, target):
                for number in range(life * 1000, (life + 1) * 1000):
                    into.publish("src/a", b"%d" % number)
                out.wait_for(lambda arrived, floor=life * 1000: len(arrived) > floor)  # type: ignore[misc]  # a default binds it now
        with bridged(tmp_path, source, target) as gateway:
            wanted = {b"%d" % number for number in range(3000)}
            out.wait_for(lambda arrived: {payload for _, payload in arrived} >= wanted)
            assert gateway.end() == 0

    rows = archived(tmp_path)
    received = {row["id"] for row in rows if row["leg"] == "received"}
    delivered = {row["id"] for row in rows if row["leg"] == "delivered"}
    assert received == delivered  # a killed run leaves no partial record
    assert len(received) >= 3000


def test_wrong_credentials_are_logged_and_retried_rarely(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    (tmp_path / "passwords").write_text("")
    closed = start_mosquitto("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    config = tmp_path / "gateway.yaml"
    text = CONFIG.format(source=closed.port, target=closed.port, archive=tmp_path / "archive")
    config.write_text(text.replace("backoff_max: 0.2", "backoff_max: 60"))
    gateway = Process(config)

    gateway.wait_for("source", level="error")
    gateway.wait_for("target", level="error")

    assert gateway.end() == 0
    assert sum(line["level"] == "error" for line in gateway.lines) == 2


def test_a_second_signal_exits_at_once(tmp_path: Path, start_mosquitto: StartMosquitto) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    with bridged(tmp_path, source, target) as gateway, clients(source, target) as (into, _):
        target.freeze()
        into.publish("src/a", b"never answered").wait_for_publish(PATIENCE)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_for("stopping")
        assert gateway.end() == 128 + signal.SIGTERM


def test_a_bad_configuration_connects_nowhere(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("endpoints: {a: {kind: mqtt, prot: 1}}\nroutes: {}\n")

    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "gateway", "run", str(config)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert f"{config}:1:29: unknown field 'prot'; did you mean 'port'?" in done.stderr
    assert not (tmp_path / "archive").exists()
