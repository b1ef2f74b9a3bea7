"""A running gateway delivers each message of its routes once and in order."""

from __future__ import annotations

import pytest

from gateway.endpoints.settings.memory import MemorySettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import Headers, Message, Payload
from gateway.model.outcome import ACCEPTED
from tests.runtime.gateway.running import PLANT_AND_EMS, BrokerClient, archive_rows, running
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")

ORDERS = (
    PLANT_AND_EMS
    + """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{region}/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{region}.{rest...}"}
"""
)


def test_a_message_is_delivered_with_the_name_of_the_template(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(ORDERS):
        plant.publish(Message("orders/emea/fx/1", b"buy"))
        (delivered,) = ems.receive(1)

    assert (delivered.address, delivered.payload) == ("ORDERS.emea.fx.1", b"buy")


def test_messages_are_delivered_completely_and_in_order(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    payloads = [b"%d" % number for number in range(5_000)]

    with running(ORDERS):
        for start in range(0, 5_000, 500):
            plant.publish(*(Message("orders/emea/x", each) for each in payloads[start:][:500]))
        delivered = ems.receive(5_000)

    assert [message.payload for message in delivered] == payloads
    assert len(archive_rows("received")) == 5_000
    assert len(archive_rows("delivered")) == 5_000


def test_every_kind_of_payload_is_delivered(plant: BrokerClient, ems: BrokerClient) -> None:
    payloads: list[Payload] = [b"bytes", b"", "text", {"price": 1.5, "side": "buy"}]

    with running(ORDERS):
        plant.publish(*(Message("orders/emea/x", payload) for payload in payloads))
        delivered = ems.receive(4)

    assert [message.payload for message in delivered] == payloads


def test_a_message_without_a_route_is_settled_and_not_archived(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    without_a_route, with_a_route = Message("other/x", b"1"), Message("orders/a/b", b"2")

    with running(ORDERS) as gateway:
        assert plant.publish(without_a_route, with_a_route) == [ACCEPTED, ACCEPTED]
        (delivered,) = ems.receive(1)
        until(lambda: gateway.pumps["plant"].settled)

    assert delivered.payload == b"2"
    assert {row["name"] for row in archive_rows()} == {"orders/a/b", "ORDERS.a.b"}


def test_a_route_in_both_directions_makes_no_loop(plant: BrokerClient, ems: BrokerClient) -> None:
    routes = """\
routes:
  orders:
    direction: both
    from: {endpoint: plant, pattern: "orders/{region}/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{region}.{rest...}"}
"""
    with running(PLANT_AND_EMS + routes) as gateway:
        plant.publish(Message("orders/emea/a", b"there"))
        ems.publish(Message("ORDERS.emea.b", b"back"))
        until(lambda: sum(counters.loops for counters in gateway.counters.values()) == 2)

    at_plant = sorted(message.address for message in plant.receive_available())
    at_ems = sorted(message.address for message in ems.receive_available())
    assert at_plant == ["orders/emea/a", "orders/emea/b"]
    assert at_ems == ["ORDERS.emea.a", "ORDERS.emea.b"]


def test_header_fields_that_the_target_cannot_carry_are_counted(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    configuration = """\
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  ems: {kind: memory, dialect: ems, broker: ems, headers: false}
routes:
  orders: {from: {endpoint: plant, pattern: "orders/#"}, to: {endpoint: ems}}
"""
    headers = Headers(properties={"urgency": "high"}, priority=7)

    with running(configuration) as gateway:
        plant.publish(*(Message("orders/a", b"%d" % number, headers) for number in range(20)))
        delivered = ems.receive(20)

    assert not any(message.headers.properties for message in delivered)
    assert {message.headers.priority for message in delivered} == {Headers().priority}
    assert gateway.counters["orders"].received == 20
    assert gateway.counters["orders"].lost_fields == {"properties": 20, "priority": 20}


def test_a_memory_endpoint_without_headers_carries_the_fields_of_mqtt_3_1_1() -> None:
    assert MemorySettings(headers=False).carries == MqttSettings(version="3.1.1").carries
