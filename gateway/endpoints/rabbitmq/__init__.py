"""RabbitMQ: AMQP 0-9-1 with the client library pika."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.rabbitmq.sink import RabbitmqSink
from gateway.endpoints.rabbitmq.source import RabbitmqSource
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings


def open_source(
    settings: RabbitmqSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> RabbitmqSource:
    """Return a closed source; its queue is named after the gateway, the endpoint and `instance`."""
    return RabbitmqSource(settings, subscriptions, instance)


def open_sink(settings: RabbitmqSettings, *, instance: str = "") -> RabbitmqSink:
    """Return a closed sink; `instance` has no effect."""
    del instance
    return RabbitmqSink(settings)
