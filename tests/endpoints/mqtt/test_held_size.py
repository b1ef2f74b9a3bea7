"""Bytes that a source holds: names and properties count, so that its limit is one of memory."""

from __future__ import annotations

import tracemalloc

import pytest

from gateway.endpoints.mqtt import kept_session
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.received_queue import message_queue
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.wire.mqtt.packets import PacketDecoder
from tests.model.test_memory_size import taken

MANY = {f"{number:05}": "x" * 200 for number in range(800)}  # 180 KB
QOS_1 = DeliveryMode.AT_LEAST_ONCE


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Message("a", b"", Headers(QOS_1, properties=MANY)), id="properties"),
        pytest.param(Message("a", b"", Headers(QOS_1, properties={"p": [*MANY]})), id="repeated"),
        pytest.param(Message("x/" * 32_000, b"", Headers(QOS_1)), id="topic"),
        pytest.param(Message("a", b"", Headers(QOS_1, reply_to="x" * 64_000)), id="reply"),
        pytest.param(Message("a", b"", Headers(QOS_1, correlation_id=bytes(64_000))), id="data"),
        pytest.param(Message("a", b"", Headers(QOS_1, origin=(*MANY,))), id="origin"),
    ],
)
def test_a_queue_holds_as_much_memory_as_it_says(message: Message) -> None:
    encoder = PublishEncoder(MqttSettings(version="5", qos=1), BrokerLimits())
    encoder.now = 0
    encoder.add(message, 1)
    packet = b"".join(encoder.take())
    queue, decoder = message_queue(4_000_000), PacketDecoder("5", lambda: 0)
    tracemalloc.start()
    try:
        while not queue.full:
            queue.put(decoder.feed(packet).messages)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 1.3 * queue.held


def test_remembered_retained_topics_take_limited_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_session, "MAX_RETAINED_SIZE", 1 << 20)
    session = KeptSession()

    def fill() -> KeptSession:
        for number in range(100):
            topic = f"a/{number}/" + "x" * 60_000
            session.is_sent_again(Message(topic, b"", Headers(QOS_1, retained=True)))
        return session

    assert taken(fill) < 1 << 20
    first = Message(next(iter(session.retained)), b"", Headers(QOS_1, retained=True))
    assert session.is_sent_again(first)
    session.forget_retained([first, first])
    assert not session.is_sent_again(first)
    assert session.is_sent_again(first)
