"""The rules of a route in a running gateway: tags, selector, payload and headers."""

from __future__ import annotations

from gateway.model.message import Headers, Message
from tests.runtime.gateway.running import BrokerClient, archive_rows, running
from tests.waiting import until

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
