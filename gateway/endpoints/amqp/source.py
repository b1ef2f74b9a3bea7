"""A source of AMQP 1.0: a queue bound to the patterns, and addresses that patterns name."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.amqp.intake import AmqpIntake
from gateway.endpoints.amqp.wanted import wanted_addresses
from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.endpoints.source_shell import Opening, SourceShell


def open_source(
    settings: AmqpSettings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source; the name of its queue has `instance` in it."""
    selector = next((each.selector for each in subscriptions), "")  # that of each
    patterns = [each.pattern for each in subscriptions]
    wanted = wanted_addresses(settings, patterns, instance, selector)
    opening = Opening(lambda: AmqpIntake(wanted))
    return SourceShell(
        settings.name,
        opening.connect,
        wanted.memory,
        wanted.continuity,
        settings.removes,
        interrupt=opening.interrupt,
    )
