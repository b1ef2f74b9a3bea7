"""One connection's own thread, spoken to by a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from gateway.endpoints.attention import Attention
from gateway.endpoints.mqtt.link import Link
from gateway.endpoints.mqtt.pace import GATHER, HEAVY, MANY, WHILE, Pace
from gateway.endpoints.mqtt.packets import Arrived
from gateway.endpoints.mqtt.sockets import Stream
from gateway.errors import GatewayError, NotConnectedError
from tests.endpoints.mqtt.test_scripted import WELCOME, Peer, peer
from tests.waiting import PATIENCE, until

__all__ = ["peer"]  # a fixture
PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"
PUBACK = b"\x40\x02\x00\x01"
TURNS = 200  # in seconds, were each to wait for its quarter of one


class Quiet:
    """An owner that wants nothing; mutable, it counts turns and remembers who reads."""

    def __init__(self) -> None:
        self.turns = 0
        self.readers: list[threading.Thread] = []
        self.is_lost = threading.Event()

    def arrived(self, arrived: Arrived) -> None:
        del arrived
        self.readers.append(threading.current_thread())

    def wants_more(self) -> bool:
        self.turns += 1
        return True

    def tick(self, now: float) -> GatewayError | None:
        del now
        return None

    def lost(self, failure: GatewayError) -> None:
        del failure
        self.is_lost.set()


class Opening:
    """A link as something to open."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def open(self) -> None:
        self._link.open(lambda _session_present: ())


@contextmanager
def driven(link: Link, *followed: Link) -> Iterator[threading.Thread]:
    """A thread that does nothing but drive `link`, as if it had just sent over those `followed`."""
    done = threading.Event()

    def drive() -> None:
        while not done.is_set() and link.failure is None:
            link.drive(1.0)
            for each in followed:
                each.follow()

    thread = threading.Thread(target=drive)
    thread.start()
    try:
        yield thread
    finally:
        done.set()
        link.wake()
        thread.join(PATIENCE)


