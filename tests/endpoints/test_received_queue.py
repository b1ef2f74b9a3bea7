"""The queue confirms in the order of arrival and redelivers in it, however batches are settled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.base import Batch
from gateway.endpoints.received_queue import MAX_BATCH_PARSED, ReceivedQueue, message_queue
from gateway.errors import NotConnectedError
from gateway.model.dead_letter_rule import PAYLOAD
from gateway.model.memory_size import messages_size
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, Settlement, rejected
from tests.waiting import PATIENCE

REFUSED = rejected(PAYLOAD, "reason")
OUTCOMES = st.sampled_from([ACCEPTED, RETRY, REFUSED])
LARGE = 1_000_000


def say(number: int) -> Message:
    return Message("t", str(number).encode())


def take(queue: ReceivedQueue[Message], limit: int = 100) -> Batch:
    batch = queue.take(limit, 0)
    assert batch is not None
    return batch


def numbers_of(batch: Batch) -> list[int]:
    return [int(bytes(m.payload)) for m in batch.messages]  # type: ignore[arg-type]  # bytes were put


class Model:
    """A slow and obvious model of the queue: which messages are finished. Mutable."""

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
    queue, model = message_queue(LARGE, counts.append), Model(total)
    queue.put([say(i) for i in range(total)])
    held: list[Batch] = []
    for _ in range(data.draw(st.integers(0, 20))):
        settles: bool = data.draw(st.booleans())
        if held and settles:
            batch = held.pop(data.draw(st.integers(0, len(held) - 1)))
            numbers = numbers_of(batch)
            assert numbers == sorted(numbers)
            settlements = [data.draw(OUTCOMES) for _ in numbers]
            batch.settle(settlements)
            model.settle(numbers, settlements)
        elif (taken := queue.take(data.draw(st.integers(1, 5)), 0)) is not None:
            held.append(taken)

        assert sum(counts) == model.confirmed()
    left = [say(i) for i, done in enumerate(model.finished) if not done]
    assert queue.held == messages_size(left)


def test_retried_messages_come_first_in_order_and_marked() -> None:
    queue = message_queue(LARGE)
    queue.put([say(0), say(1), say(2)])
    first, second = take(queue, 1), take(queue, 1)
    second.settle([RETRY])
    first.settle([RETRY])

    retried, rest = take(queue), take(queue)

    assert [(m.payload, m.headers.redelivered) for m in retried.messages] == [
        (b"0", True),
        (b"1", True),
    ]
    assert list(rest.messages) == [say(2)]


def recover(queue: ReceivedQueue[Message], batches: Sequence[Batch]) -> None:
    queue.recover()
    for batch in batches:
        batch.settle([ACCEPTED] * len(batch.messages))  # too late


def retry(queue: ReceivedQueue[Message], batches: Sequence[Batch]) -> None:
    del queue
    for batch in batches:
        batch.settle([RETRY] * len(batch.messages))


@pytest.mark.parametrize("redeliver", [recover, retry])
@given(st.permutations(range(4)))
def test_redelivered_messages_come_in_the_order_of_arrival(
    redeliver: Callable[[ReceivedQueue[Message], Sequence[Batch]], None], order: list[int]
) -> None:
    queue = message_queue(LARGE)
    queue.put([say(number) for number in range(8)])
    batches = [take(queue, 2) for _ in range(4)]

    redeliver(queue, [batches[number] for number in order])

    again = take(queue)
    assert numbers_of(again) == list(range(8))
    assert all(message.headers.redelivered for message in again.messages)
    assert queue.take(1, 0) is None
    assert queue.held == messages_size(again.messages)


def test_a_batch_has_a_bounded_number_of_bytes_so_that_what_follows_long_names_waits_for_few() -> (
    None
):
    queue = message_queue(10 * LARGE)
    long = [Message(f"{number}" + "n" * 60_000, b"x") for number in range(100)]
    queue.put([*long, *map(say, range(100))])

    batches = [take(queue, 1_000)]
    while batches[-1].messages[-1].address != "t" or len(batches) == 1:
        batches.append(take(queue, 1_000))

    assert [m for batch in batches for m in batch.messages][:100] == long
    assert all(messages_size(batch.messages, opaque=False) <= MAX_BATCH_PARSED for batch in batches)
    assert len(batches) < 15, "half of the bound in each is used at least"
    for batch in batches:
        batch.settle([ACCEPTED] * len(batch.messages))
    assert queue.held == sum(messages_size([m]) for m in queue.unsettled())


@pytest.mark.parametrize(
    "long",
    [
        Message("n" * 2 * MAX_BATCH_PARSED, b"0"),
        Message("t", b"0", headers=Headers(properties={"x": "v" * 2 * MAX_BATCH_PARSED})),
        Message("t", {"x": "v" * 2 * MAX_BATCH_PARSED}),
    ],
    ids=["name", "headers", "map"],
)
def test_one_message_may_have_more_bytes_than_a_batch(long: Message) -> None:
    queue = message_queue(LARGE)
    queue.put([long, say(1)])

    assert take(queue).messages == [long]
    assert numbers_of(take(queue)) == [1]


def test_payloads_of_bytes_do_not_divide_a_batch() -> None:
    """They are copied, not looked into."""
    queue = message_queue(LARGE)
    queue.put([Message("t", bytes(MAX_BATCH_PARSED)) for _ in range(8)])

    assert len(take(queue).messages) == 8


def test_it_is_full_until_what_was_received_is_settled() -> None:
    queue = message_queue(1)
    assert queue.wait_for_room(0)
    queue.put([say(0)])
    batch = take(queue, 1)
    assert queue.full
    assert not queue.wait_for_room(0)

    batch.settle([ACCEPTED])

    assert queue.wait_for_room(0)
    assert not queue.held


def test_unsettled_messages_are_those_that_wait_are_retried_or_are_handed_out() -> None:
    queue = message_queue(1)
    queue.put([say(0), say(1), say(2), say(3)])
    take(queue, 1).settle([ACCEPTED])
    take(queue, 1)
    take(queue, 1).settle([RETRY])

    payloads = {message.payload for message in queue.unsettled()}

    assert payloads == {say(number).payload for number in (1, 2, 3)}


def test_retried_messages_occupy_their_room_until_they_are_accepted() -> None:
    queue = message_queue(messages_size([say(0), say(1)]))
    queue.put([say(0), say(1)])
    for _ in range(5):
        take(queue, 2).settle([RETRY, RETRY])
        assert not queue.wait_for_room(0)
        assert queue.wait_for_room(0, or_retried=True)
    take(queue, 2).settle([RETRY, ACCEPTED])
    assert queue.wait_for_room(0)
    take(queue).settle([ACCEPTED])
    assert not queue.held


def test_a_put_waits_for_room_and_ends_with_the_connection() -> None:
    queue = message_queue(1)
    assert queue.put_when_room([say(0)])
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(queue.put_when_room, [say(1)])
        take(queue).settle([ACCEPTED])
        assert second.result(PATIENCE)
        third = pool.submit(queue.put_when_room, [say(2)])
        queue.fail(NotConnectedError("gone"))
        assert not third.result(PATIENCE)
    with pytest.raises(NotConnectedError, match="gone"):
        queue.take(1, 0)


def test_after_a_failure_the_surviving_messages_come_and_then_the_failure() -> None:
    counts: list[int] = []
    queue = message_queue(LARGE, counts.append)
    sure = Message("t", b"sure", Headers(mode=DeliveryMode.AT_LEAST_ONCE))
    queue.put([sure, sure, say(1)])
    early = take(queue, 1)
    queue.fail(NotConnectedError("gone"), lambda m: not m.headers.mode)
    early.settle([ACCEPTED])

    queue.put([sure, say(2)])  # the thread that reads may have more of the lost connection

    left = take(queue)

    assert list(left.messages) == [say(1), say(2)]
    left.settle([ACCEPTED] * 2)
    assert (counts, queue.held) == ([], 0)
    with pytest.raises(NotConnectedError, match="gone"):
        queue.take(10, 0)


def test_without_a_timeout_an_empty_queue_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[object] = []
    monkeypatch.setattr(threading.Condition, "wait", lambda *args: waits.append(args))

    assert message_queue(1_000).take(1, 0.0) is None
    assert waits == []
