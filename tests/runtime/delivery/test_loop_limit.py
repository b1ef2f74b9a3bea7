"""The limit on the rounds of one message: it ends a ring, and keeps what applications repeat."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.delivery import loop_limit
from gateway.runtime.delivery.loop_limit import (
    MAX_FAST_ROUNDS,
    MAX_ROUNDS,
    MAX_SIZE,
    MAX_SLOW_ROUNDS,
    PROOF,
    WEIGHT,
    LoopLimit,
)
from tests.model.test_memory_size import taken

WINDOW = 0.1  # seconds
BOUND = MAX_ROUNDS + PROOF // WEIGHT + 1  # arrivals of a message at each gateway of a ring
MODES = {mode: Headers(mode=mode) for mode in DeliveryMode}
ONE = Message("a/b", b"on", MODES[DeliveryMode.AT_LEAST_ONCE])
WEAK = Message("a/b", b"on", MODES[DeliveryMode.AT_MOST_ONCE])


def go_round(messages: Sequence[Message], *, gateways: int = 3, seed: int = 1) -> float:
    """Let gateways in a ring pass `messages` on; return how often each came to a gateway.

    Time is long: no two rounds are within a window.
    """
    random_ = random.Random(seed)  # noqa: S311
    ring = [(LoopLimit(), deque[Message]()) for _ in range(gateways)]
    ring[0][1].extend(messages)
    left, steps, most = len(messages), 0, 0
    came = [0] * gateways
    while left and most <= 2 * BOUND * len(messages):
        steps += 1
        at = random_.randrange(gateways)
        limit, waiting = ring[at]
        batch = [waiting.popleft() for _ in range(min(len(waiting), random_.randint(1, 40)))]
        came[at] += len(batch)
        most = max(came)
        found = limit.find(batch, (), steps * 10 * WINDOW, WINDOW)
        left -= len(found.cut)
        for position, message in enumerate(batch):
            if position not in found.cut:
                mode = found.marked.get(position, message.headers.mode)
                ring[(at + 1) % gateways][1].append(replace(message, headers=MODES[mode]))
    return most / len(messages)


@pytest.mark.parametrize("mode", [DeliveryMode.AT_LEAST_ONCE, DeliveryMode.EXACTLY_ONCE])
@pytest.mark.parametrize(
    ("kinds", "copies"),
    [(1, 1), (1, 2), (1, 100), pytest.param(600, 1, marks=pytest.mark.nightly), (100, 6)],
)
def test_a_message_goes_round_a_bounded_number_of_times_whatever_goes_with_it(
    mode: DeliveryMode, kinds: int, copies: int
) -> None:
    messages = [Message("a/b", b"%d" % kind, MODES[mode]) for kind in range(kinds)] * copies

    for gateways in (2, 3, 5):
        assert go_round(messages, gateways=gateways) <= BOUND


def receive(messages: Sequence[Message], interval: float = 1.0) -> tuple[int, int]:
    """The numbers of messages that are cut and marked when they come one by one."""
    limit, cut, marked = LoopLimit(), 0, 0
    for number, message in enumerate(messages):
        found = limit.find([message], (), 1.0 + number * interval, WINDOW)
        cut, marked = cut + len(found.cut), marked + len(found.marked)
    return cut, marked


@pytest.mark.parametrize("interval", [0.0001, 0.01, 1.0, 3_600.0])
def test_an_application_may_repeat_itself_for_ever(interval: float) -> None:
    cut, marked = receive([ONE] * 20_000, interval)

    assert not cut
    assert 1 <= marked <= 8  # at 128, then ever more rarely


def test_a_chain_of_gateways_cuts_nothing() -> None:
    """A gateway sees the marks of those before it, which are not its own."""
    random_ = random.Random(1)  # noqa: S311
    chain = [LoopLimit() for _ in range(6)]
    for number in range(10_000):
        message = ONE
        for at, limit in enumerate(chain):
            if random_.random() < 0.0005:
                chain[at] = LoopLimit()  # it was started again
            found = limit.find([message], (), float(number), WINDOW)
            assert not found.cut
            if found.marked:
                message = WEAK


def test_a_publisher_that_changes_its_mode_loses_one_message_at_most() -> None:
    for before in (MAX_ROUNDS - 1, MAX_ROUNDS, 10 * MAX_ROUNDS):
        cut, _ = receive([ONE] * before + [WEAK] * 2_000)
        assert cut <= 1


def test_two_publishers_with_two_modes_lose_nothing() -> None:
    assert receive([ONE, WEAK] * 5_000)[0] == 0
    assert receive(([ONE] * 50 + [WEAK]) * 200)[0] == 0


def test_publishers_that_look_like_a_ring_do_not_lose_messages_for_ever() -> None:
    assert receive([ONE] * MAX_ROUNDS + [ONE, WEAK] * 5_000)[0] <= MAX_ROUNDS


def weak_cuts(batches: Sequence[Sequence[Message]], interval: float) -> int:
    limit = LoopLimit()
    return sum(
        len(limit.find(batch, (), 1.0 + number * interval, WINDOW).cut)
        for number, batch in enumerate(batches)
    )


def weak_rounds(copies: int, interval: float) -> int:
    """Return how many messages come from a ring with so many equal copies until all are cut."""
    limit, came = LoopLimit(), 0
    while copies:
        came += 1
        copies -= len(limit.find([WEAK], (), came * interval, WINDOW).cut)
    return came


@pytest.mark.parametrize("interval", [0.001, 0.02, 0.099])
def test_the_weakest_mode_is_cut_after_its_rounds(interval: float) -> None:
    assert weak_cuts([[WEAK]] * MAX_FAST_ROUNDS, interval) == 0
    assert weak_cuts([[WEAK]] * (MAX_FAST_ROUNDS + 1), interval) == 1
    assert weak_cuts([[WEAK]] * (10 * MAX_FAST_ROUNDS + 1), 0.01) == 10


@pytest.mark.parametrize("interval", [0.101, 1.0, 60.0])
def test_an_application_may_repeat_the_weakest_mode_slowly_for_ever(interval: float) -> None:
    assert weak_cuts([[WEAK]] * (5 * MAX_FAST_ROUNDS), interval) == 0


@pytest.mark.nightly
def test_a_slow_ring_of_the_weakest_mode_comes_to_an_end() -> None:
    """No round is within the window, and nothing marks the messages: each costs this at most."""
    rounds = {copies: weak_rounds(copies, interval=1.0) for copies in (1, 3)}

    assert rounds == {1: MAX_SLOW_ROUNDS + 1, 3: 3 * MAX_SLOW_ROUNDS + 1}


@pytest.mark.nightly
def test_a_full_ring_of_the_weakest_mode_comes_to_an_end() -> None:
    """Its rounds take longer than the window: only the messages that come back fill it."""
    ring = [replace(WEAK, payload=b"%d" % number) for number in range(1_000)]
    batches = [ring[start : start + 100] for start in range(0, 1_000, 100)]

    assert weak_cuts(batches * (MAX_FAST_ROUNDS + 2), 0.05) == 1_000


def test_a_burst_of_equal_messages_is_no_loop() -> None:
    assert weak_cuts([[WEAK] * 1_000] * 100, 0.001) == 0


def test_what_a_broker_delivers_again_is_no_round() -> None:
    for message in (ONE, WEAK):
        again = replace(message, headers=replace(message.headers, redelivered=True))
        assert receive([again] * (2 * MAX_FAST_ROUNDS), 0.01) == (0, 0)


def test_messages_that_go_no_further_are_not_counted() -> None:
    limit = LoopLimit()
    for number in range(2 * MAX_ROUNDS):
        found = limit.find([ONE], {0}, number * 0.01, WINDOW)
        assert not found.cut
        assert not found.marked


@pytest.mark.parametrize("message", [ONE, WEAK], ids=["marked", "weakest"])
@pytest.mark.parametrize("repeats", [1, 2 * MAX_ROUNDS])
def test_the_memory_of_the_rounds_is_limited(
    monkeypatch: pytest.MonkeyPatch, message: Message, repeats: int
) -> None:
    monkeypatch.setattr(loop_limit, "MAX_SIZE", MAX_SIZE // 32)

    def fill() -> LoopLimit:
        limit = LoopLimit()
        for number in range(5_000):
            each = replace(message, payload=b"%d" % (number // repeats * 2 + number % 2))
            limit.find([each], (), number * 0.0001, 60.0)
        return limit

    assert taken(fill) < MAX_SIZE // 32
