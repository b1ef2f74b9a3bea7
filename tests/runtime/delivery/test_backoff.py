"""Pauses between attempts to connect."""

from __future__ import annotations

import pytest

from gateway.runtime.delivery.backoff import STABLE_SECONDS, Backoff

BACKOFF = (0.5, 4.0)


class FakeBroker:
    """A broker with a clock that the test moves."""

    def __init__(self, jitter: float = 0.0) -> None:
        self.now = 0.0
        self._backoff, self._jitter = Backoff(), jitter

    def pause(self, *, refused: bool = False) -> float:
        return self._backoff.pause(BACKOFF, self.now, self._jitter, refused=refused)

    def pause_after(self, seconds: float) -> float:
        """The pause after a connection that lived for `seconds`."""
        self._backoff.connected(self.now)
        self.now += seconds
        return self.pause()


def test_pauses_double_up_to_the_maximum() -> None:
    broker = FakeBroker()

    assert [broker.pause() for _ in range(5)] == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_a_refusal_takes_the_maximum_pause() -> None:
    broker = FakeBroker()

    assert [broker.pause(refused=True), broker.pause()] == [4.0, 1.0]


@pytest.mark.parametrize("seconds", [0.0, STABLE_SECONDS * 0.9])
def test_a_connection_that_is_lost_at_once_is_a_failed_attempt(seconds: float) -> None:
    broker = FakeBroker()

    assert [broker.pause_after(seconds) for _ in range(3)] == [0.5, 1.0, 2.0]


def test_a_stable_connection_resets_the_backoff() -> None:
    broker = FakeBroker()
    pauses = [
        broker.pause(),
        broker.pause_after(0.0),
        broker.pause_after(STABLE_SECONDS),
        broker.pause_after(0.0),
    ]

    assert pauses == [0.5, 1.0, 0.5, 1.0]


def test_time_without_a_connection_does_not_count_as_its_life() -> None:
    broker = FakeBroker()
    broker.pause_after(0.0)
    broker.now += STABLE_SECONDS

    assert broker.pause() == 1.0


def test_jitter_subtracts_at_most_half() -> None:
    assert FakeBroker(jitter=1.0).pause() == 0.25
