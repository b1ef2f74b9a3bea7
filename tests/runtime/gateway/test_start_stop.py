"""Start, stop and restart of a gateway, and its recovery from a failed connection."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from gateway.endpoints.base import Batch, Source
from gateway.endpoints.registry import make_source
from gateway.errors import SpoolError, WireError
from gateway.model.message import Message
from gateway.runtime import wiring
from gateway.runtime.gateway import Gateway
from tests.runtime.gateway.running import (
    PLANT_AND_EMS,
    BrokerClient,
    archive_rows,
    configured,
    running,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

DEAF = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: mqtt, host: 127.0.0.1, port: {port}, connect_timeout: 600}}
  ems: {{kind: memory, dialect: ems}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: ems, template: "ORDERS.{{rest...}}"}}
"""
ORDERS = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}"}
"""


def test_a_stop_settles_the_batches_in_flight(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(PLANT_AND_EMS + ORDERS) as gateway:
        plant.publish(*(Message("orders/emea/x", b"%d" % number) for number in range(1_000)))
        until(lambda: gateway.counters["orders"].received > 0)
        settled = gateway.stop(PATIENCE)

    assert settled
    delivered = ems.receive_available()
    assert len(delivered) > 0
    assert len(archive_rows("received")) == len(archive_rows("delivered")) == len(delivered)


def test_messages_published_while_the_gateway_is_stopped_are_delivered_after_its_start(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + ORDERS):
        pass  # the durable subscription of the gateway stays at the broker
    plant.publish(Message("orders/emea/1", b"while stopped"))

    with running(PLANT_AND_EMS + ORDERS):
        (delivered,) = ems.receive(1)

    assert delivered.payload == b"while stopped"


@pytest.mark.usefixtures("ems")
def test_a_shortened_name_is_translated_back_after_a_restart(plant: BrokerClient) -> None:
    routes = """\
routes:
  there:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}", on_too_long: shorten}
  back:
    from: {endpoint: ems, pattern: "ORDERS.{rest...}"}
    to: {endpoint: plant, template: "back/{rest...}"}
"""
    levels = "/".join(f"a-long-level-of-a-name-{number}" for number in range(14))
    there, back = f"orders/emea/{levels}", f"back/emea/{levels}"

    for _ in ("first run", "after a restart"):
        with running(PLANT_AND_EMS + routes):
            plant.publish(Message(there, b"x"))
            assert [message.address for message in plant.receive(2)] == [there, back]

    names = Path("archive/_names/test.jsonl").read_text()
    assert names.count("digest") == 1


class FailsOnce:
    """A source whose first `receive` finds that the broker broke its protocol."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.failures = 0
        self.open, self.close = source.open, source.close

    def receive(self, timeout: float) -> Batch | None:
        if not self.failures:
            self.failures += 1
            raise WireError("the broker broke its protocol")
        return self._source.receive(timeout)


def test_a_source_that_fails_is_connected_again(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = """\
gateway: {name: test}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant, backoff_max: 0.02}
  ems: {kind: memory, dialect: ems, broker: ems}
archive: {path: archive}
"""
    monkeypatch.setattr(wiring, "make_source", lambda *given: FailsOnce(make_source(*given)))

    with running(configuration + ORDERS) as gateway:
        plant.publish(Message("orders/emea/a", b"x"))
        (delivered,) = ems.receive(1)
        source = gateway.pumps["plant"].source
        settled = gateway.stop(PATIENCE)

    assert isinstance(source, FailsOnce)
    assert source.failures == 1
    assert delivered.payload == b"x"
    assert settled


@pytest.mark.usefixtures("ems", "plant")
def test_a_second_gateway_on_a_spool_touches_nothing() -> None:
    first = PLANT_AND_EMS + ORDERS + "spool: {path: spool}\n"
    second = first.replace("name: test", "name: two").replace("path: archive", "path: two")
    with running(first):
        before = spool_files()

        with pytest.raises(SpoolError, match="another gateway uses it; stop that one, or give"):
            Gateway(configured(second)).start()

        assert spool_files() == before
        assert not Path("two").exists()


def spool_files() -> dict[str, int]:
    """Return the time of the last change of each file, in nanoseconds."""
    return {each.name: each.stat().st_mtime_ns for each in Path("spool").iterdir()}


def test_a_stop_does_not_wait_for_a_broker_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        gateway = Gateway(configured(DEAF.format(port=deaf.getsockname()[1])))
        gateway.start()
        source, _ = deaf.accept()
        assert gateway.stop(PATIENCE)
        source.close()
