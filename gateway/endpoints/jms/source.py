"""A JMS source: a consumer for each subscription, all of them over one connection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms.intake import open_intake
from gateway.endpoints.jms.wanted import WantedConsumers
from gateway.endpoints.settings.jms import JmsSettings
from gateway.endpoints.source_shell import SourceShell


class JmsSource(SourceShell):
    """Receives the messages that its subscriptions select; `counts` has what became of some."""

    def __init__(
        self, settings: JmsSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        wanted = WantedConsumers(settings, subscriptions, instance)
        connect = partial(open_intake, wanted)
        super().__init__(
            settings.name, connect, wanted.memory, wanted.continuity, wanted.removes, wanted.counts
        )
