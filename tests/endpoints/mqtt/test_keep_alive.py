"""The decisions about a silent broker, with times as values; the keep alive is 10 s."""

from __future__ import annotations

from gateway.endpoints.mqtt.keep_alive import KeepAlive

SECONDS = 10


def lost(alive: KeepAlive, now: float, written: int = 0, *, waiting: bool = False) -> str:
    return alive.lost(now, SECONDS, written, waiting=waiting, reads=True)


def test_a_quiet_connection_asks_and_is_lost_without_an_answer() -> None:
    alive = KeepAlive(100.0)
    assert not alive.asks(107.0, SECONDS)
    assert alive.asks(107.5, SECONDS)
    alive.last_write = 107.5
    assert not lost(alive, 117.0)
    assert lost(alive, 117.5) == "no answer to a ping for 10 s"


def test_bytes_of_the_broker_are_an_answer() -> None:
    alive = KeepAlive(100.0)
    assert alive.asks(108.0, SECONDS)
    alive.received(112.0)
    assert not lost(alive, 121.0)


def test_an_answer_may_wait_while_nothing_is_read() -> None:
    alive = KeepAlive(100.0)
    assert alive.asks(108.0, SECONDS)
    assert not alive.lost(130.0, SECONDS, 0, waiting=False, reads=False)
    assert not lost(alive, 139.0)
    assert lost(alive, 140.0)


def test_a_broker_that_reads_nothing_is_lost_although_its_bytes_come() -> None:
    alive = KeepAlive(100.0)
    assert not lost(alive, 101.0, 5, waiting=True)
    alive.received(110.0)
    assert lost(alive, 111.0, 5, waiting=True) == "the broker reads nothing for 10 s"


def test_bytes_that_leave_are_progress() -> None:
    alive = KeepAlive(100.0)
    assert not lost(alive, 101.0, 5, waiting=True)
    assert not lost(alive, 111.0, 6, waiting=True)


def test_a_keep_alive_of_zero_asks_nothing() -> None:
    assert not KeepAlive(100.0).asks(500.0, 0)
