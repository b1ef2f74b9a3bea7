"""The threads that lead an MQTT connection, against a broker scripted by the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gateway.endpoints.leader_followers import Leadership
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.read_rate import (
    GATHER_PACKETS,
    GATHER_PAUSE,
    HEAVY_RATE,
    MEASURE_INTERVAL,
    ReadRate,
)
from gateway.endpoints.sockets import NonBlockingSocket
from gateway.errors import GatewayError, NotConnectedError
from gateway.wire.mqtt.packets import DecodedPackets
from tests.endpoints.mqtt.peer import WELCOME, Peer, peer
from tests.waiting import PATIENCE, until

__all__ = ["peer"]  # a fixture
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
PUBACK = b"\x40\x02\x00\x01"
TURNS = 200  # they take seconds if each waits a quarter of a second


class Quiet:
    """An owner that ignores packets; it counts turns and records the reading threads. Mutable."""

    def __init__(self) -> None:
        self.turns = 0
        self.readers: list[threading.Thread] = []
        self.is_lost = threading.Event()

    def packets_received(self, packets: DecodedPackets) -> None:
        del packets
        self.readers.append(threading.current_thread())

    def wants_more(self) -> bool:
        self.turns += 1
        return True

    def tick(self, now: float) -> GatewayError | None:
        del now
        return None

    def connection_lost(self, failure: GatewayError) -> None:
        del failure
        self.is_lost.set()


class Opening:
    """A connection as an endpoint that a `Peer` can open."""

    def __init__(self, connection: MqttConnection) -> None:
        self._connection = connection

    def open(self) -> None:
        self._connection.open(lambda _session_present: ())


@contextmanager
def led(connection: MqttConnection, *followed: MqttConnection) -> Iterator[threading.Thread]:
    """A thread that only leads `connection`, as if it had just sent over the `followed` ones."""
    done = threading.Event()

    def lead() -> None:
        while not done.is_set() and connection.failure is None:
            connection.lead(1.0)
            for each in followed:
                each.follow()

    thread = threading.Thread(target=lead)
    thread.start()
    try:
        yield thread
    finally:
        done.set()
        connection.wake()
        thread.join(PATIENCE)


def test_a_connection_that_is_woken_before_it_waits_does_not_wait(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(leadership: Leadership, mask: int, timeout: float, *, pause: float = 0.0) -> int:
        leadership.wake()
        return waits(leadership, mask, timeout, pause=pause)

    waits = Leadership.wait
    monkeypatch.setattr(Leadership, "wait", wait)
    owner = Quiet()
    connection = MqttConnection(peer.settings, "c", clean=True, owner=owner)
    future = peer.opening(Opening(connection))
    peer.write(WELCOME)
    future.result(PATIENCE)

    until(lambda: owner.turns > TURNS)

    peer.hang_up()
    connection.close()


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
def test_packets_of_a_slow_connection_are_acknowledged_at_once(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, *, fast: bool
) -> None:
    """Over a fast one, what a thread sends that waits for answers acknowledges these as well."""
    acknowledged: list[NonBlockingSocket] = []

    def acknowledge(stream: NonBlockingSocket) -> None:
        acknowledged.append(stream)

    def count(rate: ReadRate, packets: int, size: int, now: float) -> None:
        del packets, size, now
        rate.fast = fast

    monkeypatch.setattr(NonBlockingSocket, "acknowledge", acknowledge)
    monkeypatch.setattr(ReadRate, "count", count)
    owner = Quiet()
    connection = MqttConnection(peer.settings, "c", clean=True, owner=owner)
    future = peer.opening(Opening(connection))
    peer.write(WELCOME)
    future.result(PATIENCE)
    connection._leadership.answer_awaited = True  # noqa: SLF001  # a thread waits that never ends
    before, reads = len(acknowledged), len(owner.readers)

    peer.write(PINGRESP)

    until(lambda: len(owner.readers) > reads)
    turns = owner.turns
    until(lambda: owner.turns > turns)
    assert (len(acknowledged) > before) is not fast
    peer.hang_up()
    connection.close()


def counted(*blocks: tuple[int, int, float]) -> ReadRate:
    """Return the rate after blocks, each of packets and bytes at a time."""
    rate = ReadRate()
    for block in blocks:
        rate.count(*block)
    return rate


@pytest.mark.parametrize(
    ("packets", "every", "fast"),
    [
        pytest.param(1, 0.001, False, id="a thousand a second"),
        pytest.param(
            2 * GATHER_PACKETS,
            GATHER_PAUSE,
            True,
            id="twice the packets of a pause",
        ),
        pytest.param(GATHER_PACKETS, 2 * GATHER_PAUSE, False, id="half of it"),
        pytest.param(1000, MEASURE_INTERVAL, True, id="in large batches"),
        pytest.param(1000, 1.0, False, id="a batch now and then"),
    ],
)
def test_only_a_fast_connection_pauses(packets: int, every: float, fast: bool) -> None:
    rate = counted(*((packets, 0, turn * every) for turn in range(1, 1001)))

    assert rate.fast is fast


@pytest.mark.parametrize("share", [0.5, 2])
def test_a_connection_is_heavy_by_its_bytes(share: float) -> None:
    size = int(HEAVY_RATE * share / 100)

    assert counted(*((1, size, turn / 100) for turn in range(1, 101))).heavy is (share > 1)


def test_a_connection_that_falls_silent_is_neither_fast_nor_heavy() -> None:
    burst = ((10_000, HEAVY_RATE, 10.0), (10_000, HEAVY_RATE, 10.0 + MEASURE_INTERVAL))
    assert counted(*burst).fast
    assert counted(*burst).heavy

    silent = counted(*burst, (1, 100, 20.0))

    assert not silent.fast
    assert not silent.heavy


@pytest.fixture
def owner() -> Quiet:
    return Quiet()


@contextmanager
def connected(peer: Peer, owner: Quiet, keepalive: int) -> Iterator[MqttConnection]:
    """An open connection with pings after three quarters of `keepalive` seconds."""
    connection = MqttConnection(
        replace(peer.settings, keepalive=keepalive), "c", clean=True, owner=owner
    )
    future = peer.opening(Opening(connection))
    peer.write(WELCOME)
    future.result(PATIENCE)
    yield connection
    peer.hang_up()
    connection.close()


@pytest.fixture
def connection(peer: Peer, owner: Quiet) -> Iterator[MqttConnection]:
    with connected(peer, owner, 1) as connection:
        yield connection


def says(peer: Peer, packets: bytes) -> bool:
    peer.write(packets)
    return True


def test_a_waiting_thread_leads_and_the_own_thread_when_none_waits(
    connection: MqttConnection, owner: Quiet, peer: Peer
) -> None:
    with led(connection) as leader:
        until(lambda: says(peer, PINGRESP) and leader in owner.readers)
    owner.readers.clear()

    until(lambda: says(peer, PINGRESP) and bool(owner.readers))

    assert leader not in owner.readers


def test_a_led_connection_sends_pings(connection: MqttConnection, peer: Peer) -> None:
    with led(connection):
        for _ in range(3):
            assert peer.read() == PINGREQ
            peer.write(PINGRESP)


def test_the_leader_writes_what_the_socket_did_not_take(
    connection: MqttConnection, peer: Peer
) -> None:
    before, piece = connection.socket.written, bytes(500_000)
    with led(connection), ThreadPoolExecutor(1) as pool:
        while not connection.socket.backlog:
            connection.write(piece)
        reading = pool.submit(
            peer.exactly, connection.socket.written + connection.socket.backlog - before
        )

        until(lambda: connection.socket.backlog == 0)

        assert reading.result(PATIENCE)


def test_nothing_is_read_after_the_end_of_a_led_connection(
    connection: MqttConnection, owner: Quiet, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    calls: list[threading.Thread] = []

    def broken(_packets: DecodedPackets) -> None:
        calls.append(threading.current_thread())
        reading.set()
        assert go_on.wait(PATIENCE)
        raise NotConnectedError("what came is no MQTT")

    with led(connection) as leader:
        until(lambda: says(peer, PINGRESP) and leader in owner.readers)
        monkeypatch.setattr(owner, "packets_received", broken)
        peer.write(PINGRESP)
        assert reading.wait(PATIENCE)
        peer.write(PINGRESP)  # would be read next
        connection.wake()
        until(lambda: not connection._leadership._own_thread_called.is_set())  # noqa: SLF001  # it waits for the leader lock
        go_on.set()
        until(lambda: connection.failure is not None)

    connection.close()
    assert len(calls) == 1


def test_only_the_own_thread_leads_a_heavy_connection(
    connection: MqttConnection, owner: Quiet, peer: Peer
) -> None:
    heavy = 100 * (b"\x30\x84\x80\x02\x00\x01t\x00" + bytes(32_768))
    with led(connection) as leader:
        until(lambda: says(peer, PINGRESP) and leader in owner.readers)

        until(lambda: says(peer, heavy) and not connection.lead(0.01))

        owner.readers.clear()
        until(lambda: says(peer, heavy) and len({*owner.readers} - {leader}) > 0)
        owner.readers.clear()
        until(lambda: says(peer, PINGRESP) and leader in owner.readers)


def test_another_thread_leads_a_fast_connection_that_is_light(
    connection: MqttConnection, owner: Quiet, peer: Peer
) -> None:
    with led(connection) as leader:
        until(lambda: says(peer, 1_000 * PUBACK) and connection._rate.fast)  # noqa: SLF001
        owner.readers.clear()
        until(lambda: says(peer, 1_000 * PUBACK) and leader in owner.readers)
