"""Kafka, with the library confluent-kafka; `instance` names client and consumer group."""

from __future__ import annotations

from gateway.endpoints.kafka.made import count_held, end_made
from gateway.endpoints.kafka.sink import KafkaSink
from gateway.endpoints.kafka.source import open_source

__all__ = ["KafkaSink", "count_held", "end_made", "open_sink", "open_source"]

open_sink = KafkaSink