def test_a_link_that_is_woken_before_it_waits_does_not_wait(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(attention: Attention, mask: int, timeout: float, *, pause: float = 0.0) -> int:
        attention.wake()
        return waits(attention, mask, timeout, pause=pause)

    waits = Attention.wait
    monkeypatch.setattr(Attention, "wait", wait)
    owner = Quiet()
    link = Link(peer.settings, "c", clean=True, traffic=owner)
    future = peer.opening(Opening(link))
    peer.write(WELCOME)
    future.result(PATIENCE)

    until(lambda: owner.turns > TURNS)

    peer.hang_up()
    link.close()


def test_what_a_slow_line_brings_is_acknowledged_at_once(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged: list[Stream] = []

    def acknowledge(stream: Stream) -> None:
        acknowledged.append(stream)

    monkeypatch.setattr(Stream, "acknowledge", acknowledge)
    link = Link(peer.settings, "c", clean=True, traffic=Quiet())
    future = peer.opening(Opening(link))
    peer.write(WELCOME)
    future.result(PATIENCE)
    before = len(acknowledged)

    peer.write(PINGRESP)

    until(lambda: len(acknowledged) > before)
    peer.hang_up()
    link.close()


def counted(*blocks: tuple[int, int, float]) -> Pace:
    """A pace after blocks of so many packets and bytes, each at a time."""
    pace = Pace()
    for block in blocks:
        pace.count(*block)
    return pace


@pytest.mark.parametrize(
    ("packets", "every", "fast"),
    [
        pytest.param(1, 0.001, False, id="a thousand a second, which wait for nobody"),
        pytest.param(2 * MANY, GATHER, True, id="twice what makes a pause worth it"),
        pytest.param(MANY, 2 * GATHER, False, id="half of it"),
        pytest.param(1000, WHILE, True, id="in large batches"),
        pytest.param(1000, 1.0, False, id="a batch now and then"),
    ],
)
def test_only_a_fast_line_pauses(packets: int, every: float, fast: bool) -> None:
    pace = counted(*((packets, 0, turn * every) for turn in range(1, 1001)))

    assert pace.fast is fast


@pytest.mark.parametrize("share", [0.5, 2])
def test_a_line_is_heavy_by_its_bytes(share: float) -> None:
    size = int(HEAVY * share / 100)

    assert counted(*((1, size, turn / 100) for turn in range(1, 101))).heavy is (share > 1)


def test_a_line_that_falls_silent_is_neither_fast_nor_heavy() -> None:
    burst = ((10_000, HEAVY, 10.0), (10_000, HEAVY, 10.0 + WHILE))
    assert counted(*burst).fast
    assert counted(*burst).heavy

    silent = counted(*burst, (1, 100, 20.0))

    assert not silent.fast
    assert not silent.heavy


@pytest.fixture
def owner() -> Quiet:
    return Quiet()


@contextmanager
def linked(peer: Peer, owner: Quiet, keepalive: int) -> Iterator[Link]:
    """An open link with pings after three quarters of so many seconds."""
    link = Link(replace(peer.settings, keepalive=keepalive), "c", clean=True, traffic=owner)
    future = peer.opening(Opening(link))
    peer.write(WELCOME)
    future.result(PATIENCE)
    yield link
    peer.hang_up()
    link.close()


@pytest.fixture
def link(peer: Peer, owner: Quiet) -> Iterator[Link]:
    with linked(peer, owner, 1) as link:
        yield link


def says(peer: Peer, packets: bytes) -> bool:
    peer.write(packets)
    return True


def test_who_waits_reads_the_socket_and_the_own_thread_when_nobody_waits(
    link: Link, owner: Quiet, peer: Peer
) -> None:
    with driven(link) as driver:
        until(lambda: says(peer, PINGRESP) and driver in owner.readers)
    owner.readers.clear()

    until(lambda: says(peer, PINGRESP) and bool(owner.readers))

    assert driver not in owner.readers


def test_a_driven_link_sends_pings(link: Link, peer: Peer) -> None:
    with driven(link):
        for _ in range(3):
            assert peer.read() == PINGREQ
            peer.write(PINGRESP)


def test_a_driven_link_writes_what_the_socket_did_not_take(link: Link, peer: Peer) -> None:
    before, piece = link.written, bytes(500_000)
    with driven(link), ThreadPoolExecutor(1) as pool:
        while not link.backlog:
            link.write(piece)
        reading = pool.submit(peer.exactly, link.written + link.backlog - before)

        until(lambda: link.backlog == 0)

        assert reading.result(PATIENCE)


def test_nothing_is_read_after_what_ended_a_driven_link(
    link: Link, owner: Quiet, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on = threading.Event(), threading.Event()
    calls: list[threading.Thread] = []

    def broken(_arrived: Arrived) -> None:
        calls.append(threading.current_thread())
        reading.set()
        assert go_on.wait(PATIENCE)
        raise NotConnectedError("what came is no MQTT")

    with driven(link) as driver:
        until(lambda: says(peer, PINGRESP) and driver in owner.readers)
        monkeypatch.setattr(owner, "arrived", broken)
        peer.write(PINGRESP)
        assert reading.wait(PATIENCE)
        peer.write(PINGRESP)  # would be read next
        link.wake()
        until(lambda: not link._attention._called.is_set())  # noqa: SLF001  # now it waits for its turn
        go_on.set()
        until(lambda: link.failure is not None)

    link.close()
    assert len(calls) == 1


def test_a_heavy_line_is_not_driven_until_it_is_light_again(
    link: Link, owner: Quiet, peer: Peer
) -> None:
    heavy = 100 * (b"\x30\x84\x80\x02\x00\x01t\x00" + bytes(32_768))
    with driven(link) as driver:
        until(lambda: says(peer, PINGRESP) and driver in owner.readers)

        until(lambda: says(peer, heavy) and not link.drive(0.01))

        owner.readers.clear()
        until(lambda: says(peer, heavy) and len({*owner.readers} - {driver}) > 0)
        owner.readers.clear()
        until(lambda: says(peer, PINGRESP) and driver in owner.readers)


def test_a_fast_line_that_is_light_is_driven(link: Link, owner: Quiet, peer: Peer) -> None:
    with driven(link) as driver:
        until(lambda: says(peer, 1_000 * PUBACK) and link._pace.fast)  # noqa: SLF001
        owner.readers.clear()
        until(lambda: says(peer, 1_000 * PUBACK) and driver in owner.readers)
