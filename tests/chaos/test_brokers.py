"""Brokers that restart, that never answer, and that disconnect on a message."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Client
from tests.chaos.archived import check_complete, read_archive, spooled
from tests.chaos.rig import RelayConfig, load_and_witness, repetitions, running
from tests.waiting import until

pytestmark = pytest.mark.broker

CONNACK = b"\x20\x03\x00\x00\x00"  # MQTT 5.0, 3.2: no session, success, no properties
STUCK_AFTER = "stuck_after_seconds: 0.5"
SPOOLED_MESSAGES = 10_000  # for each stop of the target


@repetitions(None, 20)
@pytest.mark.parametrize("which", ["source", "target", "both"])
def test_restarts_of_a_broker_lose_no_message(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, which: str
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    brokers = {"source": [source], "target": [target], "both": [source, target]}[which]
    config = RelayConfig(tmp_path, source.port, target.port).write()
    tick = threading.Event()
    with (
        load_and_witness(source.port, target.port, 2_000) as (load, witness),
        running(config) as gateway,
    ):
        load.start()
        for _ in range(times):
            broker_to_stop = chance.choice(brokers)
            tick.wait(chance.uniform(0.1, 0.5))
            broker_to_stop.stop()
            tick.wait(chance.uniform(0, 0.5))
            broker_to_stop.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.check_order(sent)
        assert gateway.end() == 0

    check_complete(read_archive(tmp_path), sent)


@repetitions(None, 10)
def test_stops_of_a_target_while_its_spool_drains_keep_the_order(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = RelayConfig(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config) as gateway,
    ):
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(SPOOLED_MESSAGES * (times + 1))
        until(lambda: spooled(tmp_path) == load.sent)
        for _ in range(times):
            before = witness.unique
            target.start()
            witness.wait_for(before + 1_000)
            target.stop()
        assert spooled(tmp_path)  # the drain was never complete
        target.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.check_order(sent)
        assert gateway.end() == 0

    check_complete(read_archive(tmp_path), sent)


@contextmanager
def silent_listener(port: int) -> Iterator[None]:
    """Run a listener that accepts every MQTT connection and then sends nothing."""
    listener = socket.create_server(("127.0.0.1", port))
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(65_536)
            connection.sendall(CONNACK)
            while connection.recv(65_536):
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(connection)
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@pytest.mark.chaos
def test_a_target_that_never_answered_gets_all_messages_later(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    target.stop()
    config = RelayConfig(tmp_path, source.port, target.port, gateway=f", {STUCK_AFTER}").write()
    with silent_listener(target.port), running(config) as gateway, number_publisher(source) as load:
        load.publish(b"%d", range(500))
        gateway.wait_for("target: no answer for")
        load.publish(b"%d", range(500, 1_000))
        assert gateway.end() == 0  # the stop succeeds
    target.start()
    witness = Client(target.port, "dst/#")
    with running(config) as gateway:
        witness.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 1_000)
        assert gateway.end() == 0
    witness.close()

    firsts = list(dict.fromkeys(int(payload) for _, payload in witness.arrived))
    assert firsts == list(range(1_000))


class NumberPublisher:
    """A connected client that publishes formatted numbers."""

    def __init__(self, port: int) -> None:
        self._client = Client(port)

    def publish(self, form: bytes, numbers: range, topic: str = "src/a") -> None:
        """Publish the numbers and wait until they are acknowledged."""
        sent = [self._client.publish(topic, form % number) for number in numbers]
        for each in sent:
            each.wait_for_publish(30)

    def close(self) -> None:
        self._client.close()


@contextmanager
def number_publisher(source: Mosquitto) -> Iterator[NumberPublisher]:
    client = NumberPublisher(source.port)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize(
    "spool",
    [pytest.param("", id="spool", marks=pytest.mark.chaos), pytest.param(None, id="no-spool")],
)
def test_a_message_that_makes_the_broker_disconnect_becomes_a_dead_letter(
    tmp_path: Path, start_mosquitto: StartMosquitto, spool: str | None
) -> None:
    source = start_mosquitto()
    target = start_mosquitto(
        "allow_anonymous true", "max_packet_size 1000"
    )  # 3.1.1 has no way to announce it
    more = ', version: "3.1.1"'
    config = RelayConfig(tmp_path, source.port, target.port, target_settings=more, spool=spool)
    witness = Client(target.port, "dst/#")
    with running(config.write()) as gateway, number_publisher(source) as load:
        load.publish(b"%d", range(200))
        load.publish(b"%02000d", range(200, 202))
        load.publish(b"%d", range(202, 400))
        witness.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 398)
        gateway.wait_for("first dead letter", rule="poisoned")
        load.publish(b"%d", range(400, 500))
        witness.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 498)
        assert gateway.end() == 0
    witness.close()

    firsts = list(dict.fromkeys(int(payload) for _, payload in witness.arrived))
    assert firsts == [*range(200), *range(202, 500)]
