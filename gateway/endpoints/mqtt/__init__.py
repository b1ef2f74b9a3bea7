"""The MQTT endpoint, versions 3.1.1 and 5.0: functions by which the registry makes it."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.client_id import client_id
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.settings.mqtt import MqttSettings

__all__ = ["open_sink", "open_source"]


def open_source(
    settings: MqttSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> MqttSource:
    """Return a closed source; its client id is that of the settings, with `-instance` if given."""
    return MqttSource(settings, subscriptions, client_id(settings, instance))


def open_sink(settings: MqttSettings, *, instance: str = "") -> MqttSink:
    """Return a closed sink; its client id ends in `-out`, as a client id is for one connection."""
    return MqttSink(settings, client_id(settings, instance, "-out"))
