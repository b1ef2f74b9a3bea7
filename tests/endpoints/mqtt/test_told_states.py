"""The packets of a state: one at a time, within the limits of the broker, and one at the end."""

from __future__ import annotations

import pytest

from gateway.endpoints.base import Statement
from gateway.endpoints.mqtt import open_sink
from gateway.endpoints.mqtt.sink import MqttSink
from gateway.model.message import Message
from tests.endpoints.exchange import Answer
from tests.endpoints.mqtt.peer import ONCE, WELCOME, Peer, peer
from tests.waiting import PATIENCE

__all__ = ["peer"]  # a fixture

PROPERTIES = [
    pytest.param(b"\x02\x24\x00", id="maximum-qos-0"),
    pytest.param(b"\x03\x21\x00\x01", id="receive-maximum-1"),
]


def telling(peer: Peer, welcome: bytes = WELCOME) -> MqttSink:
    sink = open_sink(peer.settings)
    assert isinstance(sink, MqttSink)
    sink.statement = Statement("s", b"1", b"0")
    future = peer.opening(sink)
    peer.write(welcome)
    future.result(PATIENCE)
    return sink


def state(payload: bytes, packet_id: bytes = b"") -> bytes:
    """Return the PUBLISH of a state: of QoS 1 with a packet id, else of QoS 0."""
    body = b"\x00\x01s" + packet_id + b"\x00" + payload
    return bytes([0x33 if packet_id else 0x31, len(body)]) + body


def acknowledge(peer: Peer, packet_id: bytes) -> None:
    peer.write(b"\x40\x02" + packet_id)


def test_a_state_waits_for_the_answer_to_the_last_one(peer: Peer) -> None:
    sink = telling(peer)
    for connected in (True, False, True, False):
        sink.tell(connected=connected)
    assert peer.read() == state(b"1", b"\x00\x01")
    assert not peer.has_bytes()
    acknowledge(peer, b"\x00\x01")

    assert peer.read() == state(b"0", b"\x00\x02")
    acknowledge(peer, b"\x00\x02")
    assert not peer.has_bytes()
    sink.close()


def test_a_stop_waits_for_no_answer(peer: Peer) -> None:
    sink = telling(peer)
    sink.tell(connected=True)
    sink.close()

    assert peer.read() == state(b"1", b"\x00\x01")
    assert peer.read() == state(b"0")
    assert peer.read()[0] == 0xE0  # DISCONNECT


@pytest.mark.parametrize("properties", PROPERTIES)
def test_a_state_has_no_answer_where_the_broker_takes_none(peer: Peer, properties: bytes) -> None:
    sink = telling(peer, b"\x20" + bytes([2 + len(properties)]) + b"\x00\x00" + properties)
    sink.tell(connected=True)

    assert peer.read() == state(b"1")
    sink.close()


def test_messages_leave_one_packet_in_flight_to_the_state(peer: Peer) -> None:
    sink = telling(peer, b"\x20\x06\x00\x00\x03\x21\x00\x02")  # two unanswered packets at most
    first, second = Answer(), Answer()
    sink.send([Message("a", b"", ONCE)], first)
    assert peer.read()[5:7] == b"\x00\x01"
    sink.tell(connected=True)

    assert peer.read() == state(b"1", b"\x00\x02")
    acknowledge(peer, b"\x00\x01")
    acknowledge(peer, b"\x00\x02")
    first.wait()
    sink.send([Message("a", b"", ONCE)], second)
    assert peer.read()[5:7] == b"\x00\x03"
    acknowledge(peer, b"\x00\x03")
    second.wait()
    sink.close()
