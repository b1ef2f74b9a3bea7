"""A quorum queue of RabbitMQ 4 drops what was returned 20 times, unless an argument forbids it.

A source returns what is unsettled at each stop and at each loss of its connection.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.endpoints.registry import make_sink
from gateway.model.outcome import ACCEPTED
from tests.brokers.rabbitmq_server import Vhost
from tests.endpoints.exchange import opened, receive, send
from tests.endpoints.test_rabbitmq import say, source_of

pytestmark = pytest.mark.broker

RETURNS = 21  # one more than RabbitMQ 4 permits by default
DROPPED = 10.0  # seconds; a message that is still there comes at once


def test_a_message_that_was_returned_often_is_still_there(rabbitmq: Vhost) -> None:
    settings = replace(rabbitmq.settings, queue_type="quorum")
    source, sink = source_of(settings), make_sink(settings)
    with opened(source, sink):
        assert send(sink, say(1)) == [ACCEPTED]
        receive(source)

    for _ in range(RETURNS - 1):
        with opened(source):
            receive(source)

    with opened(source):
        assert source.receive(DROPPED) is not None
