"""Publishes the feed and watches the far end, independent of the gateway's own endpoints."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Settlement

WINDOW = 1000  # messages published and not yet acknowledged


class Publisher:
    """A plain client that publishes with QoS 1; mutable, it counts what the broker acknowledged."""

    def __init__(self, port: int) -> None:
        self._client = _client("demo-feed", port)
        self._client.on_publish = self._on_publish
        self._room = threading.Semaphore(WINDOW)
        self.acknowledged = 0
        self._client.loop_start()

    def publish(self, feed: Iterable[tuple[str, bytes]]) -> int:
        """Publish all of `feed` and return how many; at most WINDOW are unanswered."""
        number = 0
        for topic, payload in feed:
            self._room.acquire()
            self._client.publish(topic, payload, qos=1)
            number += 1
        return number

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_publish(self, *_: object) -> None:
        self.acknowledged += 1
        self._room.release()


def publish_tags(url: str, feed: Iterable[tuple[str, bytes]]) -> int:
    """Publish to a YAMI4 broker with confirmation, and return how many it has taken."""
    taken: list[Settlement] = []
    done = threading.Event()

    def settled(settlements: Sequence[Settlement]) -> None:
        taken.extend(each for each in settlements if each is ACCEPTED)
        done.set()

    sink = make_sink(Yami4Settings(name="demo-tags", url=url))
    sink.open()
    try:
        confirmed = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
        sink.send([Message(tags, payload, confirmed) for tags, payload in feed], settled)
        done.wait(30)
    finally:
        sink.close()
    return len(taken)


class Watcher:
    """A plain subscriber at the far end; mutable, it counts what arrived."""

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client: object, _data: object, message: paho.MQTTMessage) -> None:
        self.arrived[message.topic.partition("/")[0]] += 1


def _client(name: str, port: int) -> paho.Client:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=name)
    client.max_inflight_messages_set(WINDOW)
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", port)
    return client
