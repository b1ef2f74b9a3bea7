"""The gaps of sources: every time in which one may have missed messages is in the archive."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, cast

import pytest

from gateway.archive.gaps import SourceGap, merge_gaps
from gateway.archive.heads import open_gaps, read_heads
from gateway.archive.storage import LocalStorage
from gateway.clock import now
from gateway.config.load import load
from gateway.endpoints.jms import JmsSource
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.status import take_status
from gateway.trial.brokers.activemq import FACTORY, JARS, ActiveMq, client_jars, missing
from gateway.trial.brokers.smf import SmfBroker
from gateway.trial.brokers.yami4 import Yami4Broker
from gateway.wire.mqtt.session_packets import Connect, encode_connect
from tests.archived import archived
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.brokers.wire import Wire
from tests.endpoints.exchange import opened, send
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

PLUGIN = Path("/usr/lib/x86_64-linux-gnu/mosquitto_dynamic_security.so")
ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
SPRING_JARS = [
    JARS / f"{name}.jar"
    for name in (
        "activemq-spring", "commons-logging", "spring3-aop", "spring3-beans", "spring3-context",
        "spring3-core", "spring3-expression", "xbean-spring",
    )
]  # fmt: skip
LIMITING = """\
<beans xmlns="http://www.springframework.org/schema/beans">
  <broker xmlns="http://activemq.apache.org/schema/core" persistent="false" useJmx="false">
    <destinationPolicy><policyMap><policyEntries>
      <policyEntry topic="gaps.>" advisoryForDiscardingMessages="true">
        <pendingMessageLimitStrategy>
          <constantPendingMessageLimitStrategy limit="10"/>
        </pendingMessageLimitStrategy>
      </policyEntry>
    </policyEntries></policyMap></destinationPolicy>
    <transportConnectors>
      <transportConnector uri="{url}"/>
      <transportConnector uri="mqtt://127.0.0.1:{mqtt}"/>
    </transportConnectors>
  </broker>
</beans>
"""
MakeWire: TypeAlias = Callable[[int], Wire]
CONFIG = """\
gateway: {{name: test}}
endpoints:
  source: {{{source}, backoff_min: 0.05, backoff_max: 0.2}}
  target: {{kind: memory, dialect: mqtt, broker: gaps}}
routes:
  relay:
    from: {{endpoint: source, pattern: "{pattern}"}}
    to: {{endpoint: target, template: "dst/{{rest...}}"}}
