"""Gaps of YAMI4, Solace and JMS sources: every time in which one may have missed messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from gateway.clock import now
from gateway.endpoints.jms import JmsSource
from gateway.endpoints.registry import make_sink
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.trial.brokers.activemq import FACTORY, JARS, client_jars, missing
from gateway.trial.brokers.yami4 import Yami4Broker
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.station import MakeWire, Station, relay
from tests.brokers.wire import Wire
from tests.endpoints.exchange import opened, send
from tests.waiting import until

__all__ = ["relay"]  # a fixture

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("journals_stay")]

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
        for _ in range(2):  # a stop is not a gap: the queue keeps the messages
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
