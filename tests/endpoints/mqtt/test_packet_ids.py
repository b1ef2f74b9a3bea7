"""All 65,535 packet ids in flight at once: the next message waits for one of them."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from gateway.endpoints.mqtt import open_sink
from gateway.endpoints.settings.base import U16
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import QUIET, Answer
from tests.waiting import PATIENCE

ONCE = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
BATCH = 1_000
MORE = 4_465  # messages beyond the ids
SIZES = {"5": 8, "3.1.1": 7}  # bytes of a PUBLISH to `a` without a payload
WELCOMES = {"5": b"\x20\x03\x00\x00\x00", "3.1.1": b"\x20\x02\x00\x00"}


def exactly(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = peer.recv(min(size - len(data), 1 << 16))
        assert part, "the endpoint hung up"
        data += part
    return bytes(data)


def packet_ids(data: bytes, size: int) -> list[int]:
    """Return the ids of equal PUBLISH packets."""
    return [int.from_bytes(data[at + 5 : at + 7]) for at in range(0, len(data), size)]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_no_packet_id_is_used_twice_while_all_are_in_flight(version: str) -> None:
    size, total = SIZES[version], U16 + MORE
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = MqttSettings(host="127.0.0.1", port=server.getsockname()[1], version=version)
        sink = open_sink(replace(settings, send_window=U16, answer_timeout=PATIENCE))
        opening = threading.Thread(target=sink.open)
        opening.start()
        peer, _ = server.accept()
        with peer:
            peer.settimeout(PATIENCE)
            head = exactly(peer, 2)
            exactly(peer, head[1])
            peer.sendall(WELCOMES[version])
            opening.join(PATIENCE)
            counts = [BATCH] * (total // BATCH)
            answers = [Answer() for _ in counts]

            def send() -> None:
                for count, answer in zip(counts, answers, strict=True):
                    sink.send([Message("a", b"", ONCE)] * count, answer)

            sending = threading.Thread(target=send)
            sending.start()
            first = packet_ids(exactly(peer, U16 * size), size)
            assert sorted(first) == list(range(1, U16 + 1))
            peer.settimeout(QUIET)
            with pytest.raises(TimeoutError):
                peer.recv(1)  # every id waits for its PUBACK
            peer.settimeout(PATIENCE)
            freed = first[1 : 2 * MORE : 2]  # not in the order of sending
            peer.sendall(b"".join(b"\x40\x02" + each.to_bytes(2) for each in freed))
            second = packet_ids(exactly(peer, MORE * size), size)
            assert sorted(second) == sorted(freed)
            left = [*second, *(set(first) - set(freed))]
            peer.sendall(b"".join(b"\x40\x02" + each.to_bytes(2) for each in left))
            for count, answer in zip(counts, answers, strict=True):
                assert answer.wait() == [ACCEPTED] * count
            sending.join(PATIENCE)
            sink.close()
