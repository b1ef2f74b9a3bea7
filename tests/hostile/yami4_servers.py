"""Behaviours of a hostile YAMI4 broker: an honest script, with one answer changed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count, repeat
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.errors import WireError
from gateway.trial.brokers.yami4 import Yami4Broker
from gateway.wire.yami4.frames import HEAD, FrameDecoder, encode_message
from gateway.wire.yami4.messages import encode_reply, encode_request, read_header
from gateway.wire.yami4.parameters import EMPTY, encode_parameters
from tests.brokers.hostile_servers import BLOCK, Behaviour, close, noise, say, say_for_ever
from tests.endpoints.yami4_scripted import refuse, reply, update
from tests.hostile.behaviours import Cost, Hostile, HostileWire

MIB: Final = 1 << 20
GET, SUBSCRIBE, PUBLISH, CONFIRM = b"get", b"subscribe", b"publish", b"publish_confirm"
PROBE: Final = b"_gateway.probe."
Parts: TypeAlias = Iterable[bytes]
Answer: TypeAlias = Callable[[bytes, int], Parts]  # by the object and the id of a request
Deliver: TypeAlias = Callable[[bytes], Parts]  # by the destination of the subscription
_BLOCKS: Final = repeat(bytes(MIB))
_LARGEST: Final = (1 << 31) - 4


def frame(number: int, header_size: int, payload: bytes, size: int | None = None) -> bytes:
    """Return a frame of message 7 that claims to have `size` bytes."""
    return HEAD.pack(7, number, header_size, len(payload) if size is None else size) + payload


def answer_to(message_id: int) -> bytes:
    """Return an answer to any number; a connection has none that is so large."""
    return encode_message(7, encode_reply(message_id), EMPTY)


def mark_of(name: bytes) -> bytes:
    return name.partition(PROBE)[2]


def _agree(_name: bytes, message_id: int) -> Parts:
    return [reply(message_id)]


def _echo(name: bytes, _message_id: int) -> Parts:
    """Send a probe back, as the broker of its subscriber."""
    return [update(b"gateway-" + mark_of(name), name, EMPTY)] if mark_of(name) else []


_HONEST: Final[Mapping[bytes, Answer]] = {
    GET: _agree, SUBSCRIBE: _agree, CONFIRM: _agree, PUBLISH: _echo,
}  # fmt: skip


def broker(at: bytes, answer: Answer, publish: Answer = _echo) -> Behaviour:
    """Be honest but for the `answer` to requests of the name `at`, and that to a `publish`."""
    others = {**_HONEST, PUBLISH: publish}

    return answering(lambda kind, name, i: (answer if kind == at else others[kind])(name, i))


def answering(answer: Callable[[bytes, bytes, int], Parts]) -> Behaviour:
    """Answer each request by its name, its object and its id."""

    def behave(client: socket.socket) -> None:
        decoder = FrameDecoder()
        with suppress(WireError):  # the endpoint has tried TLS
            while data := client.recv(BLOCK):
                for header, _ in decoder.feed(data):
                    found = read_header(header)
                    assert found is not None
                    for part in answer(found[0].message_name, found[0].object_name, found[1]):
                        client.sendall(part)

    return behave


def delivering(deliver: Deliver) -> Behaviour:
    """Accept the subscription, and deliver behind the answer that opens the source."""
    marks: list[bytes] = []

    def publish(name: bytes, message_id: int) -> Parts:
        marks.append(mark_of(name))
        return _echo(name, message_id)

    def answer(_name: bytes, message_id: int) -> Iterator[bytes]:
        yield reply(message_id)
        if marks:
            yield from deliver(b"gateway-" + marks.pop())

    return broker(GET, answer, publish)


def _log_in(name: str, answer: Answer) -> Hostile:
    """Answer the first questions of a sink and of a source."""
    return Hostile(name, answering(lambda _, name, i: answer(name, i)), Cost.LOG_IN)


def _source(name: str, at: bytes, answer: Answer) -> Hostile:
    return Hostile(name, broker(at, answer), Cost.SOURCE)


def _reading(name: str, *parts: bytes, then: Parts = ()) -> Hostile:
    return Hostile(name, delivering(lambda _: (*parts, *then)), Cost.READING)


def _reading_flood(name: str, *parts: bytes, blocks: Parts = _BLOCKS) -> Hostile:
    def deliver(_: bytes) -> Iterator[bytes]:
        yield from parts
        yield from blocks

    return Hostile(name, delivering(deliver), Cost.READING)


def _harmless(name: str, deliver: Deliver, cost: Cost = Cost.NOTHING) -> Hostile:
    def both(destination: bytes) -> Iterator[bytes]:
        yield from deliver(destination)
        yield update(destination, b"t.x", encode_parameters({"payload": b"honest"}))

    return Hostile(name, delivering(both), cost)


def _sending(name: str, answer: Answer) -> Hostile:
    return Hostile(name, broker(CONFIRM, answer), Cost.SENDING)


def _flood(*parts: bytes, blocks: Parts = _BLOCKS) -> Answer:
    def answer(_name: bytes, _message_id: int) -> Iterator[bytes]:
        yield from parts
        yield from blocks

    return answer


def _updates(name: bytes, _message_id: int) -> Iterator[bytes]:
    """Deliver messages of 64 KiB for ever to the subscriber that asks."""
    one = update(
        b"gateway-" + mark_of(name), b"t.x", encode_parameters({"payload": bytes(1 << 16)})
    )
    return repeat(one)


def _reading_open(name: str, make: Callable[[int], bytes]) -> Hostile:
    """Send frames of messages that never end, numbered from 1 on."""
    return Hostile(name, delivering(lambda _: map(make, count(1))), Cost.READING)


def _huge(destination: bytes) -> Iterator[bytes]:
    """Deliver a message of 64 MiB in frames of 4 KiB."""
    header = encode_request(destination, b"update t.x", 1)
    yield HEAD.pack(9, 1, len(header), len(header)) + header
    last = 1 + 64 * 256
    for number in range(2, last + 1):
        yield HEAD.pack(9, -number if number == last else number, 0, 4_096) + bytes(4_096)


_LOG_INS: Final = [
    Hostile("closes", close, Cost.LOG_IN),
    Hostile("another-protocol", say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Cost.LOG_IN),
    Hostile("ones", say_for_ever(b"\xff" * BLOCK), Cost.LOG_IN),
    Hostile("zeros", say_for_ever(bytes(BLOCK)), Cost.LOG_IN),
    Hostile("noise", say_for_ever(noise(1)), Cost.LOG_IN),
    _log_in("silent", lambda _name, _id: []),
    _log_in("answers-another", lambda _name, _id: [answer_to(1 << 40)]),
    _log_in("answers-number-0", lambda _name, _id: [reply(0)]),
    _log_in("answers-a-negative-number", lambda _name, _id: [reply(-1)]),
    _log_in("frame-of-2-gib", _flood(frame(-1, 4, b"", _LARGEST))),
    _log_in("frame-of-minus-4-bytes", lambda _name, _id: [frame(-1, 4, b"", -4)]),
    _log_in("frame-of-3-bytes", lambda _name, _id: [frame(-1, 0, b"abc")]),
    _log_in("header-longer-than-its-frame", lambda _name, _id: [frame(-1, 400, bytes(8))]),
    _log_in("header-of-minus-4-bytes", lambda _name, _id: [frame(-1, -4, bytes(8))]),
    _log_in("answers-to-others-for-ever", _flood(blocks=repeat(answer_to(1 << 40) * 1_000))),
    _log_in("unasked-messages-for-ever", lambda _name, _id: _updates(b"", 0)),
]
_SOURCES: Final = [
    _source("subscription-refused", SUBSCRIBE, lambda _name, i: [refuse(i, "Bad type.")]),
    _source("refused-in-1-mib", SUBSCRIBE, lambda _name, i: [refuse(i, "\x1b[2J" + "x" * MIB)]),
    _source("table-full", SUBSCRIBE, lambda _name, i: [refuse(i, "Subscription table full.")]),
    _source("subscription-without-an-answer", SUBSCRIBE, lambda _name, _id: []),
    _source("updates-instead-of-an-answer", SUBSCRIBE, _updates),
    _source("updates-of-another-instead-of-a-probe", PUBLISH, lambda n, i: _updates(b"x" + n, i)),
    _source("no-probe", PUBLISH, lambda _name, _id: []),
    _source(
        "probe-of-another", PUBLISH, lambda _n, _id: [update(b"gateway-x", PROBE + b"x", EMPTY)]
    ),
]
_READINGS: Final = [
    _reading("frame-of-0-bytes-later", frame(-1, 0, b"")),
    _reading("frame-of-minus-4-bytes-later", frame(-1, 4, b"", -4)),
    _reading("frame-of-5-bytes-later", frame(-1, 0, b"12345")),
    _reading_flood("frame-of-2-gib-later", frame(-1, 4, b"", _LARGEST)),
    _reading("header-longer-than-its-message", frame(1, 4_000, bytes(8)), frame(-2, 0, bytes(8))),
    _reading("two-ends", frame(-2, 4, bytes(8)), frame(-3, 4, bytes(8))),
    _reading("one-frame-twice", frame(1, 4, bytes(8)), frame(1, 4, bytes(8))),
    _reading("frame-behind-the-end", frame(-2, 4, bytes(8)), frame(3, 4, bytes(8))),
    _reading_open("messages-without-an-end", lambda n: HEAD.pack(n, 1, 4, 64) + bytes(64)),
    _reading_open("long-messages-without-an-end", lambda n: HEAD.pack(n, 1, 4, MIB) + bytes(MIB)),
    _reading_open("one-message-without-an-end", lambda n: HEAD.pack(7, n, 4, 8) + bytes(8)),
    *(_reading(f"noise-{seed}", noise(seed)) for seed in range(2, 7)),
]
_HARMLESS: Final = [
    _harmless("honest", lambda _: []),
    _harmless(
        "frames-of-no-message", lambda _: [frame(0, 0, bytes(8)), frame(-(2**31), 0, b"1234")]
    ),
    _harmless("updates-of-another", lambda _: [update(b"gateway-other", b"t.x", EMPTY)]),
    _harmless("body-of-noise", lambda d: [update(d, b"t.x", noise(7)[:4_000])]),
    _harmless("body-of-ones", lambda d: [update(d, b"t.x", b"\xff" * 4_000)]),
    _harmless("header-of-noise", lambda _: [encode_message(7, noise(8)[:400], EMPTY)]),
    _harmless("tags-of-no-utf-8", lambda d: [update(d, b"t.\xff\xfe", EMPTY)]),
    _harmless("tags-of-nothing", lambda d: [update(d, b"", EMPTY)]),
    _harmless("tags-of-64-kib", lambda d: [update(d, b"t." + b"x," * 32_000, EMPTY)]),
    _harmless(
        "500-tags-of-64-kib",
        lambda d: (update(d, b"t.%d" % n + b"x" * 65_000, EMPTY) for n in range(500)),
    ),
    _harmless("probes", lambda d: [update(d, PROBE + b"x", EMPTY)] * 10_000),
    _harmless("answers-to-nothing", lambda _: [reply(each) for each in range(20_000)]),
    _harmless("refusals-of-nothing", lambda _: [refuse(each, "x" * 99) for each in range(20_000)]),
    _harmless(
        "parameters-that-claim-2-to-31-bytes",
        lambda d: [update(d, b"t.x", b"\1\0\0\0\1\0\0\0k\0\0\0\5\0\0\0\xff\xff\xff\x7f")],
    ),
    _harmless(
        "parameters-that-claim-2-to-31-entries", lambda d: [update(d, b"t.x", b"\xff\xff\xff\x7f")]
    ),
    _harmless(
        "slices-of-one-byte",
        lambda d: (bytes((each,)) for each in update(d, b"t.x", encode_parameters({"a": "slow"}))),
    ),
    _harmless(
        "message-of-64-mib",
        _huge,
    ),
    _harmless(
        "more-than-the-window",
        lambda d: _updates(PROBE + d.removeprefix(b"gateway-"), 0),
        Cost.ROOM,
    ),
]


_SENDINGS: Final = [
    _sending("silence", lambda _name, _id: []),
    _sending("answer-to-another", lambda _name, _id: [answer_to(1 << 40)]),
    _sending("answer-to-number-0", lambda _name, _id: [reply(0)]),
    _sending("frame-of-2-gib-for-an-answer", _flood(frame(-1, 4, b"", _LARGEST))),
    _sending("answers-to-others", _flood(blocks=repeat(answer_to(1 << 40) * 1_000))),
    _sending("messages-that-nobody-asked-for", lambda _name, _id: _updates(b"", 0)),
    _sending(
        "message-of-no-kind", lambda _name, i: [encode_message(7, encode_reply(i)[:-8], EMPTY)]
    ),
    _sending("zeros-for-an-answer", lambda _name, _id: [bytes(64)]),
    _sending("noise-for-an-answer", lambda _name, _id: [noise(9)]),
]


def _settings(port: int) -> Yami4Settings:
    return Yami4Settings(
        url=f"tcp://127.0.0.1:{port}", connect_timeout=1.0, answer_timeout=1.0, heartbeat=1.0,
        receive_window_bytes=MIB, drain_timeout=0.1,
    )  # fmt: skip


def _honest(_request: pytest.FixtureRequest, stack: ExitStack) -> Yami4Settings:
    return Yami4Settings(url=stack.enter_context(Yami4Broker()).url)


YAMI4: Final = HostileWire(
    "yami4",
    "yami4",
    "t.*",
    "t.x",
    _settings,
    _honest,
    [*_LOG_INS, *_SOURCES, *_READINGS, *_HARMLESS, *_SENDINGS],
)
