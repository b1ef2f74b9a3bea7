"""The limit on the rounds of one message: it ends a ring, and keeps what applications repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.model.message import NO_HEADERS, Message
from gateway.runtime.delivery import loop_limit
from gateway.runtime.delivery.loop_limit import MAX_ROUNDS, MAX_SIZE, LoopLimit
from tests.model.test_memory_size import taken

WINDOW = 0.1  # seconds
ONE = Message("a/b", b"on")


def cuts(batches: Sequence[Sequence[Message]], interval: float, window: float = WINDOW) -> int:
    """The number of messages that are cut among batches at equal intervals."""
    limit = LoopLimit()
    found = 0
    for number, batch in enumerate(batches):
        found += len(limit.exceeded(batch, (), 1.0 + number * interval, window))
    return found


@pytest.mark.parametrize("interval", [0.001, 0.02, 0.099])
def test_a_message_that_comes_back_is_cut_after_its_rounds(interval: float) -> None:
    assert cuts([[ONE]] * MAX_ROUNDS, interval) == 0
    assert cuts([[ONE]] * (MAX_ROUNDS + 1), interval) == 1
    assert cuts([[ONE, Message("a/b", b"other")]] * (MAX_ROUNDS + 1), interval) == 2


def test_only_one_of_many_equal_messages_is_cut() -> None:
    """An application that repeats itself so fast loses one message in a thousand, with a row."""
    assert cuts([[ONE]] * (10 * MAX_ROUNDS + 1), 0.01) == 10


@pytest.mark.parametrize("interval", [0.101, 1.0, 60.0])
def test_an_application_may_repeat_itself_slowly_for_ever(interval: float) -> None:
    assert cuts([[ONE]] * (5 * MAX_ROUNDS), interval) == 0


def test_a_burst_of_equal_messages_is_no_loop() -> None:
    assert cuts([[ONE] * 1_000] * 100, 0.001) == 0


def test_another_name_payload_or_value_type_is_another_message() -> None:
    messages = [Message("a/b", b"%d" % (number % 2)) for number in range(4 * MAX_ROUNDS)]

    assert cuts([[each] for each in messages], 0.06) == 0  # each of them every 0.12 s


def test_what_a_broker_delivers_again_is_no_round() -> None:
    again = replace(ONE, headers=replace(NO_HEADERS, redelivered=True))

    assert cuts([[again]] * (2 * MAX_ROUNDS), 0.01) == 0


def test_messages_that_go_no_further_are_not_counted() -> None:
    limit = LoopLimit()
    for number in range(2 * MAX_ROUNDS):
        assert not limit.exceeded([ONE], {0}, number * 0.01, WINDOW)


def test_a_pause_ends_the_rounds() -> None:
    limit, now = LoopLimit(), 0.0
    for pause in (0.0, 0.3, 5.0):
        now += pause
        for _ in range(MAX_ROUNDS - 1):
            now += 0.01
            assert not limit.exceeded([ONE], (), now, WINDOW)


@pytest.mark.parametrize("length", [4, 60_000])
def test_the_memory_of_the_rounds_is_limited(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(loop_limit, "MAX_SIZE", MAX_SIZE // 8)

    def fill() -> LoopLimit:
        limit = LoopLimit()
        for number in range(20_000 if length < 100 else 500):
            limit.exceeded([Message("x" * length + str(number), b"x")], (), number * 0.0001, 60.0)
        return limit

    assert taken(fill) < MAX_SIZE // 8
