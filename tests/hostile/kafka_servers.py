"""Behaviours of a hostile Kafka server: an honest script, with one answer changed.

The script has the oldest versions of requests that the library takes; their forms are those of the
Kafka protocol guide.
"""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
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

# It gets the port, and returns the parts of a body, or None for no answer.
Answer: TypeAlias = Callable[[int], Iterable[bytes] | None]
PRODUCE, METADATA, VERSIONS, INIT = 0, 3, 18, 22
FETCH, LIST, COMMIT, COMMITTED, COORDINATOR = 1, 2, 8, 9, 10
JOIN, HEARTBEAT, LEAVE, SYNC = 11, 12, 13, 14
_ABLE: Final = {
    PRODUCE: 3, FETCH: 4, LIST: 1, METADATA: 4, COMMIT: 2, COMMITTED: 1, COORDINATOR: 1, JOIN: 0,
    HEARTBEAT: 0, LEAVE: 0, SYNC: 0, VERSIONS: 0, INIT: 0,
}  # fmt: skip
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


def data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def coordinator(port: int, error: int = 0, host: str | bytes = "127.0.0.1") -> bytes:
    return struct.pack(">ih", 0, error) + text(None) + server(port, host)[:-2]


def joined(
    error: int = 0,
    *,
    protocol: str = "range",
    leader: str = "other",
    members: Iterable[bytes] = (),
    count: int | None = None,
) -> bytes:
    head = struct.pack(">hi", error, 1) + text(protocol) + text(leader) + text("m")
    return head + array(members, count)


def assigned(*places: tuple[str, int], error: int = 0, count: int | None = None) -> bytes:
    """Return the partitions that a group gives to its member; `t` and 0 by default."""
    found = [text(name) + array([struct.pack(">i", at)]) for name, at in places or [("t", 0)]]
    assignment = b"\0\0" + array(found, count) + b"\xff\xff\xff\xff"
    return struct.pack(">h", error) + data(assignment)


def committed(
    offset: int = -1, error: int = 0, note: str | bytes | None = "", name: str = "t"
) -> bytes:
    row = struct.pack(">iq", 0, offset) + text(note) + struct.pack(">h", error)
    return array([text(name) + array([row])])


def accepted(error: int = 0, name: str = "t", number: int = 0) -> bytes:
    """Return the answer to a commit."""
    return array([text(name) + array([struct.pack(">ih", number, error)])])


def listed(offset: int = 0, error: int = 0, name: str = "t") -> bytes:
    return array([text(name) + array([struct.pack(">ihqq", 0, error, -1, offset)])])


def fetched(
    records: bytes = b"",
    *,
    error: int = 0,
    end: int = 1,
    name: str = "t",
    number: int = 0,
    aborted: int | None = None,
    size: int | None = None,
) -> bytes:
    head = struct.pack(">ihqq", number, error, end, end) + array([], aborted)
    length = struct.pack(">i", len(records) if size is None else size)
    return b"\0\0\0\0" + array([text(name) + array([head + length + records])])


def varint(value: int) -> bytes:
    left, found = (value << 1) ^ (value >> 63), b""
    while left > 0x7F:  # seven bits
        found, left = found + bytes([left & 0x7F | 0x80]), left >> 7
    return found + bytes([left])


def record(
    value: bytes = b"honest",
    *,
    key: int | None = None,
    headers: int | None = None,
    names: Sequence[bytes] = (),
) -> bytes:
    """Return a record with a header `x` of each name.

    It claims a key of `key` bytes, and to have `headers` headers.
    """
    key_part = varint(1 if key is None else key) + b"k"
    body = b"\0\0\0" + key_part + varint(len(value)) + value
    body += varint(len(names) if headers is None else headers)
    body += b"".join(varint(len(each)) + each + varint(1) + b"x" for each in names)
    return varint(len(body)) + body


def batch(
    records: bytes | None = None,
    *,
    base: int = 0,
    count: int = 1,
    last: int = 0,
    magic: int = 2,
    attributes: int = 0,
    length: int | None = None,
    crc: int = 0,
    time: int = 0,
) -> bytes:
    """Return a batch; `crc` is added to the right checksum."""
    content = record() if records is None else records
    body = struct.pack(">hiqqqhii", attributes, last, time, time, -1, -1, -1, count) + content
    rest = struct.pack(">ibI", 0, magic, (crc32c(body) + crc) % (1 << 32)) + body
    return struct.pack(">qi", base, len(rest) if length is None else length) + rest


def crc32c(content: bytes) -> int:
    """Return the checksum of RFC 3720, appendix B.4."""
    found = 0xFFFFFFFF
    for byte in content:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def later(body: bytes | None, times: int, kind: int) -> Answer:
    """Answer so many times with `body`, and honestly from then on."""
    left = iter(range(times))
    parts = None if body is None else [body]
    return lambda port: HONEST[kind](port) if next(left, None) is None else parts


