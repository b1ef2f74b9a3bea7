"""A reload applies a changed configuration to a running gateway."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from gateway.errors import EndpointError
from gateway.model.message import Message
from gateway.runtime import wiring
from gateway.runtime.delivery.backlog import SpoolLimits
from gateway.runtime.delivery.lane_limits import LaneLimits
from gateway.runtime.gateway import Gateway
from gateway.runtime.record.counters import ConnectionState
from gateway.trial.brokers.listening import free_port
from tests.brokers.mosquitto import StartMosquitto
from tests.runtime.gateway.running import (
    PLANT_AND_EMS,
    BrokerClient,
    archive_rows,
    configured,
    running,
    wait_until_connected,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

ORDERS = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}"}
"""
BONDS = """\
routes:
  bonds:
    from: {endpoint: plant, pattern: "bonds/{rest...}"}
    to: {endpoint: ems, template: "BONDS.{rest...}"}
"""
ORDERS_TO_NEW_NAMES = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "NEW.{rest...}"}
"""
ORDERS_TO_BOTH = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to:
      - {endpoint: ems, template: "ORDERS.{rest...}"}
      - {endpoint: plant, template: "copies/{rest...}"}
"""
ORDERS_TO_AWAY = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to:
      - {endpoint: ems, template: "ORDERS.{rest...}"}
      - {endpoint: away, template: "copies/{rest...}"}
"""
ORDERS_FROM_EMS = """\
routes:
  orders:
    from: {endpoint: ems, pattern: "ORDERS.{rest...}"}
    to: {endpoint: plant, template: "orders/{rest...}"}
"""


def test_an_added_route_delivers_and_a_removed_one_does_not(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        gateway.reload(configured(PLANT_AND_EMS + BONDS))
        plant.publish(Message("orders/1", b"removed"), Message("bonds/1", b"added"))
        (delivered,) = ems.receive(1)

    assert delivered.address == "BONDS.1"
    assert [row["name"] for row in archive_rows("delivered")] == ["BONDS.1"]
    assert gateway.counters["bonds"].delivered == 1


def test_a_route_that_shortens_names_can_be_added(plant: BrokerClient, ems: BrokerClient) -> None:
    shortening = ORDERS.replace('ORDERS.{rest...}"', 'ORDERS.{rest...}", on_too_long: shorten')
    name = "orders/" + "/".join(f"a-long-level-of-a-name-{number}" for number in range(14))
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        for _ in ("added", "unchanged"):
            gateway.reload(configured(PLANT_AND_EMS + shortening))
            plant.publish(Message(name, b"x"))
            (delivered,) = ems.receive(1)
            assert "~" in delivered.address

    lines = Path("archive/_names/test.jsonl").read_text()
    assert lines.count("digest") == 1


def test_a_changed_template_takes_effect_without_a_new_connection(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        plant.publish(Message("orders/1", b"before"))
        ems.receive(1)
        source, lane = gateway.pumps["plant"].source, gateway.lanes["ems"]

        gateway.reload(configured(PLANT_AND_EMS + ORDERS_TO_NEW_NAMES))
        plant.publish(Message("orders/2", b"after"))
        (delivered,) = ems.receive(1)

        assert gateway.pumps["plant"].source is source
        assert gateway.lanes["ems"] is lane

    assert delivered.address == "NEW.2"
    assert gateway.counters["orders"].delivered == 2


def test_a_removed_target_is_closed_and_the_others_continue(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + ORDERS_TO_BOTH) as gateway:
        plant.publish(Message("orders/1", b"to both"))
        ems.receive(1)
        until(lambda: gateway.counters["orders"].delivered == 2)

        gateway.reload(configured(PLANT_AND_EMS + ORDERS))
        plant.publish(Message("orders/2", b"to one"))
        ems.receive(1)

        assert gateway.lanes.keys() == {"ems"}

    names = sorted(str(row["name"]) for row in archive_rows("delivered"))
    assert names == ["ORDERS.1", "ORDERS.2", "copies/1"]


def test_a_source_continues_when_a_reload_removes_a_target_that_is_away(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages whose other copies wait for the removed target are settled, and not stuck."""
    monkeypatch.setattr(wiring, "LaneLimits", partial(LaneLimits, capacity=1_000))
    away = f"  away: {{kind: mqtt, host: 127.0.0.1, port: {free_port()}}}\n"
    with_away = PLANT_AND_EMS.replace("archive:", away + "archive:")
    gateway = Gateway(configured(with_away + ORDERS_TO_AWAY))
    gateway.start()
    try:
        for number in range(100):
            plant.publish(Message(f"orders/{number}", b"x" * 100))
        until(lambda: gateway.lanes["away"].held > 0)
        gateway.reload(configured(with_away + ORDERS))
        names = [message.address for message in ems.receive(100)]
        until(lambda: gateway.pumps["plant"].settled)
    finally:
        gateway.stop(PATIENCE)

    assert names == [f"ORDERS.{number}" for number in range(100)]
    dead = archive_rows("dead")
    assert {(row["target"], row["rule"]) for row in dead} == {("away", "target-removed")}
    received = {row["id"] for row in archive_rows("received")}
    assert received == {row["id"] for row in archive_rows("delivered")}


