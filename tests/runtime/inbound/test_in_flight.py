"""A batch in flight: batches with its duplicates wait for it, and it forgets its messages."""

from __future__ import annotations

import weakref
from itertools import pairwise

import pytest

from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, Settlement
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.record.ledger import Ledger
from tests.runtime.received_batches import received_batch


def in_flight(batch: Batch) -> InFlightBatch:
    received = received_batch(batch.messages)
    return InFlightBatch(batch, received, Ledger({}))


def without_messages() -> InFlightBatch:
    return in_flight(Batch([], lambda _: None))


def test_a_batch_is_settled_with_its_last_answer_and_keeps_no_message() -> None:
    """The filter of duplicates finds it for long."""
    messages, settlements = [Message("a", b"1"), Message("b", b"2")], list[Settlement]()
    batch = in_flight(Batch(messages, settlements.extend))
    kept = weakref.ref(batch.received)
    batch.expect_answer()
    batch.release()
    assert not settlements

    batch.release()

    assert settlements == [ACCEPTED, ACCEPTED]
    assert kept() is None


def test_a_long_chain_of_waiting_batches_is_settled() -> None:
    batches, settled = [without_messages() for _ in range(10_000)], list[str]()
    for earlier, later in pairwise(batches):
        earlier.when_settled(later.release)
    batches[-1].when_settled(lambda: settled.append("the last"))

    batches[0].release()

    assert settled == ["the last"]


def test_a_failing_callback_does_not_block_the_others() -> None:
    first, second, settled = without_messages(), without_messages(), list[str]()

    def fail() -> None:
        raise OSError("the disk is full")

    first.when_settled(fail)
    first.when_settled(second.release)
    second.when_settled(lambda: settled.append("second"))
    with pytest.raises(OSError, match="disk"):
        first.release()

    assert settled == ["second"]