archive: {{path: {archive}}}
"""


class Station:
    """A gateway with one source, and its archive."""

    def __init__(self, folder: Path, source: str, pattern: str = "src/{rest...}") -> None:
        self.folder, self.config = folder, folder / "gateway.yaml"
        archive = folder / "archive"
        self.config.write_text(CONFIG.format(source=source, pattern=pattern, archive=archive))

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


class Plant(Station):
    """A gateway with a source at a mosquitto."""

    def __init__(
        self, folder: Path, broker: Mosquitto, options: str = "qos: 1", port: int = 0
    ) -> None:
        source = f"kind: mqtt, host: 127.0.0.1, port: {port or broker.port}, {options}"
        super().__init__(folder, source)


@pytest.fixture
def relay() -> Iterator[MakeWire]:
    """Return a function that makes a relay before the port of a broker."""
    wires: list[Wire] = []

    def make(port: int) -> Wire:
        wires.append(Wire(port))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()


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
        other = subprocess.Popen(  # noqa: S603  # the broker's own client, which connects again
            ["mosquitto_sub", "-p", str(mosquitto.port), "-i", "test-source", "-c", "-q", "1",  # noqa: S607
             "-t", "src/#", "-V", {"5": "mqttv5", "3.1.1": "mqttv311"}[version]]
        )  # fmt: skip
        try:
            plant.wait(gateway, 4)
        finally:
            other.kill()
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


def break_once(station: Station, wire: Wire) -> list[tuple[str, bool]]:
    """Run the gateway, cut its connection, stop it; return rule and verdict of each gap."""
    with station.running() as gateway:
        wire.cut()
        station.wait(gateway, 1)
    return [(gap.rule, gap.counts) for gap in station.gaps()]


LOST_AND_STOPPED = [("disconnected", True), ("not-running", True)]


def test_a_break_and_a_stop_are_gaps_of_a_yami4_source(tmp_path: Path, relay: MakeWire) -> None:
    with Yami4Broker() as broker:
        wire = relay(port_of(broker.url))
        source = f"kind: yami4, url: 'tcp://127.0.0.1:{wire.port}'"

        assert break_once(Station(tmp_path, source, "src.{rest...}"), wire) == LOST_AND_STOPPED


@pytest.mark.parametrize(
    ("guaranteed", "gaps"), [("false", LOST_AND_STOPPED), ("true", [("away", False)])]
)
def test_a_break_is_a_gap_of_a_solace_source_without_a_queue(
    tmp_path: Path, relay: MakeWire, guaranteed: str, gaps: list[tuple[str, bool]]
) -> None:
    pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")
    with SmfBroker() as broker:
        wire = relay(broker.port)
        source = f"kind: solace, url: 'tcp://127.0.0.1:{wire.port}', guaranteed: {guaranteed}"

        assert break_once(Station(tmp_path, source), wire) == gaps


def test_a_queue_that_the_broker_lost_is_a_gap_of_a_solace_source(tmp_path: Path) -> None:
    pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")
    with SmfBroker() as broker:
        station = Station(tmp_path, f"kind: solace, url: '{broker.url}'")
        for _ in range(2):  # a stop is no gap: the queue keeps the messages
            with station.running():
                pass
    stopped = now()
    with SmfBroker(broker.port), station.running():
        pass

    away, lost = station.gaps()
    assert (away.rule, away.counts) == ("away", False)
    assert (lost.rule, lost.counts) == ("session-lost", True)
    assert lost.begin <= stopped < lost.end


@pytest.mark.parametrize(
    ("options", "gaps"),
    [
        pytest.param("", LOST_AND_STOPPED, id="topic"),
        pytest.param(", client_id: gaps, durable: kept", [("away", False)], id="durable"),
    ],
)
def test_a_break_is_a_gap_of_a_jms_source_without_a_durable_subscription(
    tmp_path: Path, activemq: ActiveMq, relay: MakeWire, options: str, gaps: list[tuple[str, bool]]
) -> None:
    wire = relay(activemq.port)
    source = (
        f"kind: jms, classpath: [{', '.join(client_jars())}], factory: {FACTORY},"
        f" urls: ['tcp://127.0.0.1:{wire.port}']{options}"
    )

    assert break_once(Station(tmp_path, source, "gaps.{rest...}"), wire) == gaps


def test_messages_that_activemq_discards_are_a_gap_with_their_number(
    tmp_path: Path, relay: MakeWire
) -> None:
    broker = LimitingActiveMq(tmp_path)
    if why := missing() or broker.missing():
        pytest.skip(why)
    broker.start()
    try:
        wire = relay(broker.port)
        source = (
            f"kind: jms, classpath: [{', '.join(client_jars())}], factory: {FACTORY},"
            f" urls: ['tcp://127.0.0.1:{wire.port}'], prefetch: 1"
        )
        station = Station(tmp_path, source, "gaps.{rest...}")
        headers = Headers(mode=DeliveryMode.AT_MOST_ONCE)
        with station.running() as gateway, opened(sink := make_sink(broker.settings())):
            wire.stall()
            send(sink, *(Message("gaps.a", b"x", headers) for _ in range(100)))
            wire.flow()
            jms = cast(JmsSource, gateway.pumps["source"].source)
            counts = gateway.counters["relay"]
            until(lambda: jms.counts["discarded"] + counts.received == 100)
    finally:
        broker.stop()

    dropped = [gap for gap in station.gaps() if gap.rule == "dropped"]
    assert sum(gap.lost or 0 for gap in dropped) == 100 - counts.received > 80
    assert all(gap.begin < gap.end and "discarded" in gap.reason for gap in dropped)


class LimitingActiveMq(ActiveMq):
    """A broker that keeps at most 10 messages for a slow consumer, and tells of the others."""

    @property
    def jars(self) -> list[str]:
        return [*super().jars, *map(str, SPRING_JARS)]

    @property
    def configuration(self) -> str:
        path = self.folder / "broker.xml"
        path.write_text(LIMITING.format(url=self.url, mqtt=self.mqtt_port))
        return f"xbean:{path.as_uri()}?validate=false"

    def missing(self) -> str:
        """Return which jars are absent, or an empty text."""
        return ", ".join(f"no {path}" for path in SPRING_JARS if not path.exists())


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def rules_text(*, subscribe: bool) -> str:
    """The configuration of the plugin, without any client or role."""
    access = {
        "publishClientSend": True,
        "publishClientReceive": True,
        "subscribe": subscribe,
        "unsubscribe": True,
    }
    return json.dumps({"defaultACLAccess": access, "clients": [], "groups": [], "roles": []})
