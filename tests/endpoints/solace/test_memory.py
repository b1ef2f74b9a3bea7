"""Memory of received messages: decoded before they wait, and few of them inside the library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.endpoints.base import Batch
from gateway.model.message import Message
from tests.brokers.smf_client import SmfClient
from tests.endpoints.exchange import QUIET, opened, send
from tests.endpoints.solace.restartable import (
    RestartableBroker,
    guaranteed_message,
    restartable,
)
from tests.endpoints.solace.test_malformed_messages import frame_of, metadata_block, sdt_map
from tests.waiting import until

STREAM = 0x0B  # the form of a payload
EMPTY_LIST = b"\x2f\0\0\0\5"
LISTS = 60_000
WINDOW_BYTES = 4 << 20  # one message: each list takes 64 bytes and its place
BY_LIBRARY = 60  # messages: 50 in its queue, and some between its threads


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable() as system:
        yield system


def test_empty_lists_are_counted_as_they_are_in_memory(system: RestartableBroker) -> None:
    size = (5 * LISTS + 5).to_bytes(4, "big")
    payload = b"\x2f" + size + EMPTY_LIST * LISTS
    source = system.source("a/>", receive_window_bytes=WINDOW_BYTES)
    with opened(source), SmfClient(system.broker.port, "attacker") as client:
        for number in range(12):
            client.send(frame_of(f"a/{number}", payload, metadata_block(STREAM, sdt_map())))
        until(lambda: system.depth() == 12)
        received: list[Message] = []
        until(lambda: _take(source.receive(QUIET), received))
        while (batch := source.receive(QUIET)) is not None:
            _take(batch, received)

    assert len(received) == 1
    assert received[0].payload == {"stream": [[]] * LISTS}


def _take(batch: Batch | None, received: list[Message]) -> bool:
    """Keep the messages of a batch, which is not settled; return whether there was one."""
    received += batch.messages if batch is not None else ()
    return batch is not None


def test_the_broker_sends_few_messages_beyond_those_counted(system: RestartableBroker) -> None:
    source = system.source("a/>", receive_window_bytes=65_536, receive_window=4)
    with opened(source, sink := system.sink()):
        source.close()  # the queue remains
        send(sink, *(guaranteed_message("a/x", b"x" * 2_000) for _ in range(500)))
        source.open()
        seen: list[int] = []

        def is_still() -> bool:
            seen.append(system.broker.unsettled(system.queue))
            return len(seen) > 100 and seen[-1] > 0 and len(set(seen[-100:])) == 1

        until(is_still, "the flow is paused")

    assert seen[-1] <= 65_536 // 2_000 + BY_LIBRARY + 2 * 4
