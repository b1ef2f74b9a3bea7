"""A batch in flight: batches with its duplicates wait for it, and it forgets its messages."""

from __future__ import annotations

import weakref
from functools import partial
from itertools import pairwise

import pytest

from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.routing.route import WhenFull
from gateway.routing.router import Delivery, RouteMatch
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.record.batch_recorder import BatchRecorder
from tests.runtime.received_batches import received_batch


def in_flight(batch: Batch) -> InFlightBatch:
    received = received_batch(batch.messages)
    return InFlightBatch(batch, received, BatchRecorder({}))


def without_messages() -> InFlightBatch:
    return in_flight(Batch([], lambda _: None))


def test_a_batch_is_settled_with_its_last_answer_and_keeps_no_message() -> None:
    """The filter of duplicates finds it for long."""
    messages, settlements = [Message("a", b"1"), Message("b", b"2")], list[Settlement]()
    batch = in_flight(Batch(messages, settlements.extend))
    kept = weakref.ref(batch.received)
    batch.relayed((), 1)
    assert not settlements

    copies = OutboundBatch(batch, WhenFull.SLOW, messages, [0, 1], [Delivery(None, None, "a")] * 2)
    copies.settle_rest(ACCEPTED)
    batch.answered(copies)

    assert settlements == [ACCEPTED, ACCEPTED]
    assert kept() is None


def test_a_long_chain_of_waiting_batches_is_settled() -> None:
    batches, settled = [without_messages() for _ in range(10_000)], list[str]()
    for earlier, later in pairwise(batches):
        earlier.when_settled(partial(later.relayed, (), 0))
    batches[-1].when_settled(lambda: settled.append("the last"))

    batches[0].relayed((), 0)

    assert settled == ["the last"]


def test_a_failing_callback_does_not_block_the_others() -> None:
    first, second, settled = without_messages(), without_messages(), list[str]()

    def fail() -> None:
        raise OSError("the disk is full")

    first.when_settled(fail)
    first.when_settled(partial(second.relayed, (), 0))
    second.when_settled(lambda: settled.append("second"))
    with pytest.raises(OSError, match="disk"):
        first.relayed((), 0)

    assert settled == ["second"]


@pytest.mark.parametrize("awaited", [True, False])
def test_rows_that_no_broker_awaits_may_come_later(*, awaited: bool) -> None:
    message = Message("a", b"1")
    batch = Batch([message], lambda _: None, awaited=awaited)
    ways: list[str] = []
    recorder = BatchRecorder(
        {}, lambda *_: ways.append("now"), archive_later=lambda *_: ways.append("later")
    )
    in_flight = InFlightBatch(batch, received_batch([message]), recorder)

    in_flight.relayed([([0], [RouteMatch(None, ())])], 0)

    assert ways == ["now" if awaited else "later"]
