"""AMQP 1.0 with a codec of its own (`gateway.wire.amqp`)."""

from __future__ import annotations

from gateway.endpoints.amqp.made import count_held, end_made
from gateway.endpoints.amqp.sink import AmqpSink
from gateway.endpoints.amqp.source import open_source

__all__ = ["AmqpSink", "count_held", "end_made", "open_sink", "open_source"]

open_sink = AmqpSink
