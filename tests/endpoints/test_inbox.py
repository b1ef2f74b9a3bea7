"""The inbox confirms in order of arrival whatever happens to its batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.base import Batch
from gateway.endpoints.inbox import Inbox, measure
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, Settlement, rejected

REFUSED = rejected("rule", "reason")
OUTCOMES = st.sampled_from([ACCEPTED, RETRY, REFUSED])


def say(number: int) -> Message:
    return Message("t", str(number).encode())


class Model:
    """The inbox again, slow and obvious: a list of what is not finished. Mutable."""

    def __init__(self, total: int) -> None:
        self.finished = [False] * total

    def settle(self, numbers: list[int], settlements: list[Settlement]) -> None:
        for number, settlement in zip(numbers, settlements, strict=True):
            self.finished[number] |= settlement.outcome is not Outcome.RETRY

    def confirmed(self) -> int:
        return next((i for i, done in enumerate(self.finished) if not done), len(self.finished))


@given(st.data())
def test_any_settling_confirms_the_oldest_run_that_is_finished(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 12))
    counts: list[int] = []
    inbox, model = Inbox(1_000_000, counts.append), Model(total)
    inbox.put([say(i) for i in range(total)])
    held: list[Batch] = []
    for _ in range(data.draw(st.integers(0, 20))):
        settles: bool = data.draw(st.booleans())
        if held and settles:
            batch = held.pop(data.draw(st.integers(0, len(held) - 1)))
            numbers = [int(bytes(m.payload)) for m in batch.messages]  # type: ignore[arg-type]  # bytes were put
            assert numbers == sorted(numbers)
            settlements = [data.draw(OUTCOMES) for _ in numbers]
            batch.settle(settlements)
            model.settle(numbers, settlements)
        elif (taken := inbox.take(data.draw(st.integers(1, 5)), 0)) is not None:
            held.append(taken)

        assert sum(counts) == model.confirmed()
    left = [say(i) for i, done in enumerate(model.finished) if not done]
    assert inbox.held == measure(left)


def test_retried_messages_come_first_in_order_and_marked() -> None:
    inbox = Inbox(1_000_000)
    inbox.put([say(0), say(1), say(2)])
    first, second = inbox.take(1, 0), inbox.take(1, 0)
    assert first is not None
    assert second is not None
    second.settle([RETRY])
    first.settle([RETRY])

    again, rest = inbox.take(10, 0), inbox.take(10, 0)
    assert again is not None
    assert rest is not None
    assert [(m.payload, m.headers.redelivered) for m in again.messages] == [
        (b"0", True),
        (b"1", True),
    ]
    assert list(rest.messages) == [say(2)]


def test_it_is_full_until_what_was_received_is_settled() -> None:
    inbox = Inbox(1)
    assert inbox.wait_for_room(0)
    inbox.put([say(0)])
    batch = inbox.take(1, 0)
    assert batch is not None
    assert inbox.full
    assert not inbox.wait_for_room(0)

    batch.settle([ACCEPTED])
    assert inbox.wait_for_room(0)


def test_after_a_failure_what_survives_comes_and_then_the_failure() -> None:
    counts: list[int] = []
    inbox = Inbox(1_000_000, counts.append)
    sure = Message("t", b"sure", Headers(mode=DeliveryMode.AT_LEAST_ONCE))
    inbox.put([sure, sure, say(1)])
    early = inbox.take(1, 0)
    assert early is not None
    inbox.fail(NotConnectedError("gone"), lambda m: not m.headers.mode)
    early.settle([ACCEPTED])

    left = inbox.take(10, 0)
    assert left is not None
    assert list(left.messages) == [say(1)]
    left.settle([ACCEPTED])
    assert (counts, inbox.held) == ([], 0)
    with pytest.raises(NotConnectedError, match="gone"):
        inbox.take(10, 0)
