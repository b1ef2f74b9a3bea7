"""Short names of a stream of new names: durable before their messages are sent."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import Configuration
from gateway.model.message import Headers, Message
from gateway.runtime.gateway import Gateway
from gateway.web.lookup import look_up
from tests.runtime.gateway.running import (
    PLANT_AND_EMS,
    BrokerClient,
    configured,
    running,
    wait_until_connected,
)
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("journals_stay")

SHORTEN = """\
routes:
  there:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}", on_too_long: shorten}
"""
NAMES = Path("archive/_names/test.jsonl")
LONG = "/".join(f"a-long-level-of-a-name-{number}" for number in range(14))


def messages(count: int) -> list[Message]:
    return [Message(f"orders/{number}/{LONG}", b"%d" % number) for number in range(count)]


@contextmanager
def full_disk_for_larger_files(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond `size` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_the_new_names_of_a_batch_are_synced_together(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fdatasync = os.fdatasync

    def note(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink().name)
        fdatasync(file)

    monkeypatch.setattr(os, "fdatasync", note)
    with running(PLANT_AND_EMS + SHORTEN):
        plant.publish(*messages(200))
        received = ems.receive(200)

    assert len({message.address for message in received}) == 200
    assert NAMES.read_text().count("digest") == 200
    assert synced.count(NAMES.name) < 20


def test_a_full_disk_delays_messages_with_new_names_and_refuses_none(
    plant: BrokerClient, ems: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    NAMES.parent.mkdir(parents=True)
    NAMES.write_bytes(b" " * 1_000_000 + b"\n")
    with running(PLANT_AND_EMS + SHORTEN) as gateway:
        with full_disk_for_larger_files(1_000_000):
            plant.publish(*messages(3))
            until(lambda: "the source waits" in caplog.text)
            assert ems.receive_available() == []
        received = ems.receive(3)
        until(lambda: gateway.counters["there"].delivered == 3)

    assert [message.payload for message in received] == [b"0", b"1", b"2"]
    assert gateway.counters["there"].dead == 0
    assert NAMES.read_text().count("digest") == 3


def proven() -> Configuration:
    configuration = configured(PLANT_AND_EMS + SHORTEN)
    assert not [each for each in examine(configuration) if each.severity == "error"]
    return configuration


def test_names_of_proofs_and_look_ups_are_not_recorded(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    gateway = Gateway(proven())
    gateway.start()
    try:
        wait_until_connected(gateway)
        gateway.reload(proven())
        routes = gateway.configuration.routes
        found = look_up(f"orders/looked-up/{LONG}", "mqtt", "name", routes)
        plant.publish(*messages(1))
        (received,) = ems.receive(1)
    finally:
        gateway.stop(PATIENCE)

    assert "~" in str(found["routes"])
    assert NAMES.read_text().count("digest") == 1
    assert received.address.rpartition(".")[2] in NAMES.read_text()


def test_a_short_reply_address_is_durable_before_its_message_is_sent(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    request = Message("orders/1", b"x", Headers(reply_to=f"answers/{LONG}"))
    with running(PLANT_AND_EMS + SHORTEN):
        plant.publish(request)
        (received,) = ems.receive(1)
        stored = NAMES.read_text()

    assert received.headers.reply_to is not None
    assert stored.count(received.headers.reply_to.rpartition(".")[2]) == 1


def test_a_damaged_index_stops_no_source(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(PLANT_AND_EMS + SHORTEN):
        for file in NAMES.parent.glob(".test.index*"):
            file.write_bytes(b"no database" * 2_000)
        plant.publish(*messages(3))
        received = ems.receive(3)

    assert [message.payload for message in received] == [b"0", b"1", b"2"]
    assert NAMES.read_text().count("digest") == 3


def test_a_gateway_stops_while_the_disk_is_full_and_loses_nothing(
    plant: BrokerClient, ems: BrokerClient, caplog: pytest.LogCaptureFixture
) -> None:
    NAMES.parent.mkdir(parents=True)
    NAMES.write_bytes(b" " * 1_000_000 + b"\n")
    with running(PLANT_AND_EMS + SHORTEN) as gateway, full_disk_for_larger_files(1_000_000):
        plant.publish(*messages(3))
        until(lambda: "the source waits" in caplog.text)
        gateway.stop(PATIENCE)
        assert ems.receive_available() == []

    with running(PLANT_AND_EMS + SHORTEN):
        assert [message.payload for message in ems.receive(3)] == [b"0", b"1", b"2"]
