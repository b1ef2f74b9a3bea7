"""MQTT 3.1.1 and 5.0 on paho-mqtt; it moves topics and bytes and translates nothing."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.endpoints.mqtt.source import MqttSource
from gateway.endpoints.settings.mqtt import MqttSettings

__all__ = ["open_sink", "open_source"]


def open_source(
    settings: MqttSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> MqttSource:
    """A closed source; its client id is the settings' one and `-instance`, if there is any."""
    return MqttSource(settings, subscriptions, _client_id(settings, instance))


def open_sink(settings: MqttSettings, *, instance: str = "") -> MqttSink:
    """A closed sink; its client id ends in `-out`, for a broker knows one connection by one id."""
    return MqttSink(settings, f"{_client_id(settings, instance)}-out")


def _client_id(settings: MqttSettings, instance: str) -> str:
    base = settings.client_id or f"gateway-{settings.name}"
    return f"{base}-{instance}" if instance else base
