"""Behaviours of a hostile NATS server: scripts that answer one client."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from tests.brokers.hostile_servers import BLOCK, Behaviour

HONEST: Final = {"headers": True, "max_payload": 1_048_576}
CREATED: Final = "2026-01-01T00:00:00Z"
CONFIG: Final = {"name": "T", "subjects": ["t.>"], "retention": "limits"}
STATE: Final = {"messages": 0, "bytes": 0, "first_seq": 1, "last_seq": 0, "consumer_count": 1}
PAIR: Final = {"consumer_seq": 0, "stream_seq": 0}
# Sent once the source asks for messages: it gets the subject and the number of its subscription.
Deliver: TypeAlias = Callable[[bytes, bytes], Iterator[bytes]]
_SUB = re.compile(rb"SUB (\S+) +(?:\S+ )?(\d+)\r\n")
_REQUEST = re.compile(rb"PUB (\S+) (\S+) (\d+)\r\n")


def stream(**state: object) -> Mapping[str, object]:
    return {"config": CONFIG, "created": CREATED, "state": STATE | state}


def consumer(**facts: object) -> Mapping[str, object]:
    return {
        "stream_name": "T", "name": "c", "created": CREATED,
        "config": {"durable_name": "c"}, "delivered": PAIR,
        "ack_floor": PAIR, "num_ack_pending": 0, "num_pending": 0, "num_redelivered": 0,
        "num_waiting": 0, **facts,
    }  # fmt: skip


def info(line: bytes) -> Behaviour:
    """Say `line` first, and answer each PING."""

    def behave(client: socket.socket) -> None:
        client.sendall(line)
        while data := client.recv(BLOCK):
            client.sendall(b"PONG\r\n" * data.count(b"PING\r\n"))

    return behave


def jetstream(
    deliver: Deliver,
    of_stream: object = None,
    of_consumer: object = None,
) -> Behaviour:
    """Answer the questions of a source, and `deliver` when it asks for messages."""
    answers = {
        b"$JS.API.STREAM.INFO": stream() if of_stream is None else of_stream,
        b"$JS.API.CONSUMER": consumer() if of_consumer is None else of_consumer,
    }

    def behave(client: socket.socket) -> None:
        client.sendall(b"INFO " + json.dumps(HONEST).encode() + b"\r\n")
        heard, numbers = b"", dict[bytes, bytes]()
        while data := client.recv(BLOCK):
            client.sendall(b"PONG\r\n" * data.count(b"PING\r\n"))
            heard += data
            numbers |= dict(_SUB.findall(heard))
            for subject, reply, _size in _REQUEST.findall(heard):
                if b"MSG.NEXT" in subject:
                    with suppress(OSError):
                        for each in deliver(b"t.x", numbers[reply]):
                            client.sendall(each)
                    continue
                found = next((v for k, v in answers.items() if subject.startswith(k)), {})
                text = found if isinstance(found, bytes) else json.dumps(found).encode()
                for pattern, number in numbers.items():
                    if reply.startswith(pattern.removesuffix(b"*")):
                        client.sendall(b"MSG %b %b %d\r\n%b\r\n" % (reply, number, len(text), text))
            heard = heard[-4_096:] if not heard.endswith(b"\r\n") else b""

    return behave


def receipt(number: int, delivery: int = 1, stream_name: bytes = b"T") -> bytes:
    return b"$JS.ACK.%b.c.1.%d.%d.1700000000000000000.0" % (stream_name, number, delivery)


def message(subject: bytes, sid: bytes, reply: bytes, payload: bytes = b"1") -> bytes:
    return b"MSG %b %b %b %d\r\n%b\r\n" % (subject, sid, reply, len(payload), payload)


def once(make: Callable[[bytes, bytes], bytes]) -> Deliver:
    """Deliver what `make` returns for subject and number."""

    def deliver(subject: bytes, sid: bytes) -> Iterator[bytes]:
        yield make(subject, sid)

    return deliver


def endless(head: Callable[[bytes, bytes], bytes], block: bytes) -> Deliver:
    """Deliver a head, and blocks for ever."""

    def deliver(subject: bytes, sid: bytes) -> Iterator[bytes]:
        yield head(subject, sid)
        while True:
            yield block

    return deliver


def unasked(payload: bytes) -> Deliver:
    """Deliver messages for ever, asked for or not."""

    def deliver(subject: bytes, sid: bytes) -> Iterator[bytes]:
        number = 0
        while True:
            number += 1
            yield message(subject, sid, receipt(number, number), payload)

    return deliver
