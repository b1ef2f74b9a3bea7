"""Behaviours of a hostile NATS server: scripts that answer one client."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.nats import NatsSettings
from tests.brokers.hostile_servers import BLOCK, Behaviour
from tests.brokers.nats_server import NatsServer, nats_command
from tests.hostile.behaviours import Cost, Hostile, HostileWire

HONEST: Final = {"headers": True, "max_payload": 1_048_576}
CREATED: Final = "2026-01-01T00:00:00Z"
CONFIG: Final = {"name": "T", "subjects": ["t.>"], "retention": "limits"}
STATE: Final = {"messages": 0, "bytes": 0, "first_seq": 1, "last_seq": 0, "consumer_count": 1}
PAIR: Final = {"consumer_seq": 0, "stream_seq": 0}
# Sent once the source asks for messages: it gets the subject and the number of its subscription.
Deliver: TypeAlias = Callable[[bytes, bytes], Iterator[bytes]]
_HUGE: Final = 1 << 70
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


def _greeting(name: str, line: bytes) -> Hostile:
    return Hostile(f"info-{name}", info(line), Cost.LOG_IN)


def _odd(of_stream: object = None, of_consumer: object = None) -> Behaviour:
    """Answer a question oddly, and deliver nothing."""
    return jetstream(once(lambda _subject, _sid: b""), of_stream, of_consumer)


def _answer(name: str, behave: Behaviour) -> Hostile:
    return Hostile(name, behave, Cost.SOURCE)


def _reading(name: str, deliver: Deliver) -> Hostile:
    return Hostile(name, jetstream(deliver), Cost.READING)


_RETURNED: Final = consumer(
    num_ack_pending=1_000_000_000,
    delivered={"consumer_seq": 0, "stream_seq": 1 << 62},
)
_GREETINGS: Final = [
    _greeting("list", b"INFO []\r\n"),
    _greeting("number", b"INFO 7\r\n"),
    _greeting("no-json", b"INFO {\r\n"),
    _greeting("no-utf-8", b"INFO \xff\r\n"),
    _greeting("nested", b"INFO " + b"[" * 30_000 + b"\r\n"),
    _greeting("long-number", b'INFO {"x": ' + b"9" * 5_000 + b"}\r\n"),
    _greeting("long-line", b"INFO {" + b" " * 100_000 + b"}\r\n"),
    _greeting("another-protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    *(
        _greeting(name, b"INFO %b\r\n" % json.dumps(HONEST | {"max_payload": most}).encode())
        for name, most in [
            ("max-payload-text", "big"),
            ("max-payload-0", 0),
            ("max-payload-negative", -1),
            ("max-payload-null", None),
            ("max-payload-half", 0.5),
            ("max-payload-huge", _HUGE),
            ("max-payload-list", []),
            ("max-payload-true", True),
        ]
    ),
]
_ANSWERS: Final = [
    _answer("stream-list", _odd(of_stream=b"[]")),
    _answer("stream-no-json", _odd(of_stream=b"{")),
    _answer("error-text", _odd(of_stream=b'{"error": "text"}')),
    _answer("error-code-text", _odd(of_stream=b'{"error": {"code": "x"}}')),
    _answer("state-number", _odd(of_stream={"state": 7})),
    _answer("first-seq-huge", _odd(of_stream=stream(first_seq=_HUGE))),
    _answer("last-seq-text", _odd(of_stream=stream(last_seq="x"))),
    _answer("last-seq-negative", _odd(of_stream=stream(last_seq=-1))),
    _answer("consumer-number", _odd(of_consumer=b"7")),
    _answer("consumer-empty", _odd(of_consumer={})),
    _answer("unanswered-huge", _odd(of_consumer=consumer(num_ack_pending=_HUGE))),
    _answer(
        "delivered-list",
        _odd(of_consumer=consumer(delivered={"consumer_seq": 1, "stream_seq": []})),
    ),
]
_READINGS: Final = [
    _reading("number-huge", once(lambda s, n: message(s, n, receipt(_HUGE)))),
    _reading("delivery-huge", once(lambda s, n: message(s, n, receipt(1, _HUGE)))),
    _reading(
        "number-of-3000-digits",
        once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1." + b"9" * 3_000 + b".1.1.0")),
    ),
    _reading("number-text", once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1.x.1.1.0"))),
    _reading("receipt-short", once(lambda s, n: message(s, n, b"$JS.ACK.T.c"))),
    _reading("receipt-absent", once(lambda s, n: b"MSG %b %b 1\r\n1\r\n" % (s, n))),
    _reading("error-without-text", once(lambda _s, _n: b"-ERR\r\n")),
    _reading("error-without-quotes", once(lambda _s, _n: b"-ERR text\r\n")),
    _reading("info-list-later", once(lambda _s, _n: b"INFO []\r\n")),
    _reading("info-no-json-later", once(lambda _s, _n: b"INFO {\r\n")),
    _reading("rubbish", once(lambda _s, _n: b"RUBBISH\r\n")),
    _reading("headers-longer", once(lambda s, n: b"HMSG %b %b 9 1\r\n1\r\n" % (s, n))),
    _reading("size-of-5000-digits", once(lambda s, n: b"MSG %b %b %b\r\n" % (s, n, b"9" * 5_000))),
    _reading(
        "size-of-2-to-63",
        endless(lambda s, n: b"MSG %b %b 9223372036854775807\r\n" % (s, n), bytes(1 << 20)),
    ),
    _reading(
        "headers-of-2-gib",
        endless(lambda s, n: b"HMSG %b %b 12 2147483647\r\n" % (s, n), bytes(1 << 20)),
    ),
    _reading("line-without-an-end", endless(lambda _s, _n: b"", b"x" * 65_536)),
    _reading("subject-without-an-end", endless(lambda _s, _n: b"MSG ", b"x" * 65_536)),
    _reading("unasked", unasked(bytes(1 << 16))),
    _reading(
        "subscription-of-5000-digits",
        once(lambda s, _n: b"MSG %b %b 1\r\n1\r\n" % (s, b"9" * 5_000)),
    ),
    _reading(
        "headers-without-a-version", once(lambda s, n: b"HMSG %b %b 4 4\r\nx\r\n\r\n\r\n" % (s, n))
    ),
    _reading("headers-of-0", once(lambda s, n: b"HMSG %b %b 0 1\r\n1\r\n" % (s, n))),
    _reading("size-negative", once(lambda s, n: b"MSG %b %b -1\r\n" % (s, n))),
    _reading("size-hexadecimal", once(lambda s, n: b"MSG %b %b 0x1\r\n1\r\n" % (s, n))),
    _reading("without-a-subscription", once(lambda s, _n: b"MSG %b\r\n" % s)),
    _reading("number-negative", once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1.-1.1.1.0"))),
    _reading("number-0", once(lambda s, n: message(s, n, receipt(0)))),
    _reading(
        "time-of-3000-digits",
        once(lambda s, n: message(s, n, b"$JS.ACK.T.c.1.1.1." + b"9" * 3_000 + b".0")),
    ),
    _reading("error-then-silence", once(lambda _s, _n: b"-ERR 'Stale Connection'\r\n")),
    _reading("pings-without-an-end", endless(lambda _s, _n: b"", b"PING\r\n" * 10_000)),
    # Held messages count in the window: they wait for others, which never come.
    Hostile(
        "messages-that-are-held",
        jetstream(unasked(bytes(1 << 16)), of_consumer=_RETURNED),
        Cost.READING,
    ),
]


def _settings(port: int) -> NatsSettings:
    return NatsSettings(
        url=f"nats://127.0.0.1:{port}", stream="T", answer_timeout=2.0, connect_timeout=2.0,
        consumer="c", receive_window_bytes=1 << 20, keepalive=1.0,
    )  # fmt: skip


def _honest(request: pytest.FixtureRequest, stack: ExitStack) -> NatsSettings:
    pytest.importorskip("nats")
    folder = request.getfixturevalue("tmp_path_factory").mktemp("nats")
    server = NatsServer(nats_command(), folder, [])
    stack.callback(server.kill)
    server.start()
    return NatsSettings(url=server.url, stream="T", create_stream=True, subjects=("t.>",))


NATS: Final = HostileWire(
    "nats",
    "nats",
    "t.>",
    "t.x",
    _settings,
    _honest,
    [
        *_GREETINGS,
        *_ANSWERS,
        *_READINGS,
        Hostile(
            "honest",
            jetstream(once(lambda s, n: message(s, n, receipt(1), b"honest"))),
            Cost.NOTHING,
        ),
    ],
    fewest=54,
)
