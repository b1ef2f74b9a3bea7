"""Leader/followers: a thread leads one connection and follows those over which it has sent."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from gateway.endpoints import leader_followers
from gateway.endpoints.leader_followers import Leadership, ThreadPoller, wait_readable
from gateway.endpoints.mqtt.connection import MqttConnection
from tests.endpoints.mqtt.peer import Peer
from tests.endpoints.mqtt.test_connection import (
    PINGREQ,
    PINGRESP,
    PUBACK,
    Quiet,
    connected,
    led,
    says,
)
from tests.waiting import PATIENCE, until

DISCONNECT = b"\xe0\x00"


@dataclass(frozen=True, slots=True)
class Side:
    """A connection, its owner and its broker."""

    connection: MqttConnection
    owner: Quiet
    peer: Peer

    def is_read_by(self, thread: threading.Thread) -> bool:
        """Return whether `thread` reads an answer that arrives now."""
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
        with connected(peer, owner, keepalive) as connection:
            yield Side(connection, owner, peer)
    finally:
        peer.close()


def test_a_leader_reads_the_answers_of_the_connections_that_it_sent_over(
    source: Side, sink: Side
) -> None:
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))
        until(lambda: source.is_read_by(leader))
        until(lambda: sink.is_read_by(leader))


def test_the_own_thread_reads_answers_when_no_other_leads(source: Side, sink: Side) -> None:
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))

    assert not sink.is_read_by(leader)
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))


def await_answer(connection: MqttConnection) -> None:
    """Wait as a sink does that has no room, and gets none."""
    connection.await_answer(threading.Condition(), lambda: False, 0.5)


@contextmanager
def repeated(action: Callable[[], object]) -> Iterator[threading.Thread]:
    """A thread that repeats the action."""
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


def test_a_thread_that_waits_for_an_answer_serves_what_it_follows(
    source: Side, sink: Side, other_sink: Side
) -> None:
    full = threading.Event()

    def work() -> None:
        sink.connection.follow()
        other_sink.connection.follow()
        if full.is_set():
            await_answer(sink.connection)
        else:
            source.connection.lead(0.5)

    with repeated(work) as worker:
        until(lambda: sink.is_read_by(worker))
        full.set()
        source.peer.write(PINGRESP)
        until(lambda: sink.is_read_by(worker))
        until(lambda: other_sink.is_read_by(worker))
        until(lambda: not source.is_read_by(worker))


def test_a_thread_that_waits_for_another_system_reads_the_answers_of_what_it_follows(
    sink: Side,
) -> None:
    ours, theirs = socket.socketpair()
    received: list[bytes] = []

    def work() -> None:
        sink.connection.follow()
        if wait_readable(ours.fileno(), 0.5):
            received.append(ours.recv(100))

    with ours, theirs, repeated(work) as worker:
        until(lambda: sink.is_read_by(worker))
        theirs.send(b"a message")
        until(lambda: received == [b"a message"])
        until(lambda: sink.is_read_by(worker))


def test_a_followed_connection_sends_pings(source: Side, pinging: Side) -> None:
    with led(source.connection, pinging.connection) as leader:
        until(lambda: pinging.is_read_by(leader))
        for _ in range(3):
            assert pinging.peer.read() == PINGREQ
            pinging.peer.write(PINGRESP)


def test_a_followed_connection_that_breaks_is_lost_and_the_led_one_is_not(
    source: Side, sink: Side
) -> None:
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))

        sink.peer.hang_up()

        assert sink.owner.is_lost.wait(PATIENCE)
        until(lambda: source.is_read_by(leader))


def test_a_followed_connection_can_be_closed(source: Side, sink: Side) -> None:
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))

        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(sink.connection.close)
            assert sink.peer.read() == DISCONNECT
            sink.peer.hang_up()
            closing.result(PATIENCE)

        assert sink.owner.is_lost.is_set()
        until(lambda: source.is_read_by(leader))


def test_the_own_thread_reads_answers_when_the_led_connection_gets_heavy(
    source: Side, sink: Side
) -> None:
    heavy = 100 * (b"\x30\x84\x80\x02\x00\x01t\x00" + bytes(32_768))
    with led(source.connection, sink.connection) as leader:
        until(lambda: sink.is_read_by(leader))

        until(lambda: says(source.peer, heavy) and not sink.is_read_by(leader))


def test_a_thread_that_never_receives_does_not_follow(sink: Side) -> None:
    def wait() -> None:
        sink.connection.follow()
        await_answer(sink.connection)

    with repeated(wait) as waiting:
        for _ in range(3):
            assert not sink.is_read_by(waiting)


def test_a_leader_makes_no_pause_while_another_thread_waits_for_an_answer_that_it_reads(
    sink: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(leader_followers, "sleep", pauses.append)
    followed, poller = sink.connection._leadership, ThreadPoller()  # noqa: SLF001
    poller.waiting, poller.followed = True, {followed: sink.connection.socket.fileno}
    answered, changed = threading.Event(), threading.Condition()
    ours, theirs = socket.socketpair()
    with ours, theirs, ThreadPoolExecutor() as threads:
        theirs.send(b"a message")
        ours_fileno = ours.fileno()
        gather = partial(poller.wait, {ours_fileno: select.POLLIN}, 0.0, 0.004)
        await_answer = sink.connection.await_answer
        waiting = threads.submit(await_answer, changed, answered.is_set, PATIENCE)
        until(lambda: followed.answer_awaited)

        events, before = gather(), [*pauses]

        answered.set()
        with changed:
            changed.notify_all()
        waiting.result(PATIENCE)
        assert gather() == events
    assert events == {ours_fileno: select.POLLIN}
    assert (before, pauses) == ([], [0.004])


def test_two_senders_over_a_connection_do_not_both_wait_for_it(
    source: Side, other_source: Side, sink: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed: list[bool] = []
    poll_followed = Leadership.poll_followed

    def counted(leadership: Leadership, *, readable: bool) -> bool:
        done = poll_followed(leadership, readable=readable)
        missed.append(not done)
        return done

    with (
        led(source.connection, sink.connection) as one,
        led(other_source.connection, sink.connection) as two,
    ):
        until(lambda: sink.is_read_by(one) or sink.is_read_by(two))
        monkeypatch.setattr(Leadership, "poll_followed", counted)
        for _ in range(100):
            sink.is_read_by(one)

    assert missed.count(True) < len(missed) / 2
