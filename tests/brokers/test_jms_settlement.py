"""Settling, windows and prefetch of a JMS source."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import pytest

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Retention
from gateway.endpoints.jms import open_sink, open_source
from gateway.endpoints.jms.connection import connect
from gateway.endpoints.jms.jvm import open_library
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.brokers.controlled_activemq import ActiveMq
from tests.brokers.jms_pairs import PERSISTENT, broker, name, pair
from tests.endpoints.exchange import QUIET, collect, hold, opened, receive, send
from tests.memories import remember

__all__ = ["broker", "name"]  # fixtures

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("acknowledge", ["explicit", "client", "transacted"])
def test_settling_fifty_messages_leaves_the_others_unsettled(
    broker: ActiveMq, name: str, acknowledge: str
) -> None:
    queue, facts = f"queue:{name}", {"acknowledge": acknowledge, "batch": 50}
    with pair(broker, queue, **facts) as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(900)))
        settled = 0
        while settled < 50:
            batch = receive(source)
            batch.settle([ACCEPTED] * len(batch.messages))
            settled += len(batch.messages)
    with pair(broker, queue) as (source, _):
        left = [int(bytes(m.payload)) for m in collect(source, 900 - settled)]  # type: ignore[arg-type]  # bytes were sent

        assert source.receive(QUIET) is None

    assert left == list(range(settled, 900))


def test_settling_out_of_order_acknowledges_only_up_to_the_first_gap(
    broker: ActiveMq, name: str
) -> None:
    queue = f"queue:{name}"
    with pair(broker, queue, batch=1, acknowledge="explicit") as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(4)))
        batches = hold(source, 4)
        for place in (0, 2, 3):
            batches[place].settle([ACCEPTED])
    with pair(broker, queue) as (source, _):
        left = collect(source, 3)

    assert [m.payload for m in left] == [b"1", b"2", b"3"]
    assert all(m.headers.redelivered for m in left)


def test_a_source_with_a_full_window_waits_for_settlements(broker: ActiveMq, name: str) -> None:
    queue = f"queue:{name}"
    with pair(broker, queue, batch=10, receive_window=30, acknowledge="client") as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(50)))
        batches = hold(source, 30)

        assert source.receive(QUIET) is None
        for batch in batches:
            batch.settle([ACCEPTED] * len(batch.messages))
        assert len(collect(source, 50 - sum(len(b.messages) for b in batches))) > 0


@pytest.mark.parametrize("acknowledge", ["client", "transacted"])
def test_messages_acknowledged_together_are_acknowledged_once_per_window(
    broker: ActiveMq, name: str, acknowledge: str
) -> None:
    """Some message is always unsettled; library and server must still release the settled ones."""
    queue, facts = f"queue:{name}", {"acknowledge": acknowledge, "batch": 10, "receive_window": 30}
    under_way: deque[Batch] = deque()
    received = 0
    with pair(broker, queue, **facts) as (source, sink):
        send(sink, *(Message(queue, str(i).encode(), PERSISTENT) for i in range(200)))
        while received < 200:
            batch = source.receive(QUIET)
            if batch is not None:
                received += len(batch.messages)
                under_way.append(batch)
            if batch is None or len(under_way) > 1:
                oldest = under_way.popleft()
                oldest.settle([ACCEPTED] * len(oldest.messages))
    with pair(broker, queue) as (source, _):
        left = 0
        while (batch := source.receive(1)) is not None:
            left += len(batch.messages)

    assert 0 < left <= 30 + 10


@pytest.mark.parametrize("acknowledge", ["explicit", "client", "transacted"])
def test_a_message_that_stays_unsettled_comes_over_every_new_connection(
    broker: ActiveMq, name: str, acknowledge: str
) -> None:
    """ActiveMQ's library moves it to a dead letter queue of the server after six redeliveries."""
    queue = f"queue:{name}"
    with pair(broker, queue, acknowledge=acknowledge) as (source, sink):
        send(sink, Message(queue, b"x", PERSISTENT))
        hold(source, 1)
        for _ in range(8):
            source.open()
            (again,) = hold(source, 1)

            assert [(m.payload, m.headers.redelivered) for m in again.messages] == [(b"x", True)]


def test_a_durable_subscription_that_the_server_makes_again_is_no_kept_one(
    broker: ActiveMq, name: str, tmp_path: Path
) -> None:
    """Another pattern or selector under the same name deletes it with its messages (JMS 2.0)."""
    settings = broker.settings(client_id=name, durable="gw")
    found = []
    for pattern, selector in [("a", ""), ("a", ""), ("a", "x = 1"), ("a", "x = 1"), (">", "x = 1")]:
        source = open_source(settings, [Subscription(f"{name}.{pattern}", False, selector)])
        remember(source, tmp_path / "memory")
        with opened(source, sink := open_sink(settings)):
            kept = source.receive(QUIET) is not None
            found.append((source.continuity.retention, kept))
            source.continuity.on_told()
        with opened(sink):
            headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, properties={"x": 1})
            send(sink, Message(f"{name}.a", b"", headers))

    assert found == [
        (Retention.KEPT, False),
        (Retention.KEPT, True),
        (Retention.NEW, False),
        (Retention.KEPT, True),
        (Retention.NEW, False),
    ]


@pytest.mark.parametrize(("prefetch", "ahead"), [(0, 70), (3, 3)])
def test_the_library_prefetches_only_the_configured_number(
    broker: ActiveMq, prefetch: int, ahead: int
) -> None:
    """ActiveMQ's default of 32,766 prefetched messages would not fit into the heap."""
    settings = broker.settings(prefetch=prefetch, batch=70)
    connection = connect(settings, open_library(settings), "")
    policy = connection.connection.getPrefetchPolicy()
    connection.close(5)

    assert {policy.getQueuePrefetch(), policy.getTopicPrefetch()} == {ahead}
    assert policy.getDurableTopicPrefetch() == ahead
