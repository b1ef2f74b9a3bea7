"""Copies on disk for a target that a restart or a reload gives another name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.errors import EndpointError
from gateway.model.message import Message
from gateway.runtime.gateway import Gateway
from gateway.trial.brokers.listening import free_port
from tests.runtime.gateway.running import BrokerClient, archive_rows, configured
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

AWAY = f"kind: mqtt, host: 127.0.0.1, port: {free_port()}"
HERE = "kind: memory, dialect: mqtt, broker: far"
CONFIG = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  {target}
archive: {{path: archive}}
spool: {{path: spool}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: {name}, template: "far/{{rest...}}"}}
"""


def config(name: str, how: str, was: str = "") -> str:
    """A configuration that sends to the endpoint `name`."""
    target = f"{name}: {{{how}{f', was: {was}' if was else ''}}}"
    return CONFIG.format(name=name, target=target)


@contextmanager
def started(yaml: str) -> Iterator[Gateway]:
    gateway = Gateway(configured(yaml))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop(PATIENCE)


@pytest.fixture
def far() -> Iterator[BrokerClient]:
    """A client of the broker `far`, with the naming rules of MQTT."""
    client = BrokerClient("far", "mqtt")
    yield client
    client.close()


def publish(plant: BrokerClient, *numbers: int) -> None:
    for number in numbers:
        plant.publish(Message(f"orders/{number}", b"%d" % number))


def spool(gateway: Gateway, plant: BrokerClient, *numbers: int) -> None:
    """Publish messages, and wait until the gateway has them on disk."""
    before = gateway.counters["orders"].spooled
    publish(plant, *numbers)
    until(lambda: gateway.counters["orders"].spooled == before + len(numbers))


def names(client: BrokerClient, count: int) -> list[str]:
    return [each.address for each in client.receive(count)]


def test_a_start_sends_what_waited_under_the_first_name(
    plant: BrokerClient, far: BrokerClient
) -> None:
    """In order, before what comes now, and with the outcomes that the receipts name."""
    with started(config("old", AWAY)) as gateway:
        spool(gateway, plant, 1, 2, 3)
    with started(config("new", HERE, "old")) as gateway:
        assert not gateway.stranded
        publish(plant, 4)
        assert names(far, 4) == [f"far/{number}" for number in (1, 2, 3, 4)]
        until(lambda: gateway.counters["orders"].delivered == 4)

    delivered = archive_rows("delivered")
    assert [row["target"] for row in delivered] == ["old"] * 3 + ["new"]
    received = {(row["id"], *row["targets"]) for row in archive_rows("received")}  # type: ignore[misc]  # a list
    assert {(row["id"], row["target"]) for row in delivered} == received


def test_a_name_that_was_forgotten_joins_what_waits_under_both(
    plant: BrokerClient, far: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    with started(config("old", AWAY)) as gateway:
        spool(gateway, plant, 1, 2)
    with started(config("new", AWAY)) as gateway:
        assert gateway.stranded == (("old", 2),)
        assert "with `was: old`" in caplog.text
        spool(gateway, plant, 3, 4)
        gateway.reload(configured(config("new", AWAY, "old")))
        assert gateway.stranded == (("old", 2),)  # the lane runs: a start gives it the others
        spool(gateway, plant, 5)
    with started(config("new", HERE, "old")) as gateway:
        assert not gateway.stranded
        assert names(far, 5) == [f"far/{number}" for number in (1, 2, 3, 4, 5)]


def test_a_reload_sends_what_waited_under_the_earlier_names(
    plant: BrokerClient, far: BrokerClient
) -> None:
    with started(config("old", AWAY)) as gateway:
        spool(gateway, plant, 1, 2)
        gateway.reload(configured(config("new", AWAY, "old")))
        assert gateway.lanes.keys() == {"new"}
        assert gateway.lanes["new"].state.name == "new"
        spool(gateway, plant, 3)
        gateway.reload(configured(config("newest", HERE, "old")))
        assert gateway.lanes.keys() == {"newest"}
        assert not gateway.stranded
        publish(plant, 4)
        assert names(far, 4) == [f"far/{number}" for number in (1, 2, 3, 4)]

    assert not archive_rows("dead")


def test_a_reload_keeps_what_waits_in_memory(plant: BrokerClient, far: BrokerClient) -> None:
    """Without a spool the sources have not settled it; it became dead letters."""
    without = "spool: {path: spool}\n"
    with started(config("old", AWAY).replace(without, "")) as gateway:
        publish(plant, 1, 2)
        until(lambda: gateway.lanes["old"].held > 0)
        gateway.reload(configured(config("new", HERE, "old").replace(without, "")))
        publish(plant, 3)
        assert names(far, 3) == ["far/1", "far/2", "far/3"]

    assert not archive_rows("dead")


def test_a_standby_that_reloaded_sends_what_waited_when_it_takes_over(
    plant: BrokerClient, far: BrokerClient
) -> None:
    """Each instance of a pair has a spool of its own, and learns of a rename by its own reload."""
    with started(config("old", AWAY)) as gateway:
        spool(gateway, plant, 1)
    standby = Gateway(configured(config("old", AWAY)))
    standby.reload(configured(config("new", HERE, "old")))
    standby.start()
    try:
        assert names(far, 1) == ["far/1"]
    finally:
        standby.stop(PATIENCE)


def test_a_reload_refuses_two_targets_with_the_rows_of_one(plant: BrokerClient) -> None:
    """A restart knows which one had the first name, and gives it the rows."""
    both = (
        config("new", AWAY)
        .replace("archive:", f"  other: {{{AWAY}, was: old}}\narchive:")
        .replace(
            '    to: {endpoint: new, template: "far/{rest...}"}',
            "    to:\n"
            '      - {endpoint: new, template: "far/{rest...}"}\n'
            '      - {endpoint: other, template: "far/{rest...}"}',
        )
    )
    with started(config("new", AWAY, "old")) as gateway:
        spool(gateway, plant, 1)
        refused = "endpoint 'other': the running target 'new' sends the copies that the spool has"
        with pytest.raises(EndpointError, match=refused):
            gateway.reload(configured(both))
