"""Duplicates with an identity, in one run and after a kill."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.archive.journal.records import Damage, read_records
from gateway.archive.layout import journals
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import GATEWAY_ID, DeliveryMode, Headers, Message
from tests.archived import archived
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.archived import spooled
from tests.chaos.rig import RelayConfig, load_and_witness, running
from tests.endpoints.exchange import opened, send
from tests.waiting import until

pytestmark = pytest.mark.broker


def identified(number: int, run: str) -> list[Message]:
    """Two messages: one with a gateway id, one with a source id."""
    mode = DeliveryMode.AT_LEAST_ONCE
    by_gateway = Headers(mode=mode, properties={GATEWAY_ID: f"{run}{number:08x}"})
    by_source = Headers(mode=mode, source_id=f"ID:{run}-{number}")
    return [
        Message("src/gateway", b"%d " % (2 * number), by_gateway),
        Message("src/source", b"%d " % (2 * number + 1), by_source),
    ]


@pytest.mark.parametrize("between", [pytest.param("nothing", marks=pytest.mark.chaos), "a kill"])
@pytest.mark.parametrize("duplicates", ["drop", pytest.param("pass", marks=pytest.mark.chaos)])
def test_a_message_repeated_with_its_identity_is_recognised(
    tmp_path: Path, start_mosquitto: StartMosquitto, duplicates: str, between: str
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    route = f"    duplicates: {duplicates}\n"
    config = RelayConfig(tmp_path, source.port, target.port, route=route).write()
    run = uuid4().hex[:8]
    messages = [message for number in range(50) for message in identified(number, run)]
    again = [Message(each.address, each.payload, each.headers) for each in messages]
    last = Message("src/last", b"100 ", Headers(mode=DeliveryMode.AT_LEAST_ONCE))
    into = make_sink(MqttSettings(host="127.0.0.1", port=source.port), instance="twice")
    with load_and_witness(source.port, target.port) as (_, witness), opened(into):
        with running(config) as gateway:
            send(into, *messages)
            witness.wait_for(100)
            until(lambda: recorded(tmp_path) == 100)  # else the source delivers them again
            if between == "nothing":
                send(into, *again)
                send(into, last)
                witness.wait_for(101)
            until(lambda: not spooled(tmp_path))  # a spooled copy would be sent again
            gateway.end(signal.SIGKILL)
        with running(config) as gateway:
            if between != "nothing":
                send(into, *again)
                send(into, last)
            witness.wait_for(101)
            assert gateway.end() == 0

    times = Counter(number for numbers in witness.numbers.values() for number in numbers)
    assert times.keys() == set(range(101))
    assert all((times[number] == 1) == (duplicates == "drop") for number in range(100))
    marked = Counter(
        row["origin_id"]
        for row in archived(tmp_path)
        if row["leg"] == "received" and row["origin_id"] and row["redelivered"]
    )
    assert len(marked) == (100 if duplicates == "pass" else 0)


def recorded(folder: Path) -> int:
    """The number of delivered messages in the open journal."""
    return sum(
        rows.count
        for path in journals(folder / "archive")
        for record in read_records(path.read_bytes())
        if not isinstance(record, Damage)
        for rows in record
        if rows.common["leg"] == "delivered"
    )