def test_a_removed_source_is_closed_and_a_new_one_is_connected(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        gateway.reload(configured(PLANT_AND_EMS + ORDERS_FROM_EMS))
        wait_until_connected(gateway)
        ems.publish(Message("ORDERS.1", b"x"))
        (delivered,) = plant.receive(1)

        assert gateway.pumps.keys() == {"ems"}
        assert gateway.lanes.keys() == {"plant"}

    assert delivered.address == "orders/1"


def test_a_changed_archive_needs_a_restart(
    plant: BrokerClient, ems: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        elsewhere = PLANT_AND_EMS.replace("path: archive", "path: elsewhere")
        gateway.reload(configured(elsewhere + ORDERS))
        gateway.reload(configured(elsewhere + ORDERS))  # the first one is still in use
        plant.publish(Message("orders/1", b"x"))
        ems.receive(1)

    assert caplog.text.count("section 'archive' changed; restart the gateway to apply it") == 2
    assert len(archive_rows("delivered")) == 1
    assert not Path("elsewhere").exists()


def test_a_reload_without_the_spool_keeps_that_of_the_start_with_its_limits() -> None:
    """Also for a target that the reload adds; the log says that a restart drops it."""
    spool = "spool: {path: spool, bytes: 3MiB, messages: 7}\n"
    with running(PLANT_AND_EMS + spool + ORDERS) as gateway:
        gateway.reload(configured(PLANT_AND_EMS + ORDERS_TO_BOTH))
        limits = {
            name: lane.spool.backlog.limits
            for name, lane in gateway.lanes.items()
            if lane.spool is not None
        }

    assert limits == dict.fromkeys(("ems", "plant"), SpoolLimits(3 << 20, 7, None))


def test_another_endpoint_of_dead_letters_needs_no_restart(
    plant: BrokerClient, ems: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    copied = PLANT_AND_EMS + ORDERS + "dead_letters: {endpoint: ems, name: DEAD}\n"
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        gateway.reload(configured(copied))
        assert "restart" not in caplog.text
        plant.publish(Message("orders/" + "x" * 300, b"lost"))
        (copy,) = ems.receive(1)
        gateway.reload(configured(copied.replace("name: DEAD", "name: DEAD, bytes: 1000000")))

    assert (copy.address, copy.payload) == ("DEAD", b"lost")
    assert "section 'dead_letters' changed; restart the gateway to apply it" in caplog.text


def test_a_reload_whose_endpoint_cannot_be_created_changes_nothing(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_driver = Mock(side_effect=EndpointError("plant: no driver"))

    with running(PLANT_AND_EMS + ORDERS) as gateway:
        monkeypatch.setattr(wiring, "make_sink", no_driver)
        with pytest.raises(EndpointError, match="no driver"):
            gateway.reload(configured(PLANT_AND_EMS + ORDERS_TO_BOTH))
        plant.publish(Message("orders/1", b"x"))
        ems.receive(1)

    assert [row["name"] for row in archive_rows("delivered")] == ["ORDERS.1"]


SLOW_TO_RETRY = """\
gateway: {name: test}
endpoints:
  far: {kind: mqtt, port: PORT, backoff_min: 3600, backoff_max: 3600, SETTINGS}
  ems: {kind: memory, dialect: ems, broker: ems}
archive: {path: archive}
routes:
  out:
    from: {endpoint: far, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}"}
  back:
    from: {endpoint: ems, pattern: "BONDS.{rest...}"}
    to: {endpoint: far, template: "bonds/{rest...}", observe: "bonds/#"}
"""


@pytest.mark.broker
def test_a_reload_ends_the_pauses_between_attempts_to_connect(
    start_mosquitto: StartMosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broker = start_mosquitto()
    broker.kill()
    text = SLOW_TO_RETRY.replace("PORT", str(broker.port)).replace(", SETTINGS", "")
    gateway = Gateway(configured(text))
    gateway.start()
    try:
        (tap,) = gateway.taps.values()
        states = [gateway.pumps["far"].state, gateway.lanes["far"].state, tap.state]
        until(lambda: all(each.connection is ConnectionState.LOST for each in states))

        broker.start()
        gateway.reload(configured(text))

        until(lambda: all(each.connection is ConnectionState.CONNECTED for each in states))
        assert list(gateway.taps.values()) == [tap]
    finally:
        gateway.stop(1.0)


@pytest.mark.broker
def test_a_tap_gets_the_new_settings_of_its_endpoint(
    start_mosquitto: StartMosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SLOW_TO_RETRY.replace("PORT", str(start_mosquitto().port))
    gateway = Gateway(configured(text.replace(", SETTINGS", "")))
    gateway.start()
    try:
        (before,) = gateway.taps.values()
        gateway.reload(configured(text.replace("SETTINGS", "username: new")))

        (after,) = gateway.taps.values()
        assert after is not before
        until(lambda: after.state.connection is ConnectionState.CONNECTED)
    finally:
        gateway.stop(1.0)
