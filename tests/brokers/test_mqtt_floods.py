"""Floods of retained messages and of wills at a source: bounded memory, and honest ones arrive."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.endpoints.registry import make_sink
from gateway.model.message import DeliveryMode, Headers, Message
from tests.brokers.mosquitto import StartMosquitto
from tests.chaos.rig import (
    MemorySampler,
    RelayConfig,
    broker,
    load_and_witness,
    repetitions,
    running,
)
from tests.endpoints.exchange import Answer
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.broker

FLOOD = 1_000_000  # the first number of a flood; the load has smaller ones
RETAINED = Headers(DeliveryMode.AT_LEAST_ONCE, retained=True)
LEVEL = "x" * 1_000
MEGABYTES = 256  # of the sidecar in docs/security.md
HONEST = 2_000


def retain(port: int, count: int) -> None:
    """Publish `count` retained messages with long names."""
    sink = make_sink(broker(port), instance="flood")
    sink.open()
    for first in range(0, count, 500):
        numbers = range(first, min(first + 500, count))
        messages = [
            Message(f"src/{LEVEL}/{number}", b"%d" % (FLOOD + number), RETAINED)
            for number in numbers
        ]
        answer = Answer()
        sink.send(messages, answer)
        answer.wait()
    sink.close()


def with_will(port: int, number: int) -> socket.socket:
    """Connect a client of 3.1.1 that never says goodbye: the broker publishes its retained will."""

    def text(content: bytes) -> bytes:
        return len(content).to_bytes(2, "big") + content

    topic, payload = b"src/will/%d" % number, b"%d" % (FLOOD + number)
    body = text(b"MQTT") + b"\x04\x2e\0\0" + text(b"c%d" % number) + text(topic) + text(payload)
    client = socket.create_connection(("127.0.0.1", port), PATIENCE)
    client.sendall(bytes([0x10, len(body)]) + body)
    assert client.recv(4, socket.MSG_WAITALL) == b"\x20\x02\0\0"
    return client


@repetitions(3_000, 100_000)
@pytest.mark.parametrize("version", ["5", pytest.param("3.1.1", marks=pytest.mark.nightly)])
def test_a_flood_of_retained_messages_loses_nothing_in_bounded_memory(
    tmp_path: Path, start_mosquitto: StartMosquitto, version: str, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    retain(source.port, times)
    config = RelayConfig(
        tmp_path, source.port, target.port, source_settings=f", version: '{version}'"
    ).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config) as gateway,
    ):
        memory = MemorySampler(gateway.process.pid)
        load.publish(HONEST)
        witness.wait_for(HONEST + times)
        source.stop()
        source.start()
        load.publish(2 * HONEST)
        witness.wait_for(2 * HONEST + times)
        memory.stop()

    assert max(memory.samples) < MEGABYTES
    honest = [numbers for numbers in witness.numbers.values() if numbers[0] < FLOOD]
    assert all([*dict.fromkeys(numbers)] == sorted({*numbers}) for numbers in honest)
    assert sum(len({*numbers}) for numbers in honest) == 2 * HONEST


@repetitions(200, 900)
def test_a_flood_of_wills_arrives_beside_honest_messages(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config) as gateway,
        ExitStack() as dying,
    ):
        for number in range(times):
            dying.callback(with_will(source.port, number).close)
        load.publish(HONEST)
        dying.close()
        until(lambda: sum(topic.startswith("dst/will/") for topic in witness.numbers) == times)
        load.publish(2 * HONEST)
        witness.wait_for(2 * HONEST + times)
        assert gateway.end() == 0

    wills = {topic: numbers for topic, numbers in witness.numbers.items() if "will" in topic}
    assert wills == {f"dst/will/{number}": [FLOOD + number] for number in range(times)}
