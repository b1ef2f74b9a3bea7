"""Kafka, with the library confluent-kafka; `instance` names client and consumer group."""

from __future__ import annotations

from gateway.endpoints.kafka.sink import KafkaSink

__all__ = ["KafkaSink", "open_sink"]

open_sink = KafkaSink
