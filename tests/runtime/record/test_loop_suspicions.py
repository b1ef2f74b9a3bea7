"""The suspicions of loops: each begins, is said once a minute, and ends."""

from __future__ import annotations

import logging

import pytest

from gateway.runtime.record import loop_suspicions
from gateway.runtime.record.loop_suspicions import FORGET, LOG_INTERVAL, LoopSuspicions

BACK = "is its heartbeat, and came back"


class Clock:
    """A clock that a test sets. Mutable."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> int:
        return int(self.seconds * 1e6)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(loop_suspicions, "monotonic", made.monotonic)
    monkeypatch.setattr(loop_suspicions, "now", made.now)
    return made


def test_a_suspicion_keeps_its_begin_and_its_example(clock: Clock) -> None:
    suspicions = LoopSuspicions()
    suspicions.note("plant", "one", "a/1", BACK)
    clock.seconds += 10
    suspicions.note("plant", "two", "a/2", BACK)
    suspicions.note("plant", "one", "a/3", "with an equal payload comes 66 times a second")

    found = [(each.route, each.name, each.reason, each.since) for each in suspicions.current()]
    assert found == [("one", "a/1", BACK, 1_000_000_000), ("two", "a/2", BACK, 1_010_000_000)]


def test_a_suspicion_ends_some_time_after_its_last_sign(clock: Clock) -> None:
    suspicions = LoopSuspicions()
    for _ in range(5):
        suspicions.note("plant", "one", "a/1", BACK)
        clock.seconds += FORGET - 1
    assert suspicions.current()

    clock.seconds += 1
    assert not suspicions.current()
    suspicions.note("plant", "one", "a/1", BACK)
    assert [each.since for each in suspicions.current()] == [clock.now()]


def test_each_route_is_said_once_a_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    suspicions = LoopSuspicions()
    for _ in range(121):
        suspicions.note("plant", "one", "a/1", BACK)
        suspicions.note("plant", "two", "a/2", BACK)
        clock.seconds += 1
    assert LOG_INTERVAL == 60

    routes = [str(record.args[0]) for record in caplog.records if isinstance(record.args, tuple)]
    assert sorted(routes) == ["one"] * 3 + ["two"] * 3
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_the_memory_of_suspicions_is_limited(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    suspicions = LoopSuspicions()
    for number in range(3_000):
        suspicions.note("plant", str(number), "a", BACK)

    assert len(suspicions.current()) == loop_suspicions.MAX_SUSPICIONS
    assert clock.seconds == 1_000
    assert caplog.records


def test_a_proof_takes_the_place_of_a_guess_and_no_guess_that_of_a_proof(clock: Clock) -> None:
    suspicions = LoopSuspicions()
    suspicions.note("plant", "one", "line/1", "comes often")
    suspicions.note("plant", "one", "line/hb", BACK, proven=True)
    clock.seconds += 1
    suspicions.note("plant", "one", "line/1", "comes often")

    (found,) = suspicions.current()

    assert (found.name, found.reason, found.proven) == ("line/hb", BACK, True)
