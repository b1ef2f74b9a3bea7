"""A quorum queue of RabbitMQ 4 drops a message that was returned 20 times, without a policy.

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


@pytest.mark.parametrize("limited", [True, False])
def test_a_message_that_was_returned_often_is_still_there(
    rabbitmq: Vhost, request: pytest.FixtureRequest, *, limited: bool
) -> None:
    version = rabbitmq.server.api("GET", "overview")["rabbitmq_version"]
    since_4 = int(version.partition(".")[0]) >= 4
    if limited and since_4:
        reason = f"the quorum queue of {version} drops it: the endpoint sets no `x-delivery-limit`"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    if not limited:
        if not since_4:
            pytest.skip(f"RabbitMQ {version} has no limit by default")
        unlimited = {"pattern": ".*", "definition": {"delivery-limit": -1}, "apply-to": "queues"}
        rabbitmq.api("PUT", "policies", "/unlimited", unlimited)
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
