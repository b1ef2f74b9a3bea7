"""The pauses between attempts to connect."""

from __future__ import annotations

import pytest

from gateway.runtime.outbound.backoff import STEADY, Attempts

BACKOFF = (0.5, 4.0)


class Line:
    """A broker as `Attempts` sees it; mutable, time passes."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 0.0
        self.attempts = Attempts(lambda: self.now, lambda: jitter)

    def lives(self, seconds: float) -> float:
        """The pause after a connection of so many seconds."""
        self.attempts.connected()
        self.now += seconds
        return self.attempts.pause(BACKOFF)


def test_pauses_double_up_to_the_longest() -> None:
    attempts = Line().attempts

    assert [attempts.pause(BACKOFF) for _ in range(5)] == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_a_refusal_takes_the_longest_pause() -> None:
    attempts = Line().attempts

    assert [attempts.pause(BACKOFF, refused=True), attempts.pause(BACKOFF)] == [4.0, 1.0]


@pytest.mark.parametrize("seconds", [0.0, STEADY * 0.9])
def test_a_connection_that_is_lost_at_once_is_a_failed_attempt(seconds: float) -> None:
    line = Line()

    assert [line.lives(seconds) for _ in range(3)] == [0.5, 1.0, 2.0]


def test_a_connection_that_lived_begins_anew() -> None:
    line = Line()
    pauses = [line.attempts.pause(BACKOFF), line.lives(0.0), line.lives(STEADY), line.lives(0.0)]

    assert pauses == [0.5, 1.0, 0.5, 1.0]


def test_time_without_a_connection_does_not_count_as_its_life() -> None:
    line = Line()
    line.lives(0.0)
    line.now += STEADY

    assert line.attempts.pause(BACKOFF) == 1.0


def test_chance_takes_away_half_at_most() -> None:
    assert Line(jitter=1.0).attempts.pause(BACKOFF) == 0.25
