"""A NATS source: a durable pull consumer of JetStream, or subscriptions of core NATS."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.nats.consumer import KEEPS_UNREAD, consumer_name
from gateway.endpoints.nats.core_reader import CoreReader
from gateway.endpoints.nats.intake import NatsIntake, NatsReader
from gateway.endpoints.nats.jetstream_reader import JetStreamReader
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.source_shell import Opening, SourceShell


def open_source(
    settings: NatsSettings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source; `instance` names its consumer."""
    memory, consumer = SourceMemory(), consumer_name(settings, instance)
    patterns = [each.pattern for each in subscriptions]
    continuity = Continuity(Retention.KEPT if settings.jetstream else Retention.NOTHING)

    def reader() -> NatsReader:
        if settings.jetstream:
            return JetStreamReader(settings, patterns, consumer, memory, continuity)
        return CoreReader(settings, patterns, continuity)

    def removes(address: str) -> bool:
        """Return whether a queue group divides messages, or the stream keeps unread ones only."""
        return settings.removes(address) or bool(memory.get(KEEPS_UNREAD, bool, False))

    opening = Opening(lambda: NatsIntake(settings, reader()))
    return SourceShell(
        settings.name, opening.connect, memory, continuity, removes, interrupt=opening.interrupt
    )
