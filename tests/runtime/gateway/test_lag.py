"""The lag of a route: the age of its own spooled messages, and of no other route's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.model.message import Message
from gateway.runtime.gateway import Gateway
from gateway.runtime.status import take_status
from gateway.trial.brokers.listening import free_port
from gateway.web.readiness import warnings
from gateway.web.snapshot import StatusSnapshot, snapshot_json
from tests.runtime.gateway.running import PLANT_AND_EMS, BrokerClient, configured
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

AWAY = """\
spool: {{path: spool}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: away, template: "orders/{{rest...}}"}}
  alarms:
    from: {{endpoint: plant, pattern: "alarms/{{rest...}}"}}
    to:
      - {{endpoint: away, template: "alarms/{{rest...}}"}}
      - {{endpoint: ems, template: "alarms.{{rest...}}"}}
"""


@contextmanager
def started(yaml: str) -> Iterator[Gateway]:
    """Run a gateway, one of whose endpoints is away."""
    gateway = Gateway(configured(yaml))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop(PATIENCE)


def _configuration() -> str:
    away = f"  away: {{kind: mqtt, host: 127.0.0.1, port: {free_port()}}}\n"
    return PLANT_AND_EMS.replace("archive:", f"{away}archive:") + AWAY.format()


def lags(gateway: Gateway) -> dict[str, float]:
    shown = snapshot_json(StatusSnapshot(take_status(gateway), time.time(), "", ()))
    return {each["name"]: each["lag"] for each in shown["routes"]}  # type: ignore[attr-defined]  # JSON


def test_a_route_lags_only_by_its_own_messages(plant: BrokerClient, ems: BrokerClient) -> None:
    yaml = _configuration()
    with started(yaml) as gateway:
        plant.publish(Message("orders/1", b"x"))
        until(lambda: gateway.counters["orders"].spooled == 1)
        until(lambda: lags(gateway)["orders"] > 0)
        assert lags(gateway)["alarms"] == 0

    with started(yaml) as gateway:
        assert lags(gateway)["orders"] > 0
        assert lags(gateway)["alarms"] == 0
        plant.publish(Message("alarms/1", b"x"))
        assert [each.address for each in ems.receive(1)] == ["alarms.1"]
        until(lambda: lags(gateway)["alarms"] > 0)
        assert lags(gateway)["orders"] >= lags(gateway)["alarms"]


def test_messages_of_a_target_that_left_are_a_warning(
    plant: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    yaml = _configuration()
    renamed = yaml.replace("  away:", "  far:").replace("endpoint: away", "endpoint: far")
    with started(yaml) as gateway:
        plant.publish(Message("orders/1", b"x"))
        until(lambda: gateway.counters["orders"].spooled == 1)
        assert [*warnings(take_status(gateway))] == []

        gateway.reload(configured(renamed))
        (said,) = warnings(take_status(gateway))
        assert said.startswith("the spool holds 1 message for 'away', to which no route sends;")
        assert said in caplog.messages

        gateway.reload(configured(yaml))
        assert [*warnings(take_status(gateway))] == []
