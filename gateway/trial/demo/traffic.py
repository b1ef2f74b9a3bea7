"""Publishes the feed, and counts messages at the targets with a plain client."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Self, TypeAlias

from gateway.endpoints.base import Sink
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import DriverMissingError
from gateway.extras import not_installed
from gateway.model.message import DeliveryMode, Headers, Message

if TYPE_CHECKING:
    import paho.mqtt.client as paho

BATCH = 1_000  # messages that are not acknowledged yet
CONFIRMED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
Feed: TypeAlias = Iterable[tuple[str, bytes]]


def feeding(environment: Mapping[str, str], topics: Feed, tags: Feed) -> list[threading.Thread]:
    """Return threads that publish the feeds to the MQTT and the YAMI4 broker of the demo."""
    port, version = int(environment["DEMO_MQTT_PORT"]), environment["DEMO_MQTT_VERSION"]
    plant = MqttSettings(name="demo-feed", client_id="demo-feed", port=port, version=version)
    yami4 = Yami4Settings(name="demo-tags", url=environment["DEMO_YAMI4_URL"])
    return [
        threading.Thread(target=_publish, args=each, daemon=True)
        for each in ((plant, topics), (yami4, tags))
    ]


def _publish(settings: EndpointSettings, feed: Feed) -> None:
    """Publish all of `feed` with confirmation, a batch at a time."""
    names = iter(feed)
    sink = make_sink(settings)
    try:
        sink.open()
        while batch := [Message(*each, CONFIRMED) for each in islice(names, BATCH)]:
            _send(sink, batch)
    finally:
        sink.close()


def _send(sink: Sink, batch: Sequence[Message]) -> None:
    done = threading.Event()
    sink.send(batch, lambda _: done.set())
    done.wait(30)


class Watcher:
    """An MQTT subscriber at the targets.

    Mutable: `arrived` is owned by the client's thread.
    """

    def __init__(self, port: int, filters: Sequence[str]) -> None:
        self.arrived: Counter[str] = Counter()  # by first level
        self._subscribed = threading.Event()
        self._client = _client("demo-watch", port)
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.subscribe([(each, 1) for each in filters])
        self._client.loop_start()
        self._subscribed.wait(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        self.arrived[message.topic.partition("/")[0]] += 1


def _client(name: str, port: int) -> paho.Client:
    try:  # `gateway --help` must work without it
        from paho.mqtt.client import Client  # noqa: PLC0415
        from paho.mqtt.enums import CallbackAPIVersion  # noqa: PLC0415
    except ImportError as error:
        raise DriverMissingError(f"demo: {not_installed('paho', 'demo')}") from error
    client = Client(CallbackAPIVersion.VERSION2, client_id=name)
    client.connect("127.0.0.1", port)
    return client