def first_honest(body: bytes | None, kind: int) -> Answer:
    """Answer honestly once, and with `body` from then on."""
    left = iter(range(1))
    parts = None if body is None else [body]
    return lambda port: parts if next(left, None) is None else HONEST[kind](port)


_offsets: Final = count()  # a request for an earlier one is served too: offsets may have holes
HONEST: Final[Mapping[int, Answer]] = {
    VERSIONS: lambda _: [versions()],
    METADATA: lambda port: [known(port)],
    INIT: lambda _: [producer()],
    PRODUCE: lambda _: [produced()],
    COORDINATOR: lambda port: [coordinator(port)],
    JOIN: lambda _: [joined()],
    SYNC: lambda _: [assigned()],
    HEARTBEAT: lambda _: [b"\0\0"],
    LEAVE: lambda _: [b"\0\0"],
    COMMITTED: lambda _: [committed()],
    COMMIT: lambda _: [accepted()],
    LIST: lambda _: [listed()],
    FETCH: lambda _: [fetched(batch(base=(offset := next(_offsets))), end=offset + 1)],
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
            elif kind in answers and (parts := answers[kind](port)) is not None:
                whole = b"".join(parts)
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
            whole = b"".join(HONEST[found](port) or ()) if found in HONEST else b""
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
        "topic-noise",
        script({METADATA: lambda port: [metadata([server(port)], [topic(), topic(b"\xff")])]}),
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


HUGE: Final = (1 << 31) - 1
_ELSEWHERE: Final = (("t", 99), ("t", -5), ("other", 0))  # no partition of the topic


def _joining() -> Iterable[tuple[str, Behaviour]]:
    """Yield answers about a group, after which a source has no partition to read."""
    yield "coordinator-silent", silent(COORDINATOR)
    yield "coordinator-empty", one_answer(COORDINATOR, b"")
    yield "coordinator-error", script({COORDINATOR: lambda port: [coordinator(port, 999)]})
    yield (
        "coordinator-host-noise",
        script({COORDINATOR: lambda port: [coordinator(port, 0, noise(5)[:99])]}),
    )
    yield "coordinator-without-port", script({COORDINATOR: lambda _: [coordinator(0)]})
    yield "join-silent", silent(JOIN)
    yield "join-empty", one_answer(JOIN, b"")
    yield "join-close", end_at(JOIN, close)
    yield "join-unknown-error", one_answer(JOIN, joined(999))
    yield "join-again-for-ever", one_answer(JOIN, joined(27))
    yield "join-unknown-member-for-ever", one_answer(JOIN, joined(25))
    yield "join-other-protocol", one_answer(JOIN, joined(protocol="noise"))
    yield "join-leader-of-nobody", one_answer(JOIN, joined(leader="m"))
    yield (
        "join-leader-of-noise",
        one_answer(JOIN, joined(leader="m", members=[text("m") + data(noise(6)[:64])])),
    )
    yield "join-members-huge-count", one_answer(JOIN, joined(count=HUGE))
    yield "join-members-negative-count", one_answer(JOIN, joined(count=-2))
    yield "sync-silent", silent(SYNC)
    yield "sync-empty", one_answer(SYNC, b"")
    yield "sync-unknown-error", one_answer(SYNC, assigned(error=999))
    yield "sync-again-for-ever", one_answer(SYNC, assigned(error=27))
    yield "sync-noise", one_answer(SYNC, b"\0\0" + data(noise(7)[:64]))
    yield "sync-huge-length", one_answer(SYNC, b"\0\0" + struct.pack(">i", HUGE))
    yield "sync-huge-count", one_answer(SYNC, assigned(count=HUGE))
    for name, number in _ELSEWHERE:
        yield f"sync-{name}-{number}", one_answer(SYNC, assigned((name, number)))
    yield "position-silent", silent(COMMITTED)
    yield "position-empty", one_answer(COMMITTED, b"")
    yield "position-unknown-error", one_answer(COMMITTED, committed(error=999))
    yield "position-other-topic", one_answer(COMMITTED, committed(name="other"))
    yield "position-huge-count", one_answer(COMMITTED, struct.pack(">i", HUGE))
    yield "ends-silent", silent(LIST)
    yield "ends-negative", one_answer(LIST, listed(-9))
    yield "ends-empty", one_answer(LIST, b"")
    yield "ends-unknown-error", one_answer(LIST, listed(error=999))
    yield "claim-silent", silent(COMMIT)
    yield "claim-empty", one_answer(COMMIT, b"")
    for error in (12, 22, 25, 27, 999):
        yield f"claim-error-{error}", one_answer(COMMIT, accepted(error))


def _outlived_fetches() -> Iterable[tuple[str, bytes | None]]:
    """Yield answers to a request for messages after which the library asks again; None is none."""
    yield "silent", None
    yield "empty", b""
    yield "no-leader", fetched(error=6)
    yield "other-topic", fetched(batch(), name="other")
    yield "other-partition", fetched(batch(), number=99)
    yield "end-negative", fetched(end=-9)
    yield "aborted-huge-count", fetched(batch(), aborted=HUGE)
    yield "huge-length", fetched(batch(), size=HUGE)
    yield "negative-length", fetched(batch(), size=-9)
    yield "cut", fetched(batch()[:40])
    yield "batch-huge-length", fetched(batch(length=HUGE))
    yield "batch-negative-length", fetched(batch(length=-9))
    yield "batch-short-length", fetched(batch(length=5))
    yield "records-negative-count", fetched(batch(count=-9))
    yield "record-huge-key", fetched(batch(record(key=HUGE)))
    yield "record-huge-headers", fetched(batch(record(headers=HUGE)))
    yield "header-names-noise", fetched(batch(record(names=[noise(10)[:50], b"\xff", b"", b"a\0"])))
    yield "header-names-equal", fetched(batch(record(names=[b"same"] * 10_000)))
    yield "header-name-of-megabytes", fetched(batch(record(names=[b"x" * MIB])))
    for time in (-1, -(1 << 63), (1 << 63) - 1):
        yield f"time-{time}", fetched(batch(time=time))
    yield "offset-back", fetched(batch(record(b"old"), base=-5))


def _ending_fetches() -> Iterable[tuple[str, bytes]]:
    """Yield answers to a request for messages after which the source connects again."""
    yield "unknown-error", fetched(error=999)
    yield "out-of-range", fetched(error=1)
    yield "batch-other-checksum", fetched(batch(record(b"wrong"), crc=1))
    yield "batch-other-form", fetched(batch(magic=9))
    for name, packing in ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("unknown", 7):
        yield f"batch-no-{name}", fetched(batch(noise(9)[:64], attributes=packing))
    yield "records-huge-count", fetched(batch(record(b"one"), count=HUGE))
    yield "offset-far-ahead", fetched(batch(record(b"far"), base=1 << 61))
    yield "offset-again", fetched(batch(record(b"one")))


def _reading() -> Iterable[tuple[str, Behaviour]]:
    yield "heartbeat-member-unknown", one_answer(HEARTBEAT, b"\0\x19")
    yield "fetch-close", end_at(FETCH, close)
    yield "fetch-length-huge", script({}, size=HUGE, of=FETCH)
    two = {METADATA: lambda port: [metadata([server(port), server(port, number=2)], [topic()])]}
    yield "fetch-length-huge-of-one-server", script(two, size=HUGE, of=FETCH)
    for name, content in _ending_fetches():
        yield f"fetch-{name}", one_answer(FETCH, content)


def _read_on() -> Iterable[tuple[str, Behaviour]]:
    """Yield answers that a source outlives: the honest message comes behind them."""
    yield "heartbeat-empty", one_answer(HEARTBEAT)
    yield "heartbeat-again", script({HEARTBEAT: later(b"\0\x1b", times=2, kind=HEARTBEAT)})
    yield "position-negative", one_answer(COMMITTED, committed(-7))
    yield "position-noise", one_answer(COMMITTED, committed(0, note=noise(8)[:1_000]))
    yield "position-behind-the-end", one_answer(COMMITTED, committed(1 << 62))
    yield "claim-other-topic", one_answer(COMMIT, accepted(name="other"))
    for name, content in _outlived_fetches():
        yield f"fetch-{name}", script({FETCH: later(content, times=2, kind=FETCH)})
    for error in (22, 25, 27, 999):
        yield f"commit-error-{error}", script({COMMIT: first_honest(accepted(error), COMMIT)})
    yield "commit-silent", script({COMMIT: first_honest(None, COMMIT)})
    yield "fetch-packed-long-message", script({FETCH: _packed_long()})


def _packed_long() -> Answer:
    """Answer once with a batch of few bytes whose message is longer than the source takes."""
    left = iter(range(1))

    def answer(port: int) -> Iterable[bytes] | None:
        if next(left, None) is None:
            return HONEST[FETCH](port)
        return [fetched(batch(gzip.compress(record(bytes(7 * MIB)), 1), attributes=1))]

    return answer


def settings_at(port: int) -> KafkaSettings:
    found = KafkaSettings(
        bootstrap_servers=(f"127.0.0.1:{port}",), connect_timeout=1.0, answer_timeout=1.0,
        session_timeout=1.0, max_message_in=4 * MIB,
    )  # fmt: skip
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
    settings_at,
    _honest,
    [
        *(Hostile(name, behave, Cost.LOG_IN) for name, behave in _log_in()),
        *(Hostile(name, behave, Cost.SENDING) for name, behave in _sending()),
        *(Hostile(name, behave, Cost.SOURCE) for name, behave in _joining()),
        *(Hostile(name, behave, Cost.READING) for name, behave in _reading()),
        *(Hostile(name, behave, Cost.NOTHING) for name, behave in _read_on()),
    ],
)
