"""RabbitMQ, AMQP 0-9-1, with the library pika; the queue of a source has `instance` in its name."""

from __future__ import annotations

from gateway.endpoints.rabbitmq.made import count_held, end_made
from gateway.endpoints.rabbitmq.sink import RabbitmqSink
from gateway.endpoints.rabbitmq.source import open_source

__all__ = ["RabbitmqSink", "count_held", "end_made", "open_sink", "open_source"]

open_sink = RabbitmqSink
