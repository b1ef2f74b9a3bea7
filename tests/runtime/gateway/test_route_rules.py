"""The rules of a route in a running gateway: tags, selector, payload and headers."""

from __future__ import annotations

import pytest

from gateway.model.message import Headers, Message
from gateway.runtime.status import take_status
from tests.runtime.gateway.running import BrokerClient, archive_rows, running
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")


SENSORS_AND_PLANT = """\
gateway: {name: test}
endpoints:
  sensors: {kind: memory, dialect: yami4, broker: sensors}
  plant: {kind: memory, dialect: mqtt, broker: plant}
archive: {path: archive}
"""


def test_each_distinct_tag_becomes_one_copy(sensors: BrokerClient, plant: BrokerClient) -> None:
    routes = """\
routes:
  tags:
    from: {endpoint: sensors, pattern: "temperature.{room}"}
    to: {endpoint: plant, template: "rooms/{room}"}
"""
    with running(SENSORS_AND_PLANT + routes) as gateway:
        sensors.publish(Message("temperature.a,pressure,temperature.b,temperature.a", b"21"))
        until(lambda: gateway.counters["tags"].delivered == 2)

    copies = plant.receive_available()
    assert sorted(message.address for message in copies) == ["rooms/a", "rooms/b"]
    (received,) = archive_rows("received")
    assert received["targets"] == ["plant", "plant#2"]
    delivered = archive_rows("delivered")
    assert sorted(str(row["target"]) for row in delivered) == ["plant", "plant#2"]


def test_the_preferred_tag_is_selected_and_the_others_become_a_property(
    sensors: BrokerClient, plant: BrokerClient
) -> None:
    routes = """\
routes:
  tags:
    from:
      endpoint: sensors
      pattern: "{kind}.{room}"
      tags: {mode: first, prefer: ["pressure.*"], unused_tags_property: tags}
    to: {endpoint: plant, template: "rooms/{room}/{kind}"}
"""
    with running(SENSORS_AND_PLANT + routes) as gateway:
        sensors.publish(Message("temperature.a,pressure.a", b"21"))
        until(lambda: gateway.counters["tags"].delivered == 1)

    (delivered,) = plant.receive_available()
    assert delivered.address == "rooms/a/pressure"
    assert delivered.headers.properties == {"tags": "temperature.a"}


def test_selector_header_and_payload_rules_apply_to_one_route(
    sensors: BrokerClient, plant: BrokerClient
) -> None:
    routes = """\
routes:
  rules:
    from: {endpoint: sensors, pattern: "{room}", selector: "urgency IN ('high', 'medium')"}
    to:
      endpoint: plant
      template: "rooms/{room|upper}"
      payload: map
      headers: {drop: [urgency], set: {room: "{room}", priority: 7}}
"""
    high = Headers(properties={"urgency": "high"})
    low = Headers(properties={"urgency": "low"})

    with running(SENSORS_AND_PLANT + routes) as gateway:
        sensors.publish(
            Message("a", b'{"t": 21}', high),
            Message("b", b'{"t": 22}', low),  # not selected
            Message("c", b"no JSON", high),  # no map
        )
        until(lambda: gateway.counters["rules"].delivered == 1)

    (delivered,) = plant.receive_available()
    assert (delivered.address, delivered.payload) == ("rooms/A", {"t": 21})
    assert delivered.headers.properties == {"room": "a"}
    assert delivered.headers.priority == 7
    assert gateway.counters["rules"].unselected == 1
    assert gateway.counters["rules"].rules == {"payload": 1}


def test_a_name_that_the_limits_of_its_target_forbid_becomes_a_dead_letter_of_that_rule(
    sensors: BrokerClient, plant: BrokerClient
) -> None:
    limited = SENSORS_AND_PLANT.replace(
        "broker: plant}",
        "broker: plant, limits: {broker: aws-iot, forbidden_characters: '!',"
        " forbidden_patterns: ['rooms/secret/#']}}",
    )
    routes = """\
routes:
  all:
    from: {endpoint: sensors, pattern: "{name}"}
    to: {endpoint: plant, template: "rooms/{name}"}
"""
    with running(limited + routes) as gateway:
        for tag in ("a", "a!", "secret", "x" * 251, "b"):
            sensors.publish(Message(tag, b"x"))
        until(lambda: gateway.counters["all"].delivered == 2)

    assert [message.address for message in plant.receive_available()] == ["rooms/a", "rooms/b"]
    assert {(str(row["source_name"]), str(row["rule"])) for row in archive_rows("dead")} == {
        ("a!", "forbidden-character"), ("secret", "forbidden-pattern"), ("x" * 251, "too-long"),
    }  # fmt: skip


def test_messages_that_no_route_takes_are_counted_at_their_source(
    sensors: BrokerClient, plant: BrokerClient
) -> None:
    routes = """\
routes:
  some: {from: {endpoint: plant, pattern: "a/{x}", exclude: [a/no]}, to: {endpoint: sensors}}
"""
    with running(SENSORS_AND_PLANT + routes) as gateway:
        assert [each.counts for each in take_status(gateway).endpoints] == [{}, {}]
        plant.publish(*(Message(name, b"") for name in ("a/no", "a/1", "a/no")))
        until(lambda: gateway.counters["some"].delivered == 1)
        until(lambda: gateway.pumps["plant"].settled)
        counts = {each.name: each.counts for each in take_status(gateway).endpoints}

    assert counts == {"plant": {"no_route": 2}, "sensors": {}}
    assert len(sensors.receive_available()) == 1
