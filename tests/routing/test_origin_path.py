"""The origin path: marks of brokers, entries of gateways, and names without their spelling."""

from __future__ import annotations

import pytest

from gateway.dialects.registry import find_dialect
from gateway.routing.origin_path import BrokerName, GatewayIdentity, wire_name

MQTT = find_dialect("mqtt")
ONE, OTHER = GatewayIdentity("site", "1" * 32), GatewayIdentity("site", "2" * 32)
LOCAL = BrokerName(address="mqtt://localhost:1883")
NAMED = BrokerName("hub", "mqtt://localhost:1883")


@pytest.mark.parametrize(
    ("broker", "same"),
    [
        pytest.param(LOCAL, False, id="an-address-alone-is-no-broker"),
        pytest.param(NAMED, True, id="a-broker-id-is-one-everywhere"),
    ],
)
def test_a_mark_of_two_gateways(broker: BrokerName, *, same: bool) -> None:
    assert (ONE.mark(broker, "a", MQTT) == OTHER.mark(broker, "a", MQTT)) is same
    assert ONE.mark(broker, "a", MQTT) != ONE.mark(broker, "b", MQTT)


def test_a_broker_id_is_one_broker_under_two_addresses() -> None:
    elsewhere = BrokerName("hub", "mqtt://10.0.0.1:1883")

    assert ONE.mark(NAMED, "a", MQTT) == OTHER.mark(elsewhere, "a", MQTT)


def test_two_gateways_of_one_name_are_two() -> None:
    assert ONE.entry("r") != OTHER.entry("r")


def test_a_path_shows_an_address_that_another_gateway_reads() -> None:
    path = (
        ONE.mark(LOCAL, "a", MQTT),
        ONE.entry("r"),
        OTHER.mark(NAMED, "b", MQTT),
        OTHER.entry("r"),
    )

    assert OTHER.addresses_elsewhere(path) == {LOCAL.address_hash}
    assert ONE.addresses_elsewhere(path) == set()


SAME_NAME = [
    pytest.param(("mqtt", "plant/v1"), ("rabbitmq", "plant.v1"), id="mqtt-and-amqp"),
    pytest.param(("mqtt", "plant/v1"), ("ems", "plant.v1"), id="mqtt-and-jms"),
    pytest.param(("yami4", "a.b,c"), ("yami4", "a.b,c"), id="tag-list"),
]


@pytest.mark.parametrize(("one", "other"), SAME_NAME)
def test_one_name_in_two_systems(one: tuple[str, str], other: tuple[str, str]) -> None:
    names = [wire_name(text, find_dialect(system)) for system, text in (one, other)]

    assert names[0] == names[1]


def test_a_queue_and_a_topic_are_two_places_with_one_name() -> None:
    dialect = find_dialect("ems").with_kinds(("queue:", "topic:"))

    assert wire_name("queue:a.b", dialect) == wire_name("a.b", dialect)
    assert ONE.mark(NAMED, "queue:a.b", dialect) != ONE.mark(NAMED, "a.b", dialect)


def test_topics_of_two_exchanges_are_two_places_and_a_queue_is_one() -> None:
    dialect = find_dialect("rabbitmq").with_kinds(("queue:",))
    orders, audit = (BrokerName("rabbit", space=each) for each in ("orders", "audit"))

    assert ONE.mark(orders, "a.b", dialect) != ONE.mark(audit, "a.b", dialect)
    assert ONE.mark(orders, "queue:a", dialect) == ONE.mark(audit, "queue:a", dialect)


def test_a_name_that_its_system_forbids_has_a_wire_name() -> None:
    assert wire_name("a..b", find_dialect("ems")) == "a..b"
