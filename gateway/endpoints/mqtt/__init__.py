"""The MQTT endpoint, versions 3.1.1 and 5.0; `instance` becomes part of the client id."""

from __future__ import annotations

from gateway.endpoints.mqtt.made import count_held, end_made
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.endpoints.mqtt.source import MqttSource

__all__ = ["MqttSink", "MqttSource", "count_held", "end_made", "open_sink", "open_source"]

open_source, open_sink = MqttSource, MqttSink
