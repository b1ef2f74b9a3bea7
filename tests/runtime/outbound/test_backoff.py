"""Pauses between attempts to connect."""

from __future__ import annotations

import pytest

from gateway.runtime.outbound.backoff import STABLE_SECONDS, Backoff

BACKOFF = (0.5, 4.0)


class FakeBroker:
    """A broker with a clock that the test moves."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 0.0
        self.backoff = Backoff(lambda: self.now, lambda: jitter)

    def pause_after(self, seconds: float) -> float:
        """The pause after a connection that lived for `seconds`."""
        self.backoff.connected()
        self.now += seconds
        return self.backoff.pause(BACKOFF)


def test_pauses_double_up_to_the_maximum() -> None:
    backoff = FakeBroker().backoff

    assert [backoff.pause(BACKOFF) for _ in range(5)] == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_a_refusal_takes_the_maximum_pause() -> None:
    backoff = FakeBroker().backoff

    assert [backoff.pause(BACKOFF, refused=True), backoff.pause(BACKOFF)] == [4.0, 1.0]


@pytest.mark.parametrize("seconds", [0.0, STABLE_SECONDS * 0.9])
def test_a_connection_that_is_lost_at_once_is_a_failed_attempt(seconds: float) -> None:
    broker = FakeBroker()

    assert [broker.pause_after(seconds) for _ in range(3)] == [0.5, 1.0, 2.0]


def test_a_stable_connection_resets_the_backoff() -> None:
    broker = FakeBroker()
    pauses = [
        broker.backoff.pause(BACKOFF),
        broker.pause_after(0.0),
        broker.pause_after(STABLE_SECONDS),
        broker.pause_after(0.0),
    ]

    assert pauses == [0.5, 1.0, 0.5, 1.0]


def test_time_without_a_connection_does_not_count_as_its_life() -> None:
    broker = FakeBroker()
    broker.pause_after(0.0)
    broker.now += STABLE_SECONDS

    assert broker.backoff.pause(BACKOFF) == 1.0


def test_jitter_subtracts_at_most_half() -> None:
    assert FakeBroker(jitter=1.0).backoff.pause(BACKOFF) == 0.25
