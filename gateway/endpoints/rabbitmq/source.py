"""A RabbitMQ source: a durable queue bound to the patterns, and queues that patterns name."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.rabbitmq.intake import RabbitmqIntake
from gateway.endpoints.rabbitmq.wanted import wanted_queues
from gateway.endpoints.settings.rabbitmq import RabbitmqSettings
from gateway.endpoints.source_shell import Opening, SourceShell


def open_source(
    settings: RabbitmqSettings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source; the name of its queue has `instance` in it."""
    wanted = wanted_queues(settings, [each.pattern for each in subscriptions], instance)
    opening = Opening(lambda: RabbitmqIntake(wanted))
    return SourceShell(
        settings.name,
        opening.connect,
        wanted.memory,
        wanted.continuity,
        wanted.removes,
        interrupt=opening.interrupt,
    )
