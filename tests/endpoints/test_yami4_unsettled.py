from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.base import Batch
from gateway.endpoints.yami4.unsettled import Unsettled
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY

LIMIT = 100


def say(*numbers: int) -> list[Message]:
    return [Message("a", str(number)) for number in numbers]


def test_a_full_one_has_room_again_once_something_is_settled() -> None:
    unsettled = Unsettled(LIMIT)
    batch = unsettled.hand_out(say(1, 2), LIMIT)
    assert not unsettled.wait_for_room(0)

    batch.settle([ACCEPTED, ACCEPTED])

    assert unsettled.wait_for_room(0)
    assert unsettled.is_idle


def test_what_is_retried_counts_until_it_is_accepted() -> None:
    unsettled = Unsettled(LIMIT)
    for _ in range(5):
        unsettled.hand_out(say(1, 2), LIMIT).settle([RETRY, ACCEPTED])
        again = unsettled.hand_out_again()
        assert again is not None
        assert unsettled.wait_for_room(0)  # the half of it
        assert unsettled.hand_out_again() is None
        again.settle([ACCEPTED])
    assert unsettled.is_idle


@given(st.permutations(range(4)), st.booleans())
def test_retries_come_in_their_order(order: list[int], start_over: bool) -> None:
    unsettled = Unsettled(LIMIT)
    batches: list[Batch] = [unsettled.hand_out(say(2 * n, 2 * n + 1), 1) for n in range(4)]
    if start_over:
        unsettled.start_over()
    for number in order:
        batches[number].settle([ACCEPTED, ACCEPTED] if start_over else [RETRY, RETRY])

    again = unsettled.hand_out_again()

    assert again is not None
    assert [message.payload for message in again.messages] == list("01234567")
    assert all(message.headers.redelivered for message in again.messages)
