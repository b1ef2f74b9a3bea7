"""Who drives one connection and looks for answers on another, over which it has sent."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from gateway.endpoints.attention import Attention, wait_readable
from gateway.endpoints.mqtt.link import Link
from tests.endpoints.mqtt.test_link import PINGREQ, PINGRESP, PUBACK, Quiet, driven, linked, says
from tests.endpoints.mqtt.test_scripted import Peer
from tests.waiting import PATIENCE, until

DISCONNECT = b"\xe0\x00"


@dataclass(frozen=True, slots=True)
class Side:
    """A link, its owner and its broker."""

    link: Link
    owner: Quiet
    peer: Peer

    def is_read_by(self, thread: threading.Thread) -> bool:
        """Whether `thread` reads an answer that comes now; asked again and again."""
        self.owner.readers.clear()
        self.peer.write(PUBACK)
        until(lambda: bool(self.owner.readers))
        return thread in self.owner.readers


@pytest.fixture
def source() -> Iterator[Side]:
    yield from side()


@pytest.fixture
def sink() -> Iterator[Side]:
    yield from side()


@pytest.fixture
def other_sink() -> Iterator[Side]:
    yield from side()


@pytest.fixture
def other_source() -> Iterator[Side]:
    yield from side()


@pytest.fixture
def pinging() -> Iterator[Side]:
    yield from side(keepalive=1)


def side(keepalive: int = 60) -> Iterator[Side]:
    peer, owner = Peer(), Quiet()
    try:
        with linked(peer, owner, keepalive) as link:
            yield Side(link, owner, peer)
    finally:
        peer.close()


def test_who_drives_a_link_reads_the_answers_of_those_it_sent_over(
    source: Side, sink: Side
) -> None:
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))
        until(lambda: source.is_read_by(driver))
        until(lambda: sink.is_read_by(driver))


def test_the_own_thread_reads_answers_when_nobody_drives_any_more(source: Side, sink: Side) -> None:
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))

    assert not sink.is_read_by(driver)
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))


@contextmanager
def repeated(action: Callable[[], object]) -> Iterator[threading.Thread]:
    """A thread that does it again and again."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield thread
    finally:
        done.set()
        thread.join(PATIENCE)


def test_who_waits_for_an_answer_looks_after_what_it_follows(
    source: Side, sink: Side, other_sink: Side
) -> None:
    full = threading.Event()

    def work() -> None:
        sink.link.follow()
        other_sink.link.follow()
        if full.is_set():
            sink.link.help(0.5)
        else:
            source.link.drive(0.5)

    with repeated(work) as worker:
        until(lambda: sink.is_read_by(worker))
        full.set()
        source.peer.write(PINGRESP)
        until(lambda: sink.is_read_by(worker))
        until(lambda: other_sink.is_read_by(worker))
        until(lambda: not source.is_read_by(worker))


def test_who_waits_for_messages_of_another_system_reads_the_answers_of_those_it_sent_over(
    sink: Side,
) -> None:
    ours, theirs = socket.socketpair()
    heard: list[bytes] = []

    def work() -> None:
        sink.link.follow()
        if wait_readable(ours.fileno(), 0.5):
            heard.append(ours.recv(100))

    with ours, theirs, repeated(work) as worker:
        until(lambda: sink.is_read_by(worker))
        theirs.send(b"a message")
        until(lambda: heard == [b"a message"])
        until(lambda: sink.is_read_by(worker))


def test_a_followed_link_sends_pings(source: Side, pinging: Side) -> None:
    with driven(source.link, pinging.link) as driver:
        until(lambda: pinging.is_read_by(driver))
        for _ in range(3):
            assert pinging.peer.read() == PINGREQ
            pinging.peer.write(PINGRESP)


def test_a_followed_link_that_breaks_is_lost_and_the_other_is_driven_on(
    source: Side, sink: Side
) -> None:
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))

        sink.peer.hang_up()

        assert sink.owner.is_lost.wait(PATIENCE)
        until(lambda: source.is_read_by(driver))


def test_a_followed_link_can_be_closed(source: Side, sink: Side) -> None:
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))

        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(sink.link.close)
            assert sink.peer.read() == DISCONNECT
            sink.peer.hang_up()
            closing.result(PATIENCE)

        assert sink.owner.is_lost.is_set()
        until(lambda: source.is_read_by(driver))


def test_the_own_thread_reads_answers_when_the_driven_link_gets_heavy(
    source: Side, sink: Side
) -> None:
    heavy = 100 * (b"\x30\x84\x80\x02\x00\x01t\x00" + bytes(32_768))
    with driven(source.link, sink.link) as driver:
        until(lambda: sink.is_read_by(driver))

        until(lambda: says(source.peer, heavy) and not sink.is_read_by(driver))


def test_a_thread_that_drives_nothing_is_not_asked_to_follow(sink: Side) -> None:
    def wait() -> None:
        sink.link.follow()
        assert not sink.link.help(1.0)

    with repeated(wait) as waiting:
        for _ in range(3):
            assert not sink.is_read_by(waiting)


def test_two_that_have_sent_over_a_link_do_not_both_wait_for_it(
    source: Side, other_source: Side, sink: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed: list[bool] = []
    visit = Attention.visit

    def visited(attention: Attention, *, readable: bool) -> bool:
        done = visit(attention, readable=readable)
        missed.append(not done)
        return done

    with driven(source.link, sink.link) as one, driven(other_source.link, sink.link) as two:
        until(lambda: sink.is_read_by(one) or sink.is_read_by(two))
        monkeypatch.setattr(Attention, "visit", visited)
        for _ in range(100):
            sink.is_read_by(one)

    assert missed.count(True) < len(missed) / 2
