"""The gaps of sources: every time in which one may have missed messages is in the archive."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path
from typing import cast

import pytest

from gateway.archive.gaps import DID_NOT_RUN
from gateway.archive.heads import open_gaps, read_heads
from gateway.archive.storage import LocalStorage
from gateway.clock import now
from gateway.config.load import load
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.status import take_status
from gateway.wire.mqtt.session_packets import Connect, encode_connect
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.brokers.station import ONCE, MakeWire, Plant, relay
from tests.brokers.test_other_gaps import rules_text
from tests.endpoints.exchange import opened, send
from tests.waiting import PATIENCE, until

__all__ = ["relay"]  # a fixture

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]
PLUGIN = Path("/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so")


def test_a_first_start_is_no_gap(tmp_path: Path, mosquitto: Mosquitto) -> None:
    plant = Plant(tmp_path, mosquitto)
    with plant.running():
        pass

    assert plant.gaps() == []


def test_a_session_that_the_broker_lost_is_a_gap(tmp_path: Path, mosquitto: Mosquitto) -> None:
    plant = Plant(tmp_path, mosquitto)
    before = now()
    with plant.running() as gateway:
        mosquitto.kill()  # it forgets what it has not saved
        killed = now()
        mosquitto.start()
        plant.wait(gateway, 1)

    (gap,) = plant.gaps()
    assert (gap.rule, gap.route, gap.endpoint) == ("session-lost", "relay", "source")
    assert (gap.name, gap.lost, gap.counts) == ("src/#", None, True)
    assert before <= gap.begin <= killed
    assert killed < gap.end <= now()


def test_a_renamed_endpoint_reads_what_waited_for_it(tmp_path: Path, mosquitto: Mosquitto) -> None:
    """Session, queue and consumer have their names from the endpoint, by default."""
    plant = Plant(tmp_path, mosquitto)
    sink = make_sink(MqttSettings(name="publisher", host="127.0.0.1", port=mosquitto.port))
    with plant.running():
        pass
    with opened(sink):
        send(sink, Message("src/a", b"x", ONCE))
    rename(plant, "was: source, ")

    gateway = Gateway(load(plant.config))
    gateway.start()
    until(lambda: gateway.counters["relay"].delivered == 1)
    gateway.stop(PATIENCE)

    (gap,) = plant.gaps()
    assert (gap.rule, gap.endpoint, gap.counts) == ("away", "renamed", False)


def rename(plant: Plant, was: str) -> None:
    """Write the source with another name, and with its earlier one."""
    renamed = plant.config.read_text().replace("source: {", f"renamed: {{{was}", 1)
    plant.config.write_text(renamed.replace("endpoint: source", "endpoint: renamed"))


@pytest.mark.parametrize("was", ["was: source, ", ""], ids=["was", "nothing"])
def test_an_endpoint_that_a_reload_renames(
    tmp_path: Path, mosquitto: Mosquitto, caplog: pytest.LogCaptureFixture, was: str
) -> None:
    plant = Plant(tmp_path, mosquitto)
    sink = make_sink(MqttSettings(name="publisher", host="127.0.0.1", port=mosquitto.port))
    with plant.running() as gateway, opened(sink):
        rename(plant, was)
        gateway.reload(load(plant.config))
        until(lambda: gateway.pumps["renamed"].state.connection.value == "connected")
        until(lambda: "source" not in gateway.pumps)
        send(sink, Message("src/a", b"x", ONCE))
        until(lambda: gateway.counters["relay"].delivered == 1)

    assert ("if it was renamed, write `was: NAME`" in caplog.text) == (not was)
    gaps = plant.gaps()
    assert DID_NOT_RUN not in {gap.reason for gap in gaps}
    assert [gap.rule for gap in gaps if "a reload replaced it" in gap.reason] == ["away"] * bool(
        was
    )
    told = [gap.reason for gap in gaps if gap.counts]
    assert told == ([] if was else ["perhaps it was source, and what waits there is not read"])


def test_an_endpoint_that_comes_after_another_one_left_begins_without_a_gap(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    plant = Plant(tmp_path, mosquitto)
    with plant.running():
        pass
    rename(plant, "")
    later = plant.config.read_text()
    other = "other: {kind: memory, dialect: mqtt, broker: none}"
    without = re.sub(r"renamed: {.*}", other, later).replace("endpoint: renamed", "endpoint: other")
    plant.config.write_text(without)
    gateway = Gateway(load(plant.config))
    gateway.start()
    plant.config.write_text(later)
    gateway.reload(load(plant.config))
    until(lambda: gateway.pumps["renamed"].state.connection.value == "connected")
    gateway.stop(PATIENCE)

    assert [gap.reason for gap in plant.gaps() if gap.counts] == []


def test_an_outage_with_a_kept_session_is_no_loss(tmp_path: Path, mosquitto: Mosquitto) -> None:
    plant = Plant(tmp_path, mosquitto)
    with plant.running() as gateway:
        mosquitto.stop()
        mosquitto.start()
        plant.wait(gateway, 1)

    (gap,) = plant.gaps()
    assert (gap.rule, gap.counts) == ("away", False)


@pytest.mark.parametrize("options", ["qos: 0", "session_expiry: 0"])
def test_an_outage_is_a_gap_when_the_broker_keeps_nothing(
    tmp_path: Path, mosquitto: Mosquitto, options: str
) -> None:
    plant = Plant(tmp_path, mosquitto, options)
    with plant.running() as gateway:
        mosquitto.stop()
        stopped = now()
        state = gateway.pumps["source"].state
        until(lambda: state.connection.value == "lost")
        mosquitto.start()
        plant.wait(gateway, 1)

    gap, stop = plant.gaps()
    assert (gap.rule, gap.counts) == ("disconnected", True)
    assert stop.rule == "not-running"
    assert gap.begin <= stopped < gap.end


def test_an_outage_is_a_gap_when_publishers_use_qos_0(tmp_path: Path, mosquitto: Mosquitto) -> None:
    """The session is kept, and the broker queues no such message for it."""
    plant = Plant(tmp_path, mosquitto)
    sink = make_sink(MqttSettings(name="publisher", host="127.0.0.1", port=mosquitto.port))
    with plant.running() as gateway, opened(sink):
        send(sink, Message("src/a", b"x", Headers(mode=DeliveryMode.AT_MOST_ONCE)))
        until(lambda: gateway.counters["relay"].delivered == 1)
        mosquitto.stop()
        mosquitto.start()
        plant.wait(gateway, 1)
    with plant.running():
        pass

    assert [gap.rule for gap in plant.gaps()] == ["disconnected", "not-running", "not-running"]


def test_an_outage_that_lasts_is_in_the_archive_before_it_ends(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    plant = Plant(tmp_path, mosquitto, "qos: 0")
    with plant.running() as gateway:
        mosquitto.stop()
        state = gateway.pumps["source"].state
        until(lambda: state.connection.value == "lost")
    (open_,) = plant.gaps()
    mosquitto.start()
    with plant.running():
        pass

    gap, stop = plant.gaps()
    assert (open_.rule, gap.rule, stop.rule) == ("disconnected", "disconnected", "not-running")
    assert gap.begin == open_.begin
    assert gap.end > open_.end


@pytest.mark.parametrize("keeps", [True, False])
def test_a_session_that_is_lost_between_two_runs_is_a_gap(
    tmp_path: Path, mosquitto: Mosquitto, keeps: bool
) -> None:
    plant = Plant(tmp_path, mosquitto)
    with plant.running():
        pass
    stopped = now()
    (mosquitto.stop if keeps else mosquitto.kill)()
    mosquitto.start()
    with plant.running():
        pass

    (gap,) = plant.gaps()
    assert gap.rule == ("away" if keeps else "session-lost")
    assert gap.begin <= stopped < gap.end


def test_a_pause_between_two_runs_is_a_gap_when_the_broker_keeps_nothing(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    plant = Plant(tmp_path, mosquitto, "session_expiry: 0")
    with plant.running():
        pass
    (open_,) = plant.gaps()
    stopped = now()
    with plant.running():
        pass

    first, second = plant.gaps()
    assert (open_.rule, first.rule, second.rule) == ("not-running",) * 3
    assert open_.begin == first.begin <= stopped < first.end <= second.begin


@pytest.mark.parametrize("away", [False, True], ids=["connected", "away"])
def test_a_source_that_a_reload_removes_has_no_gap_from_then_on(
    tmp_path: Path, mosquitto: Mosquitto, *, away: bool
) -> None:
    plant = Plant(tmp_path, mosquitto, "qos: 0")
    with plant.running() as gateway:
        if away:
            mosquitto.stop()
            state = gateway.pumps["source"].state
            until(lambda: state.connection.value == "lost")
        source, target = "{endpoint: source", "{endpoint: target"
        changed = plant.config.read_text().replace(f"to: {target}", f"to: {source}")
        changed = changed.replace(f"from: {source}", f"from: {target}")
        plant.config.write_text(changed)
        gateway.reload(load(plant.config))
        assert "source" not in gateway.pumps
        reloaded = now()

    assert [gap.rule for gap in plant.gaps()] == ["disconnected"] * away
    assert all(gap.begin < gap.end < reloaded for gap in plant.gaps())
    assert open_gaps(read_heads(LocalStorage(tmp_path / "archive"))) == []


def test_the_next_start_records_the_gap_that_a_killed_gateway_leaves(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    plant = Plant(tmp_path, mosquitto)
    process = Process(plant.config)
    process.wait_for("connected", endpoint="source", side="source")
    process.end(signal.SIGKILL)
    killed = now()
    mosquitto.kill()
    mosquitto.start()
    with plant.running():
        pass

    (gap,) = plant.gaps()
    assert gap.rule == "session-lost"
    assert gap.begin <= killed < gap.end


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_rise_of_the_count_of_dropped_messages_is_a_gap(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str
) -> None:
    """The session is kept, and its queue at the broker is too short for the time away."""
    broker = start_mosquitto("allow_anonymous true", "max_queued_messages 5", "sys_interval 1")
    plant = Plant(tmp_path, broker, f'version: "{version}"')
    with plant.running() as gateway:
        source = cast(MqttSource, gateway.pumps["source"].source)
        until(lambda: source.continuity.dropped == 0)
    stopped = now()
    sink = make_sink(MqttSettings(name="publisher", host="127.0.0.1", port=broker.port))
    with opened(sink):
        send(sink, *(Message("src/a", b"%d" % number, ONCE) for number in range(20)))
    with plant.running() as gateway:
        source = cast(MqttSource, gateway.pumps["source"].source)
        until(lambda: source.continuity.dropped == 15)
        until(lambda: gateway.counters["relay"].delivered == 5)

    away, dropped = sorted(plant.gaps(), key=lambda gap: gap.rule)
    assert (away.rule, away.counts) == ("away", False)
    assert (dropped.rule, dropped.lost, dropped.counts) == ("dropped", 15, True)
    assert "for all its clients" in dropped.reason
    assert dropped.begin <= stopped < dropped.end


def test_a_refused_count_of_dropped_messages_is_a_warning(
    tmp_path: Path, start_mosquitto: StartMosquitto, caplog: pytest.LogCaptureFixture
) -> None:
    if not PLUGIN.exists():
        pytest.skip("mosquitto has no plugin that refuses subscriptions")
    rules = tmp_path / "rules.json"
    rules.write_text(rules_text(subscribe=False))
    plugin = f"plugin {PLUGIN}", f"plugin_opt_config_file {rules}"
    broker = start_mosquitto("allow_anonymous true", *plugin)
    settings = MqttSettings(host="127.0.0.1", port=broker.port)
    source = make_source(settings, [], instance="")
    with opened(source):
        pass

    assert "the broker refuses `dropped_topic`" in caplog.text


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_client_id_that_another_client_takes_over_is_a_gap(
    tmp_path: Path, mosquitto: Mosquitto, version: str
) -> None:
    """mosquitto gives no reason, as all brokers of 3.1.1: a series of closes is the sign."""
    plant = Plant(tmp_path, mosquitto, f'qos: 1, version: "{version}"')
    begun = now()
    with plant.running() as gateway:
        for taken in range(1, 4):
            take_over(mosquitto.port, version)
            plant.wait(gateway, taken)
        shown = next(
            each.reason for each in take_status(gateway).endpoints if each.name == "source"
        )

    assert "another client uses this id; give each client an id of its own" in shown
    (counted,) = (gap for gap in plant.gaps() if gap.counts)
    assert counted.rule == "taken-over"
    assert begun <= counted.begin < counted.end


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_two_clients_of_one_id_that_both_connect_again_are_a_gap(
    tmp_path: Path, mosquitto: Mosquitto, version: str
) -> None:
    plant = Plant(tmp_path, mosquitto, f'qos: 1, version: "{version}"')
    with plant.running() as gateway:
        # the broker's own client ends in good order where the broker tells it of the other one
        other = subprocess.Popen(  # noqa: S603
            ["sh", "-c", 'while :; do mosquitto_sub "$@"; done', "sh", "-p", str(mosquitto.port),  # noqa: S607
             "-i", "test-source", "-c", "-q", "1", "-t", "src/#",
             "-V", {"5": "mqttv5", "3.1.1": "mqttv311"}[version]],
            start_new_session=True,
        )  # fmt: skip
        try:
            plant.wait(gateway, 4)
        finally:
            os.killpg(other.pid, signal.SIGKILL)
            other.wait(PATIENCE)

    assert [gap.rule for gap in plant.gaps() if gap.counts] == ["taken-over"]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_a_network_that_closes_connections_is_no_second_client(
    tmp_path: Path, mosquitto: Mosquitto, relay: MakeWire, version: str
) -> None:
    wire = relay(mosquitto.port)
    plant = Plant(tmp_path, mosquitto, f'qos: 1, version: "{version}"', wire.port)
    with plant.running() as gateway:
        for closed in range(1, 6):
            wire.half_close(broker=False)
            plant.wait(gateway, closed)

    assert {(gap.rule, gap.counts) for gap in plant.gaps()} == {("away", False)}


def test_a_broker_that_restarts_again_and_again_is_no_second_client(
    tmp_path: Path, mosquitto: Mosquitto
) -> None:
    plant = Plant(tmp_path, mosquitto)
    with plant.running() as gateway:
        for restarted in range(1, 5):
            mosquitto.stop()
            mosquitto.start()
            plant.wait(gateway, restarted)

    assert {(gap.rule, gap.counts) for gap in plant.gaps()} == {("away", False)}


def take_over(port: int, version: str) -> None:
    """Connect once with the client id of the gateway."""
    five = version == "5"
    connect = Connect(
        client_id="test-source", clean=False, keepalive=30, session_expiry=100 if five else None
    )
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(encode_connect(connect, five=five))
        assert connection.recv(100)


def test_a_refused_subscription_is_a_gap_until_it_is_granted(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    if not PLUGIN.exists():
        pytest.skip("mosquitto has no plugin that refuses subscriptions")
    rules = tmp_path / "rules.json"
    rules.write_text(rules_text(subscribe=False))
    plugin = f"plugin {PLUGIN}", f"plugin_opt_config_file {rules}"
    broker = start_mosquitto("allow_anonymous true", *plugin)
    plant = Plant(tmp_path, broker)
    gateway = Gateway(load(plant.config))
    begun = now()
    gateway.start()
    try:
        state = gateway.pumps["source"].state
        until(lambda: state.connection.value == "refused")
        broker.stop()
        rules.write_text(rules_text(subscribe=True))
        broker.start()
        plant.wait(gateway, 0)
    finally:
        gateway.stop(PATIENCE)

    (gap,) = plant.gaps()
    assert gap.rule == "subscription-refused"
    assert "src/#" in gap.reason
    assert begun <= gap.begin < gap.end
