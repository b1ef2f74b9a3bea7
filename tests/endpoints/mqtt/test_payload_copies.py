"""How often a payload is copied between `recv` and `sendmsg`, by its size.

docs/architecture.md has these numbers. A copy is memory of the size of the payload, and all copies
of a step are alive at its peak: the test keeps what the step was given, and what it made.
"""

from __future__ import annotations

import ssl
import tracemalloc
from collections.abc import Callable

import pytest

from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.sockets import BLOCK, TLS_RECORD, NonBlockingSocket
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.runtime.delivery.rows import BatchOrigin
from gateway.wire.mqtt.packets import PacketDecoder
from tests.runtime.received_batches import received_batch

WHOLE = 1 << 20  # bytes of the payloads of a test
SIZES = [
    pytest.param(8 << 10, id="8 KiB"),
    pytest.param(64 << 10, id="64 KiB"),
    pytest.param(WHOLE, id="1 MiB"),
]
ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


def copies(step: Callable[[], object], size: int = WHOLE) -> int:
    """Return how often `step` allocates `size` bytes, at its peak."""
    tracemalloc.start()
    try:
        made = step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made
    return round(peak / size)


def messages(size: int) -> list[Message]:
    return [Message("a", bytes(size), ONCE) for _ in range(WHOLE // size)]


def packets(size: int) -> bytes:
    encoder = PublishEncoder(MqttSettings(version="3.1.1"), BrokerLimits())
    for number, message in enumerate(messages(size)):
        encoder.add(message, number + 1)
    return b"".join(encoder.take())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("block", [2 * WHOLE, 100_000], ids=["one block", "many blocks"])
def test_a_received_payload_is_copied_once_from_the_blocks(size: int, block: int) -> None:
    stream = packets(size)
    blocks = [stream[at : at + block] for at in range(0, len(stream), block)]
    decoder = PacketDecoder("3.1.1", lambda: 0)

    assert copies(lambda: [decoder.feed(each) for each in blocks]) == 1


@pytest.mark.parametrize("size", SIZES)
def test_a_payload_is_not_copied_for_its_rows(size: int) -> None:
    received = received_batch(messages(size), BatchOrigin("here", "mqtt", 7))

    assert copies(lambda: received.hashes) == 0


@pytest.mark.parametrize(
    ("size", "times"), [*zip([8 << 10, 16 << 10, WHOLE], [1, 0, 0], strict=True)]
)
def test_a_payload_below_16_kib_is_copied_once_to_be_sent(size: int, times: int) -> None:
    encoder, batch = PublishEncoder(MqttSettings(), BrokerLimits()), messages(size)

    def encoded() -> list[bytes]:
        for number, message in enumerate(batch):
            encoder.add(message, number + 1)
        return encoder.take()

    assert copies(encoded) == times


class Records:
    """A socket with TLS that has a block of records. Mutable: a read takes one."""

    def __init__(self) -> None:
        self._left = BLOCK // TLS_RECORD

    def fileno(self) -> int:
        return -1

    def recv(self, size: int) -> bytes:
        self._left -= 1
        assert self._left >= 0
        return bytes(size)


def test_the_records_of_tls_are_copied_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "SSLSocket", Records)  # a real one takes a peer
    socket = NonBlockingSocket(Records())  # type: ignore[arg-type]  # what it has of a socket

    assert copies(socket.read, BLOCK) == 2  # the records, and the block
