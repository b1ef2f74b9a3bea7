"""A running gateway recognises a message that its source delivers again."""

from __future__ import annotations

from pathlib import Path

from gateway.model.message import GATEWAY_ID, Headers, Message
from tests.runtime.gateway.running import PLANT_AND_EMS, BrokerClient, archive_rows, running
from tests.waiting import until

ORDER = Message("orders/emea/1", b"buy", Headers(source_id="ID:1"))
SAME_ID_OTHER_NAME = Message("orders/emea/2", b"buy", Headers(source_id="ID:1"))
LAST = Message("orders/emea/1", b"last", Headers(source_id="ID:2"))


def routes(duplicates: str, options: str = "") -> str:
    return f"""\
routes:
  orders:
    duplicates: {duplicates}
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: ems, template: "ORDERS.{{rest...}}"{options}}}
"""


def test_a_duplicate_is_dropped(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(PLANT_AND_EMS + routes(duplicates="drop")) as gateway:
        plant.publish(ORDER, SAME_ID_OTHER_NAME, ORDER)
        plant.publish(ORDER)
        plant.publish(LAST)
        delivered = ems.receive(3)

    names = [message.address for message in delivered]
    assert names == ["ORDERS.emea.1", "ORDERS.emea.2", "ORDERS.emea.1"]
    assert delivered[-1].payload == b"last"
    assert not any(message.headers.redelivered for message in delivered)
    assert gateway.counters["orders"].duplicates == 2


def test_a_duplicate_is_passed_and_marked_as_redelivered(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(PLANT_AND_EMS + routes(duplicates="pass")) as gateway:
        plant.publish(ORDER, SAME_ID_OTHER_NAME, ORDER)
        plant.publish(ORDER)
        plant.publish(LAST)
        delivered = ems.receive(5)

    assert delivered[-1].payload == b"last"
    redelivered = [message.headers.redelivered for message in delivered]
    assert redelivered == [False, False, True, True, False]
    assert gateway.counters["orders"].duplicates == 2


def test_a_message_delivered_before_a_crash_is_not_delivered_again(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    configuration = PLANT_AND_EMS + routes(duplicates="drop")

    with running(configuration) as gateway:
        plant.publish(ORDER)
        ems.receive(1)
        until(lambda: gateway.pumps["plant"].settled)
        (journal,) = Path("archive/.journal").glob("*.open")
        content_at_crash = journal.read_bytes()
    journal.write_bytes(content_at_crash)  # a killed gateway leaves its journal open
    with running(configuration) as restarted:
        plant.publish(ORDER, LAST)
        (delivered,) = ems.receive(1)

    assert delivered.payload == b"last"
    assert restarted.counters["orders"].duplicates == 1


def test_the_id_of_a_copy_is_the_same_at_each_delivery_of_its_message(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    """A receiver drops a double by it, also when a later run of the gateway sends it."""
    configuration = PLANT_AND_EMS + routes(duplicates="drop", options=", add_message_id: true")
    ids: list[object] = []
    for _ in range(2):  # a clean stop: the second run does not know the first one's messages
        with running(configuration):
            plant.publish(ORDER, SAME_ID_OTHER_NAME, LAST, Message("orders/emea/1", b"no identity"))
            ids += [each.headers.properties[GATEWAY_ID] for each in ems.receive(4)]

    first, second = ids[:4], ids[4:]
    assert first[:3] == second[:3]
    assert len({*first, *second}) == 5
    assert all(str(each).startswith("s-") for each in first[:3])
    assert first[3] != second[3]


def test_a_dropped_duplicate_has_a_row(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(PLANT_AND_EMS + routes(duplicates="drop")) as gateway:
        plant.publish(ORDER, ORDER, LAST)
        ems.receive(2)
        until(lambda: gateway.pumps["plant"].settled)

    (cut,) = archive_rows("cut")
    assert (cut["route"], cut["rule"], cut["name"]) == ("orders", "duplicate", ORDER.address)
