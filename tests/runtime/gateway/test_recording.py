"""The archive of a running gateway: rows of deliveries, dead letters and taps."""

from __future__ import annotations

import pytest

from gateway.model.message import Message
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


def test_a_received_and_a_delivered_row_record_the_message(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(ORDERS):
        plant.publish(Message("orders/emea/fx/1", b"buy"))
        ems.receive(1)

    assert len(archive_rows()) == 2
    (received,) = archive_rows("received")
    (delivered,) = archive_rows("delivered")
    assert received["name"] == "orders/emea/fx/1"
    assert delivered["name"] == "ORDERS.emea.fx.1"
    assert delivered["id"] == received["id"]
    assert delivered["hash"] == received["hash"]


def test_every_match_of_a_message_has_rows_with_its_route_and_target(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    routes = """\
routes:
  fx:
    from: {endpoint: plant, pattern: "fx/#"}
    to: {endpoint: ems, template: "FX.{1...}"}
  all:
    from: {endpoint: plant, pattern: "{kind}/{number}"}
    to:
      - {endpoint: ems, template: "ALL.{kind}.{number}"}
      - {endpoint: ems, template: "TEXT.{kind}.{number}", payload: text}
  kept:
    from: {endpoint: plant, pattern: "bonds/{rest...}"}
    to: {endpoint: ems, template: "BONDS.{rest...}"}
    archive_payload: true
"""
    batch = [
        Message("fx/1", b"1"),  # two routes: fx, all
        Message("alone", b"2"),  # no route
        Message("bonds/3", b"3"),  # two routes: all, kept
        Message("fx/4", b"4"),  # two routes: fx, all
        Message("equities/5", b"5"),  # one route: all
    ]

    with running(PLANT_AND_EMS + routes) as gateway:
        plant.publish(*batch)
        ems.receive(11)
        wanted = {"fx": (2, 2), "all": (4, 8), "kept": (1, 1)}
        counters = gateway.counters
        until(lambda: {each: (c.received, c.delivered) for each, c in counters.items()} == wanted)

    received = [(row["route"], row["name"], row["payload"]) for row in archive_rows("received")]
    assert sorted(received, key=str) == [
        ("all", "bonds/3", None),
        ("all", "equities/5", None),
        ("all", "fx/1", None),
        ("all", "fx/4", None),
        ("fx", "fx/1", None),
        ("fx", "fx/4", None),
        ("kept", "bonds/3", b"3"),
    ]
    delivered = [
        (row["route"], row["target"], row["source_name"], row["name"], row["outcome"])
        for row in archive_rows("delivered")
    ]
    assert sorted(delivered, key=str) == [
        ("all", "ems", "bonds/3", "ALL.bonds.3", "accepted"),
        ("all", "ems", "equities/5", "ALL.equities.5", "accepted"),
        ("all", "ems", "fx/1", "ALL.fx.1", "accepted"),
        ("all", "ems", "fx/4", "ALL.fx.4", "accepted"),
        ("all", "ems:2", "bonds/3", "TEXT.bonds.3", "converted"),
        ("all", "ems:2", "equities/5", "TEXT.equities.5", "converted"),
        ("all", "ems:2", "fx/1", "TEXT.fx.1", "converted"),
        ("all", "ems:2", "fx/4", "TEXT.fx.4", "converted"),
        ("fx", "ems", "fx/1", "FX.1", "accepted"),
        ("fx", "ems", "fx/4", "FX.4", "accepted"),
        ("kept", "ems", "bonds/3", "BONDS.3", "accepted"),
    ]
    assert len(archive_rows()) == len(received) + len(delivered)
    assert len({row["id"] for row in archive_rows()}) == 4


def test_a_name_that_the_target_refuses_makes_one_dead_letter(
    plant: BrokerClient, ems: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    too_long = "orders/emea/" + "x" * 300

    with running(ORDERS) as gateway:
        plant.publish(
            Message("orders/emea/a", b"1"), Message(too_long, b"2"), Message("orders/b/c", b"3")
        )
        delivered = ems.receive(2)
        until(lambda: gateway.counters["orders"].dead == 1)

    assert [message.payload for message in delivered] == [b"1", b"3"]
    assert "first dead letter, kept in the archive" in caplog.text
    (dead,) = archive_rows("dead")
    assert (dead["name"], dead["payload"], dead["outcome"]) == (too_long, b"2", "rejected")
    assert dead["rule"]
    assert "limit" in str(dead["reason"])


def test_a_copy_of_a_dead_letter_is_published_with_its_route_name_and_rule(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    sections = """spool: {path: spool}
dead_letters: {endpoint: ems, name: GATEWAY.DEAD}
"""
    too_many_levels = "orders/emea/" + "/".join(["x"] * 80)

    with running(ORDERS + sections) as gateway:
        until(lambda: gateway.lanes["ems"].direct)
        plant.publish(Message(too_many_levels, b"buy"))
        (copy,) = ems.receive(1)

    assert (copy.address, copy.payload) == ("GATEWAY.DEAD", b"buy")
    assert copy.headers.properties["dead_route"] == "orders"
    assert copy.headers.properties["dead_name"] == too_many_levels
    assert copy.headers.properties["dead_rule"]


def test_the_notice_of_a_document_that_is_not_picked_has_no_payload(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    picked = """routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}", payload: {pick: [id]}}
spool: {path: spool}
dead_letters: {endpoint: ems, name: GATEWAY.DEAD}
"""

    with running(PLANT_AND_EMS + picked) as gateway:
        until(lambda: gateway.lanes["ems"].direct)
        plant.publish(Message("orders/1", b'{"id": 1, "card": "4711", "id": 2}'))
        (notice,) = ems.receive(1)

    assert (notice.address, notice.payload) == ("GATEWAY.DEAD", b"")
    assert notice.headers.properties["dead_payload"] == (
        "withheld: the target may get picked fields only"
    )


def test_a_tap_records_what_arrives_at_the_target(plant: BrokerClient, ems: BrokerClient) -> None:
    routes = """routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}", observe: "ORDERS.>"}
"""
    with running(PLANT_AND_EMS + routes) as gateway:
        plant.publish(Message("orders/emea/fx/1", b"buy"))
        ems.receive(1)
        (tap,) = gateway.taps.values()
        until(lambda: tap.state.messages == 1)

    assert len(archive_rows()) == 3
    (received,) = archive_rows("received")
    (delivered,) = archive_rows("delivered")
    (observed,) = archive_rows("observed")
    assert (observed["route"], observed["target"]) == ("orders", "ems")
    assert observed["name"] == "ORDERS.emea.fx.1"
    assert isinstance(message_id := received["id"], bytes)
    assert observed["origin_id"] == message_id.hex()
    assert observed["hash"] == delivered["hash"]
