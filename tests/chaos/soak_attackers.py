"""Attackers of a soak, each on a raw connection of its own, at a given rate; a program of its own.

    python -m tests.chaos.soak_attackers --mqtt PORT --smf PORT --page PORT --rounds N --pause S

A round sends each attack once: 170,000 repeated user properties in one packet, names of 60 KB,
packets with properties of 180 KB, names that have to be shortened, half-open TLS connections, and
lists of empty lists. A packet of 250 MB is sent once in ten rounds. It prints a JSON line with the
number of each when the brokers have acknowledged everything.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Final

from gateway.wire.mqtt.packet_fields import encode_length
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import encode_parameter
from tests.brokers.smf_client import SmfClient
from tests.waiting import PATIENCE

HUGE: Final = 250 << 20  # bytes of the payload of the longest packet
HUGE_INTERVAL: Final = 10  # rounds
NAMES: Final = 40  # of 60 KB, a round
SHORTENED: Final = 20  # names of 60 KB, a round; the gateway writes each to its disk
LONG_PROPERTIES: Final = 15  # packets of 180 KB of properties, a round
HALF_OPEN: Final = 40  # connections a round
MAX_OPEN: Final = 400  # of them that the attacker keeps
EMPTY_LISTS: Final = 2  # messages of 65,000 empty lists, a round


def text(raw: bytes) -> bytes:
    return len(raw).to_bytes(2, "big") + raw


def user_properties(pairs: int, name: bytes, value: bytes) -> bytes:
    return (b"\x26" + text(name) + text(value)) * pairs


class Publisher:
    """A connection of MQTT 5.0 that publishes with QoS 1.

    Mutable: owned by one thread.
    """

    def __init__(self, port: int, client: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unanswered = 0
        body = text(b"MQTT") + b"\x05\x02\0\0\0" + text(client.encode())
        self._socket.sendall(b"\x10" + encode_length(len(body)) + body)
        self._read_packet(0x20)

    def publish(self, topic: str, properties: bytes, *payload: bytes) -> None:
        head = text(topic.encode()) + b"\0\1" + encode_length(len(properties)) + properties
        size = len(head) + sum(map(len, payload))
        self._socket.sendall(b"\x32" + encode_length(size) + head)
        for piece in payload:
            self._socket.sendall(piece)
        self._unanswered += 1

    def wait(self) -> int:
        """Wait for the acknowledgements; return how many came."""
        count, self._unanswered = self._unanswered, 0
        for _ in range(count):
            self._read_packet(0x40)
        return count

    def _read_packet(self, kind: int) -> None:
        """Read one short packet and check its type."""
        head = self._exactly(2)
        assert head[0] == kind, f"packet 0x{head[0]:02x}, expected 0x{kind:02x}"
        self._exactly(head[1])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data


def repeated_properties(port: int) -> Iterator[int]:
    publisher = Publisher(port, "repeated-properties")
    properties = user_properties(170_000, b"a", b"")
    while True:
        publisher.publish("bad/repeated", properties, b"x")
        yield publisher.wait()


def long_names(port: int) -> Iterator[int]:
    publisher, number = Publisher(port, "long-names"), count(1)
    while True:
        for _ in range(NAMES):
            publisher.publish(f"bad/{next(number)}/{'n' * 60_000}", b"", b"x")
        yield publisher.wait()


def huge_packets(port: int) -> Iterator[int]:
    publisher, pieces = Publisher(port, "huge-packet"), [bytes(1 << 20)] * (HUGE >> 20)
    while True:
        publisher.publish("bad/huge", b"", *pieces)
        yield publisher.wait()
        for _ in range(HUGE_INTERVAL - 1):
            yield 0


def long_properties(port: int) -> Iterator[int]:
    publisher, number = Publisher(port, "long-properties"), count(1)
    while True:
        for _ in range(LONG_PROPERTIES):
            properties = user_properties(3, b"%d" % next(number), b"v" * 60_000)
            publisher.publish("bad/properties", properties, b"x")
        yield publisher.wait()


def shortened_names(port: int) -> Iterator[int]:
    publisher, number = Publisher(port, "shortened-names"), count(1)
    while True:
        for _ in range(SHORTENED):
            publisher.publish(f"long/{next(number)}/{'s' * 60_000}", b"", b"x")
        yield publisher.wait()


def half_open_connections(port: int) -> Iterator[int]:
    """Begin TLS handshakes and never end them; the server may close them."""
    hello = b"\x16\x03\x01\x02\x00\x01"  # of a record of 512 bytes, which does not follow
    kept: deque[socket.socket] = deque()
    while True:
        for _ in range(HALF_OPEN):
            kept.append(socket.create_connection(("127.0.0.1", port), PATIENCE))
            kept[-1].sendall(hello)
            if len(kept) > MAX_OPEN:
                kept.popleft().close()
        yield HALF_OPEN


def empty_lists(port: int) -> Iterator[int]:
    client, number = SmfClient(port, "empty-lists"), count(1)
    payload = stream_of_empty_lists(65_000)
    while True:
        for _ in range(EMPTY_LISTS):
            client.send(stream_message(f"lists/{next(number)}", payload))
        assert client.is_alive()
        yield EMPTY_LISTS


def stream_of_empty_lists(number: int) -> bytes:
    """Return an SDT stream of `number` empty streams."""
    empty = b"\x2f\0\0\0\5"
    return b"\x2f" + (5 * number + 5).to_bytes(4, "big") + empty * number


def stream_message(topic: str, payload: bytes) -> bytes:
    """Return a direct message whose metadata declare a stream."""
    content = b"\x18\4\x0b\0" + b"\x2b\0\0\0\5"
    stream = b"\x2f" + (len(content) + 5).to_bytes(4, "big") + content
    metadata = b"\1" + len(stream).to_bytes(4, "big") + stream
    summary = b"\x25" + len(payload).to_bytes(4, "big") + b"\x45" + len(metadata).to_bytes(4, "big")
    parameters = encode_parameter(0x18, topic.encode() + b"\0", handling=2)
    parameters += encode_parameter(0x16, summary, handling=2)
    return encode_frame(Protocol.MESSAGE | 0x80, parameters, payload + metadata, time_to_live=255)


Attack = Callable[[int], Iterator[int]]
ATTACKS: Final[dict[Attack, str]] = {  # and the option with its port
    repeated_properties: "mqtt",
    long_names: "mqtt",
    huge_packets: "mqtt",
    long_properties: "mqtt",
    shortened_names: "mqtt",
    half_open_connections: "page",
    empty_lists: "smf",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--mqtt", "--smf", "--page", "--rounds"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--pause", type=float, required=True, help="seconds between two rounds")
    parser.add_argument("--only", action="append", help="an attack, by name; all when absent")
    args = parser.parse_args()
    attacks = [
        (attack, int(vars(args)[port]))
        for attack, port in ATTACKS.items()
        if not args.only or attack.__name__ in args.only
    ]
    stop = threading.Event()
    done: Counter[str] = Counter()

    def run(attack: Attack, port: int) -> None:
        began, sent = time.monotonic(), attack(port)
        for number in range(args.rounds):
            if stop.wait(max(0.0, began + number * args.pause - time.monotonic())):
                return
            done[attack.__name__] += next(sent)

    with ThreadPoolExecutor(len(attacks)) as pool:
        for future in [pool.submit(run, *each) for each in attacks]:
            try:
                future.result()
            except BaseException:
                stop.set()
                raise
    sys.stdout.write(f"{json.dumps(done)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
