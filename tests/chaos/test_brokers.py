"""Brokers that go, that say nothing, and that cannot bear a message."""

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
from tests.chaos.books import are_whole, read_books, spooled
from tests.chaos.rig import Setting, load_and_witness, profiles, running
from tests.waiting import until

pytestmark = pytest.mark.broker

CONNACK = b"\x20\x03\x00\x00\x00"  # MQTT 5.0, 3.2: no session, success, no properties
SILENT = "answer_seconds: 0.5"
PART = 10_000  # messages in the spool for each time the target goes


@profiles(3, 20)
@pytest.mark.parametrize("which", ["source", "target", "both"])
def test_a_broker_that_is_started_again_and_again_loses_nothing(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int, which: str
) -> None:
    chance = random.Random(times)  # noqa: S311  # the same moments in every run
    source, target = start_mosquitto(), start_mosquitto()
    goers = {"source": [source], "target": [target], "both": [source, target]}[which]
    config = Setting(tmp_path, source.port, target.port).write()
    tick = threading.Event()
    with (
        load_and_witness(source.port, target.port, 2_000) as (load, witness),
        running(config) as gateway,
    ):
        load.start()
        for _ in range(times):
            goer = chance.choice(goers)
            tick.wait(chance.uniform(0.1, 0.5))
            goer.stop()
            tick.wait(chance.uniform(0, 0.5))
            goer.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.has_all_in_order(sent)
        assert gateway.end() == 0

    are_whole(read_books(tmp_path), sent)


@profiles(2, 10)
def test_a_target_that_goes_again_while_its_spool_drains_gets_all_in_order(
    tmp_path: Path, start_mosquitto: StartMosquitto, times: int
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    config = Setting(tmp_path, source.port, target.port).write()
    with (
        load_and_witness(source.port, target.port) as (load, witness),
        running(config) as gateway,
    ):
        target.stop()
        gateway.wait_for("target", level="warning")
        load.publish(PART * (times + 1))
        until(lambda: spooled(tmp_path) == load.sent)
        for _ in range(times):
            before = witness.unique
            target.start()
            witness.wait_for(before + 1_000)
            target.stop()
        assert spooled(tmp_path)  # it was never done
        target.start()
        sent = load.finish()
        witness.wait_for(sent)
        witness.has_all_in_order(sent)
        assert gateway.end() == 0

    are_whole(read_books(tmp_path), sent)


@contextmanager
def swallowing(port: int) -> Iterator[None]:
    """A listener that says yes to every log-in and nothing after it."""
    listener = socket.create_server(("127.0.0.1", port))
    held: list[socket.socket] = []

    def swallow(one: socket.socket) -> None:
        with suppress(OSError):
            one.recv(65_536)
            one.sendall(CONNACK)
            while one.recv(65_536):
                pass

    def accept() -> None:
        with suppress(OSError):
            while True:
                one, _ = listener.accept()
                held.append(one)
                threading.Thread(target=swallow, args=(one,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in held:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def test_a_target_that_accepts_and_never_answers_gets_all_when_it_is_mended(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    source, target = start_mosquitto(), start_mosquitto()
    target.stop()
    config = Setting(tmp_path, source.port, target.port, gateway=f", {SILENT}").write()
    with swallowing(target.port), running(config) as gateway, publishing(source) as load:
        load.publish(b"%d", range(500))
        gateway.wait_for("target: no answer for")
        load.publish(b"%d", range(500, 1_000))
        assert gateway.end() == 0  # it stops all the same
    target.start()
    witness = Client(target.port, "dst/#")
    with running(config) as gateway:
        witness.wait_for(lambda arrived: len({payload for _, payload in arrived}) == 1_000)
        assert gateway.end() == 0
    witness.close()

    firsts = list(dict.fromkeys(int(payload) for _, payload in witness.arrived))
    assert firsts == list(range(1_000))


class Numbered:
    """A client that publishes numbers in a form; mutable, it is connected."""

    def __init__(self, port: int) -> None:
        self._client = Client(port)

    def publish(self, form: bytes, numbers: range, topic: str = "src/a") -> None:
        """Returns when the broker has them all."""
        sent = [self._client.publish(topic, form % number) for number in numbers]
        for each in sent:
            each.wait_for_publish(30)

    def close(self) -> None:
        self._client.close()


@contextmanager
def publishing(source: Mosquitto) -> Iterator[Numbered]:
    client = Numbered(source.port)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize("spool", ["", None], ids=["spool", "no-spool"])
def test_a_message_that_makes_the_broker_hang_up_is_set_aside_and_its_neighbours_go_on(
    tmp_path: Path, start_mosquitto: StartMosquitto, spool: str | None
) -> None:
    source = start_mosquitto()
    target = start_mosquitto("allow_anonymous true", "max_packet_size 1000")  # 3.1.1 is not told
    more = ', version: "3.1.1"'
    setting = Setting(tmp_path, source.port, target.port, to_more=more, spool=spool)
    witness = Client(target.port, "dst/#")
    with running(setting.write()) as gateway, publishing(source) as load:
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
