"""A Kafka source: a member of a consumer group."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.kafka.intake import KafkaIntake
from gateway.endpoints.kafka.names import topics_of
from gateway.endpoints.kafka.wanted import SubscribedTopics
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.source_shell import Opening, SourceShell


def open_source(
    settings: KafkaSettings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source; the name of its group has `instance` in it."""
    topics = sorted({topics_of(each.pattern) for each in subscriptions})
    wanted = SubscribedTopics(settings, instance, topics)
    opening = Opening(lambda: KafkaIntake(wanted))
    return SourceShell(
        settings.name,
        opening.connect,
        wanted.memory,
        wanted.continuity,
        settings.removes,
        interrupt=opening.interrupt,
        backlog=lambda: wanted.backlog,
    )
