"""Publishes the feed and counts messages at the targets, with plain clients."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import DriverMissingError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement

if TYPE_CHECKING:
    import paho.mqtt.client as paho

MAX_UNACKNOWLEDGED = 1000  # messages


class Publisher:
    """An MQTT client that publishes with QoS 1.

    Mutable: `acknowledged` is owned by the client's thread.
    """

    def __init__(self, port: int) -> None:
        self._client = _client("demo-feed", port)
        self._client.on_publish = self._on_publish
        self._slots = threading.Semaphore(MAX_UNACKNOWLEDGED)
        self.acknowledged = 0
        self._client.loop_start()

    def publish(self, feed: Iterable[tuple[str, bytes]]) -> int:
        """Publish all of `feed` and return the number of messages."""
        number = 0
        for topic, payload in feed:
            self._slots.acquire()
            self._client.publish(topic, payload, qos=1)
            number += 1
        return number

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(self, *_: object) -> None:
        self.acknowledged += 1
        self._slots.release()


def publish_tags(url: str, feed: Iterable[tuple[str, bytes]]) -> int:
    """Publish to a YAMI4 broker with confirmation; return the number of accepted messages."""
    accepted: list[Settlement] = []
    done = threading.Event()

    def settled(settlements: Sequence[Settlement]) -> None:
        accepted.extend(each for each in settlements if each is ACCEPTED)
        done.set()

    sink = make_sink(Yami4Settings(name="demo-tags", url=url))
    sink.open()
    try:
        confirmed = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
        sink.send([Message(tags, payload, confirmed) for tags, payload in feed], settled)
        done.wait(30)
    finally:
        sink.close()
    return len(accepted)


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
        raise DriverMissingError(
            "demo: paho-mqtt is not installed; run `pip install 'gateway[demo]'`"
        ) from error
    client = Client(CallbackAPIVersion.VERSION2, client_id=name)
    client.max_inflight_messages_set(MAX_UNACKNOWLEDGED)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    return client
