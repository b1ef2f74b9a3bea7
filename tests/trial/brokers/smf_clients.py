"""A small Solace broker with three queues, and clients that bind to them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.trial.brokers.smf import BrokerOptions, QueueOptions
from gateway.wire.smf.assured_control import (
    ControlField,
)
from gateway.wire.smf.responses import OK
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.smf_client import SmfClient

OPTIONS = BrokerOptions(
    users={"u": "p"},
    queues=(
        QueueOptions("q", ("q/>",)),
        QueueOptions("shared", ("s/>",), exclusive=False),
        QueueOptions("#DEAD_MSG_QUEUE"),
    ),
    max_subscriptions=10,
    max_message=100_000,
    queue_bytes=50_000,
)


@pytest.fixture
def broker() -> Iterator[SmfBroker]:
    with SmfBroker(options=OPTIONS) as running:
        yield running


@pytest.fixture
def client(broker: SmfBroker) -> Iterator[SmfClient]:
    with SmfClient(broker.port, "c1") as connected:
        yield connected


def flow_of(client: SmfClient) -> int:
    granted = client.open_publisher()
    assert granted.response == OK
    return granted.get_int(ControlField.FLOW_ID)


def bound(client: SmfClient, queue: str = "q") -> int:
    answer = client.bind(queue)
    assert answer.response == OK
    return answer.get_int(ControlField.FLOW_ID)
