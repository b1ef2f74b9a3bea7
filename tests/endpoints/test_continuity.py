"""The broker's count of dropped messages: each rise is a loss, with the time it may have begun."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.endpoints.continuity import COUNT_INTERVAL, Continuity, Retention

HOUR = 3_600_000_000


class Clock:
    """A time that the test sets. Mutable."""

    time = 1_000 * HOUR


@pytest.mark.parametrize(
    ("counts", "lost"),
    [
        pytest.param([7], [], id="the-first-is-the-base"),
        pytest.param([7, 7, 12], [5], id="rise"),
        pytest.param([7, 12, 15], [8], id="two-rises"),
        pytest.param([7, 3], [3], id="the-broker-restarted"),
        pytest.param([7, 0], [], id="the-broker-restarted-and-dropped-none"),
    ],
)
def test_a_rise_of_the_count_is_a_loss(counts: Sequence[int], lost: Sequence[int]) -> None:
    state = Continuity(Retention.KEPT)
    for count in counts:
        state.count_dropped(count)

    assert [loss.messages for loss in state.take_losses()] == lost


def test_a_count_that_jumps_to_and_fro_is_a_number_that_a_row_can_hold() -> None:
    state = Continuity(Retention.KEPT)
    for _ in range(20):
        state.count_dropped(0)
        state.count_dropped(10**18 - 1)

    (loss,) = state.take_losses()
    assert loss.messages is not None
    assert 10**18 <= loss.messages < 2**63


def test_the_first_rise_after_a_break_may_be_from_the_time_away() -> None:
    state, clock = Continuity(Retention.KEPT), Clock()
    state.clock = lambda: clock.time
    state.begin_counting()
    state.count_dropped(7)
    state.heard = away = clock.time
    clock.time += HOUR
    state.begin_counting()
    state.count_dropped(7)  # retained: from before the break
    state.heard = clock.time
    clock.time += COUNT_INTERVAL // 6
    state.count_dropped(12)
    (after_break,) = state.take_losses()
    clock.time += HOUR
    state.count_dropped(13)
    (later,) = state.take_losses()

    assert (after_break.begin, after_break.messages) == (away, 5)
    assert (later.begin, later.messages) == (clock.time - COUNT_INTERVAL, 1)
