"""The gaps of an MQTT source: every time in which it may have missed messages is in the archive."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.clock import now
from gateway.config.load import load
from gateway.endpoints.mqtt.session_packets import Connect, encode_connect
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process, archived
from tests.endpoints.exchange import opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

PLUGIN = Path("/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so")
CONFIG = """\
gateway: {{name: test}}
endpoints:
  source:
    {{kind: mqtt, host: 127.0.0.1, port: {port}, backoff_min: 0.05, backoff_max: 0.2, {options}}}
  target: {{kind: memory, dialect: mqtt, broker: gaps}}
routes:
  relay:
    from: {{endpoint: source, pattern: "src/{{rest...}}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""


class Plant:
    """A gateway with a source at a mosquitto, and its archive."""

    def __init__(self, folder: Path, broker: Mosquitto, options: str = "qos: 1") -> None:
        self.folder, self.broker = folder, broker
        self.config = folder / "gateway.yaml"
        archive = folder / "archive"
        text = CONFIG.format(port=broker.port, options=options, archive=archive)
        self.config.write_text(text)

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        gateway = Gateway(load(self.config))
        gateway.start()
        try:
            self.wait(gateway, 0)
            yield gateway
        finally:
            gateway.stop(PATIENCE)

    def wait(self, gateway: Gateway, reconnects: int) -> None:
        """Wait until the source has connected again so many times."""
        state = gateway.pumps["source"].state
        until(lambda: state.connection.value == "connected" and state.reconnects >= reconnects)

    def gaps(self) -> list[SourceGap]:
        return merge_gaps(row for row in archived(self.folder) if row["leg"] == "gap")


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
        started = now()
        plant.wait(gateway, 1)

    (gap,) = plant.gaps()
    assert (gap.rule, gap.route, gap.endpoint) == ("session-lost", "relay", "source")
    assert (gap.name, gap.lost, gap.counts) == ("src/#", None, True)
    assert before <= gap.begin <= killed
    assert started <= gap.end <= now()


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

    (counted,) = (gap for gap in plant.gaps() if gap.counts)
    assert counted.rule == "taken-over"
    assert begun <= counted.begin < counted.end


def take_over(port: int, version: str) -> None:
    """Connect once with the client id of the gateway."""
    five = version == "5"
    connect = Connect(
        client_id="gateway-source", clean=False, keepalive=30, session_expiry=100 if five else None
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


def rules_text(*, subscribe: bool) -> str:
    """The configuration of the plugin, without any client or role."""
    access = {
        "publishClientSend": True,
        "publishClientReceive": True,
        "subscribe": subscribe,
        "unsubscribe": True,
    }
    return json.dumps({"defaultACLAccess": access, "clients": [], "groups": [], "roles": []})
