"""Kafka, with the library confluent-kafka; `instance` names client and consumer group."""

from __future__ import annotations
