"""Behaviours of a hostile Kafka server: an honest script, with one answer changed.

The script has the oldest versions of requests that the library takes; their forms are those of the
Kafka protocol guide.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.kafka import KafkaSettings
from tests.brokers.hostile_servers import (
    BLOCK,
    Behaviour,
    close,
    keep_silent,
    noise,
    say,
    say_for_ever,
)
from tests.brokers.kafka_server import KafkaServer, required
from tests.hostile.behaviours import Cost, Hostile, HostileWire

Answer: TypeAlias = Callable[[int], Iterable[bytes]]  # of the port; the parts of a body
PRODUCE, METADATA, VERSIONS, INIT = 0, 3, 18, 22
_ABLE: Final = {PRODUCE: 3, 1: 4, 2: 1, METADATA: 4, 10: 1, 11: 0, VERSIONS: 0, INIT: 0}
UNSUPPORTED_VERSION: Final = 35
MIB: Final = 1 << 20


def text(value: str | bytes | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    encoded = value.encode() if isinstance(value, str) else value
    return struct.pack(">h", len(encoded)) + encoded


def array(items: Iterable[bytes], count: int | None = None) -> bytes:
    """Return an array that claims to have `count` items."""
    found = [*items]
    return struct.pack(">i", len(found) if count is None else count) + b"".join(found)


def versions(error: int = 0, able: Mapping[int, int] = _ABLE, count: int | None = None) -> bytes:
    rows = (struct.pack(">hhh", key, 0, most) for key, most in able.items())
    return struct.pack(">h", error) + array(rows, count)


def server(port: int, host: str | bytes = "127.0.0.1", number: int = 1) -> bytes:
    return struct.pack(">i", number) + text(host) + struct.pack(">i", port) + text(None)


def partition(number: int = 0, leader: int = 1, error: int = 0) -> bytes:
    one = array([struct.pack(">i", leader)])
    return struct.pack(">hii", error, number, leader) + one + one


def topic(name: str | bytes = "t", *partitions: bytes, count: int | None = None) -> bytes:
    found = partitions or (partition(),)
    return struct.pack(">h", 0) + text(name) + b"\0" + array(found, count)


def metadata(
    servers: Iterable[bytes], topics: Iterable[bytes], cluster: str | bytes | None = "c"
) -> bytes:
    return b"\0\0\0\0" + array(servers) + text(cluster) + struct.pack(">i", 1) + array(topics)


def known(port: int) -> bytes:
    return metadata([server(port)], [topic()])


def produced(
    error: int = 0, offset: int = 0, name: str = "t", number: int = 0, throttle: int = 0
) -> bytes:
    row = struct.pack(">ihqq", number, error, offset, -1)
    return array([text(name) + array([row])]) + struct.pack(">i", throttle)


def producer(error: int = 0, number: int = 7, epoch: int = 0) -> bytes:
    return struct.pack(">ihqh", 0, error, number, epoch)


HONEST: Final[Mapping[int, Answer]] = {
    VERSIONS: lambda _: [versions()],
    METADATA: lambda port: [known(port)],
    INIT: lambda _: [producer()],
    PRODUCE: lambda _: [produced()],
}


def script(
    changed: Mapping[int, Answer],
    *,
    size: int | None = None,
    of: int = -1,
    correlation: int = 0,
) -> Behaviour:
    """Answer as an honest server does but for `changed`; a request without an answer gets none.

    An answer to a request of the kind `of` claims to have `size` bytes, and belongs to the request
    that is `correlation` later.
    """
    answers = {**HONEST, **changed}

    def behave(client: socket.socket) -> None:
        port = client.getsockname()[1]
        while head := client.recv(4, socket.MSG_WAITALL):
            body = client.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            kind, version, number = struct.unpack_from(">hhi", body)
            if kind == VERSIONS and version:
                whole = versions(UNSUPPORTED_VERSION, {VERSIONS: 0})
            elif kind in answers:
                whole = b"".join(answers[kind](port))
            else:
                continue
            claimed = size if size is not None and kind == of else len(whole) + 4
            number += correlation if kind == of else 0
            client.sendall(struct.pack(">ii", claimed, number) + whole)

    return behave


def end_at(kind: int, then: Behaviour) -> Behaviour:
    """Answer honestly until a request of a kind, and go on with `then`."""

    def behave(client: socket.socket) -> None:
        port = client.getsockname()[1]
        while head := client.recv(4, socket.MSG_WAITALL):
            body = client.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            found, version, number = struct.unpack_from(">hhi", body)
            if found == kind:
                then(client)
                return
            whole = b"".join(HONEST[found](port)) if found in HONEST else b""
            if found == VERSIONS and version:
                whole = versions(UNSUPPORTED_VERSION, {VERSIONS: 0})
            client.sendall(struct.pack(">ii", len(whole) + 4, number) + whole)

    return behave


def one_answer(kind: int, *parts: bytes) -> Behaviour:
    return script({kind: lambda _: parts})


def silent(kind: int) -> Behaviour:
    return end_at(kind, keep_silent)


def _log_in() -> Iterable[tuple[str, Behaviour]]:
    yield "close", close
    yield "silent", keep_silent
    yield "noise", say(noise(1))
    yield "noise-for-ever", say_for_ever(noise(2))
    yield "zeros-for-ever", say_for_ever(bytes(BLOCK))
    yield "http", say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    yield "tls-alert", say(b"\x15\x03\x01\x00\x02\x02\x28")
    for name, length in (
        ("huge", (1 << 31) - 1), ("negative", -1), ("zero", 0), ("three", 3), ("limit", 8 * MIB),
    ):  # fmt: skip
        yield f"length-{name}", say(struct.pack(">i", length) + bytes(64))
        yield f"versions-length-{name}", script({}, size=length, of=VERSIONS)
        yield f"metadata-length-{name}", script({}, size=length, of=METADATA)
    yield "versions-other-request", script({}, of=VERSIONS, correlation=1)
    yield "versions-error", one_answer(VERSIONS, versions(-1))
    yield "versions-none", one_answer(VERSIONS, versions(able={}))
    yield "versions-empty", one_answer(VERSIONS, b"")
    yield "versions-huge-count", one_answer(VERSIONS, versions(count=(1 << 31) - 1))
    yield "versions-negative-count", one_answer(VERSIONS, versions(count=-5))
    yield "versions-silent", silent(VERSIONS)
    yield "metadata-silent", silent(METADATA)
    yield "metadata-close", end_at(METADATA, close)
    yield "metadata-noise", end_at(METADATA, say_for_ever(noise(3)))
    yield "metadata-empty", one_answer(METADATA, b"")
    yield "metadata-other-request", script({}, of=METADATA, correlation=-1)
    huge = struct.pack(">i", (1 << 31) - 1)
    yield "servers-huge-count", one_answer(METADATA, b"\0\0\0\0" + huge)
    yield (
        "topics-huge-count",
        script({METADATA: lambda port: [metadata([server(port)], [])[:-4], huge]}),
    )
    yield (
        "partitions-huge-count",
        script({METADATA: lambda port: [metadata([server(port)], [topic(count=(1 << 31) - 1)])]}),
    )
    yield (
        "name-past-the-end",
        script(
            {METADATA: lambda port: [metadata([server(port)], [])[:-4], b"\0\0\0\1\0\0\x7f\xff"]}
        ),
    )


def _sending() -> Iterable[tuple[str, Behaviour]]:
    yield "producer-silent", silent(INIT)
    yield "producer-close", end_at(INIT, close)
    yield "producer-empty", one_answer(INIT, b"")
    yield "producer-fatal", one_answer(INIT, producer(31))
    yield "producer-unknown-error", one_answer(INIT, producer(999))
    yield "producer-negative", one_answer(INIT, producer(number=-1, epoch=-1))
    yield "answer-silent", silent(PRODUCE)
    yield "answer-close", end_at(PRODUCE, close)
    yield "answer-noise", end_at(PRODUCE, say_for_ever(noise(4)))
    yield "answer-empty", one_answer(PRODUCE, b"")
    yield "answer-length-huge", script({}, size=(1 << 31) - 1, of=PRODUCE)
    yield "answer-length-negative", script({}, size=-9, of=PRODUCE)
    yield "answer-other-request", script({}, of=PRODUCE, correlation=100)
    yield "answer-unknown-error", one_answer(PRODUCE, produced(999))
    yield "answer-out-of-order", one_answer(PRODUCE, produced(45))
    yield "answer-no-leader-for-ever", one_answer(PRODUCE, produced(6))
    yield "answer-no-replicas-for-ever", one_answer(PRODUCE, produced(19))
    yield "answer-huge-count", one_answer(PRODUCE, struct.pack(">i", (1 << 31) - 1))
    yield (
        "leader-unknown",
        script(
            {METADATA: lambda port: [metadata([server(port)], [topic("t", partition(leader=99))])]}
        ),
    )
    yield (
        "partitions-none",
        script({METADATA: lambda port: [metadata([server(port)], [topic(count=0)[:-26]])]}),
    )


def _settings(port: int) -> KafkaSettings:
    found = KafkaSettings(
        bootstrap_servers=(f"127.0.0.1:{port}",), connect_timeout=1.0, answer_timeout=1.0
    )
    return found.for_gateway("gateway", "kafka")


def _honest(request: pytest.FixtureRequest, stack: ExitStack) -> KafkaSettings:
    required()
    folder: Path = request.getfixturevalue("tmp_path_factory").mktemp("kafka")
    found = KafkaServer(folder)
    stack.callback(found.kill)
    found.start()
    found.make_topic("t")
    return found.settings


KAFKA: Final = HostileWire(
    "kafka",
    "kafka",
    "t:>",
    "t:x",
    _settings,
    _honest,
    [
        *(Hostile(name, behave, Cost.LOG_IN) for name, behave in _log_in()),
        *(Hostile(name, behave, Cost.SENDING) for name, behave in _sending()),
    ],
)
