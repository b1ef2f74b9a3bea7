"""What was sent to a broker without origin paths, and comes back from it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from gateway.model.message import PLAIN, Message
from gateway.runtime.inbound import echo_cache
from gateway.runtime.inbound.echo_cache import KEPT, SECONDS, Echoes

BROKER = "mqtt://plant"
EACH = 350  # bytes that one copy may take


class Clock:
    """The time in seconds; mutable, the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(echo_cache, "monotonic", clock)
    return clock


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many copies are kept at most, so few that it takes no time to send them."""
    monkeypatch.setattr(echo_cache, "KEPT", 100)
    return echo_cache.KEPT


def copy(payload: str, *origin: str) -> Message:
    return Message("a/b", payload.encode(), replace(PLAIN, origin=origin))


def back(known: Echoes, payload: str) -> tuple[str, ...]:
    return known.origin(BROKER, copy(payload))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_copy_is_recognised_once_for_each_time_it_was_sent(times: int) -> None:
    known = Echoes()
    for number in range(times):
        known.sending(BROKER, [copy("x", f"gateway/{number}")])
    came = [back(known, "x") for _ in range(times + 1)]
    assert came == [*((f"gateway/{number}",) for number in range(times)), ()]


def test_a_copy_can_be_sent_again_after_it_came_back() -> None:
    known = Echoes()
    for number in range(3):
        known.sending(BROKER, [copy("x", f"g/{number}"), copy("x", f"h/{number}")])
        assert [back(known, "x") for _ in range(3)] == [(f"g/{number}",), (f"h/{number}",), ()]


def test_another_broker_name_or_payload_is_no_echo() -> None:
    known = Echoes()
    known.sending(BROKER, [copy("x", "g/r")])
    assert back(known, "y") == ()
    assert known.origin("mqtt://other", copy("x")) == ()
    assert known.origin(BROKER, Message("a/c", b"x")) == ()
    assert back(known, "x") == ("g/r",)


def test_a_copy_that_is_too_old_is_passed_over_for_one_that_is_not(clock: Clock) -> None:
    known = Echoes()
    known.sending(BROKER, [copy("x", "g/old")])
    clock.now = SECONDS - 1
    known.sending(BROKER, [copy("x", "g/new")])
    clock.now = SECONDS + 1
    assert [back(known, "x"), back(known, "x")] == [("g/new",), ()]


def test_what_was_used_last_is_forgotten_last(few: int) -> None:
    known = Echoes()
    known.sending(BROKER, [copy("first", "g/r"), copy("second", "g/r")])
    known.sending(BROKER, [copy("first", "g/r")])
    known.sending(BROKER, [copy(f"{number}", "g/r") for number in range(few - 2)])
    assert [back(known, "second"), back(known, "first")] == [(), ("g/r",)]


def test_what_came_back_leaves_its_place_to_others(few: int) -> None:
    known, each = Echoes(), range(10)
    for _ in range(2):
        known.sending(BROKER, [copy(f"{number}", "g/r") for number in each])
    assert {back(known, f"{number}") for number in [*each, *each]} == {("g/r",)}
    known.sending(BROKER, [copy(f"later {number}", "g/r") for number in range(few)])
    assert back(known, "later 0") == ("g/r",)


@pytest.mark.parametrize("times", [1, 2])
def test_no_more_copies_are_kept_than_may_be(few: int, times: int) -> None:
    known = Echoes()
    for _ in range(times):
        known.sending(BROKER, [copy(f"old {number}", "g/r") for number in range(few // times)])
    known.sending(BROKER, [copy(f"{number}", "g/r") for number in range(few)])
    known.sending(BROKER, [copy("last", "g/r")])
    assert [back(known, each) for each in ("0", "1", "last")] == [(), ("g/r",), ("g/r",)]


def test_the_copies_that_are_kept_take_little_memory() -> None:
    """The broker of a route that only sends returns nothing, so they are soon as many as can be."""
    known, messages = Echoes(), [copy(f"{number}", "g/r") for number in range(KEPT)]
    tracemalloc.start()
    try:
        for first in range(0, KEPT, 1_000):
            known.sending(BROKER, messages[first : first + 1_000])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert back(known, "0") == ("g/r",)
    assert taken < EACH * KEPT
