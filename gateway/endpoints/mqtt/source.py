"""An MQTT source: one session with all subscriptions, at one broker after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.intake import open_intake
from gateway.endpoints.mqtt.wanted import WantedSession
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.source_shell import SourceShell


class MqttSource(SourceShell):
    """Receives the messages of its subscriptions."""

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        wanted = WantedSession(settings, subscriptions, instance)
        self.addresses = wanted.addresses
        super().__init__(
            settings.name,
            partial(open_intake, wanted),
            wanted.memory,
            wanted.continuity,
            wanted.removes,
            interrupt=wanted.addresses.close,
        )

    @property
    def address(self) -> str:
        """HOST:PORT of the connection, or of the last attempt."""
        return self.addresses.tried
