"""Behaviours of a hostile OpenWire server, behind ActiveMQ's client: an honest script, changed.

The script answers WireFormatInfo with neither cache nor tight encoding: its objects stand whole.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import repeat
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.jms import JmsSettings
from gateway.trial.brokers.activemq import FACTORY, client_jars
from tests.brokers.hostile_servers import (
    BLOCK,
    Behaviour,
    close,
    keep_silent,
    negotiated,
    noise,
    openwire_frame,
    openwire_info,
    openwire_text,
    say,
    say_for_ever,
)
from tests.hostile.behaviours import Cost, Hostile, HostileWire

MIB: Final = 1 << 20
CONNECTION, CONSUMER, TRANSACTION, KEEP_ALIVE = 3, 5, 7, 10  # types of commands
BYTES, TEXT = 24, 28
HUGE: Final = b"\x7f\xff\xff\xff"  # as a length or a count
Parts: TypeAlias = Iterable[bytes]
Answer: TypeAlias = Callable[[bytes], Parts]  # by the command, without its size
Deliver: TypeAlias = Callable[[bytes], Parts]  # by the id of the consumer
_BLOCKS: Final = repeat(bytes(MIB))
_ONES: Final = repeat(b"\xff" * BLOCK)


def response(command: bytes, kind: int = 30, rest: bytes = b"") -> bytes:
    """Answer a command."""
    return openwire_frame(bytes((kind,)) + bytes(5) + command[1:5] + rest)


def failure(name: str, text: str) -> bytes:
    """Return the exception of an ExceptionResponse."""
    return b"\1" + b"".join(b"\1" + openwire_text(each) for each in (name, text))


def commands(client: socket.socket) -> Iterator[bytes]:
    """Yield each command of the client, without its size."""
    heard = b""
    while data := client.recv(BLOCK):
        heard += data
        while len(heard) >= 4 and len(heard) >= (end := 4 + int.from_bytes(heard[:4], "big")):
            yield heard[4:end]
            heard = heard[end:]


def server(at: int, answer: Answer) -> Behaviour:
    """Be honest but for the `answer` to commands of the type `at`."""

    def behave(client: socket.socket) -> None:
        client.sendall(openwire_info())
        for command in commands(client):
            if command[0] == at:
                for part in answer(command):
                    client.sendall(part)
            elif command[0] == KEEP_ALIVE or command[5]:  # it wants a response
                client.sendall(response(command))

    return behave


def consumer_id(command: bytes) -> bytes:
    """Return the id of a consumer as it stands in a ConsumerInfo."""
    text = int.from_bytes(command[9:11], "big")
    return command[6 : 11 + text + 16]


def is_advisory(command: bytes) -> bool:
    return b"ActiveMQ.Advisory" in command


def message(
    text: str, *, kind: int = TEXT, content: bytes | None = None, more: bytes = b""
) -> bytes:
    """Return a message to the topic `t.x` with a text; `content` is its body, `more` its rest."""
    producer = b"\1\x7b\1" + openwire_text("ID:other") + (1).to_bytes(8, "big") * 2
    topic = b"\1\x65\1" + openwire_text("t.x")
    number = b"\1\x6e\0" + producer + (1).to_bytes(8, "big") * 2
    body = len(text).to_bytes(4, "big") + text.encode() if content is None else content
    return b"".join(
        (
            bytes((kind,)) + bytes(5), producer, topic, b"\0\0", number, b"\0\0", bytes(4), b"\0",
            b"\0", bytes(8), b"\4", b"\0", bytes(8), b"\0",
            b"\1" + len(body).to_bytes(4, "big") + body,
            more or b"\x00",
            b"\0\0\0", bytes(4), b"\0", bytes(8), b"\0\0\0\0", bytes(16), b"\0",
        )
    )  # fmt: skip


def dispatch(consumer: bytes, what: bytes) -> bytes:
    topic = b"\1\x65\1" + openwire_text("t.x")
    return openwire_frame(b"\x15" + bytes(5) + consumer + topic + b"\1" + what + bytes(4))


def delivering(deliver: Deliver) -> Behaviour:
    """Accept a consumer, and send what `deliver` returns for it."""

    def answer(command: bytes) -> Iterator[bytes]:
        yield response(command)
        if not is_advisory(command):
            yield from deliver(consumer_id(command))

    return server(CONSUMER, answer)


def _alone(name: str, behave: Behaviour) -> Hostile:
    return Hostile(name, behave, Cost.LOG_IN)


def _log_in(name: str, answer: Answer) -> Hostile:
    return Hostile(name, server(CONNECTION, answer), Cost.LOG_IN)


def _source(name: str, answer: Answer) -> Hostile:
    return Hostile(name, server(CONSUMER, answer), Cost.SOURCE)


def _reading(name: str, deliver: Deliver) -> Hostile:
    return Hostile(name, delivering(deliver), Cost.READING)


def _harmless(name: str, deliver: Deliver, cost: Cost = Cost.NOTHING) -> Hostile:
    def both(consumer: bytes) -> Iterator[bytes]:
        yield from deliver(consumer)
        yield dispatch(consumer, message("", kind=BYTES, content=b"honest"))

    return Hostile(name, delivering(both), cost)


def _sending(name: str, answer: Answer) -> Hostile:
    """Answer the commit of a message, the one command of its transaction that is answered."""
    behave = server(TRANSACTION, lambda command: answer(command) if command[5] else ())
    return Hostile(name, behave, Cost.SENDING)


def _flood(*parts: bytes, blocks: Parts = _BLOCKS) -> Callable[[bytes], Parts]:
    def flood(_: bytes) -> Iterator[bytes]:
        yield from parts
        yield from blocks

    return flood


_NO_CLASS: Final = failure("java.lang.NoSuchClass", "x")
_LONG: Final = failure("javax.jms.JMSException", "\x1b[2J\r\n" + "x" * 60_000)
_SECURITY: Final = failure("java.lang.SecurityException", "User name is invalid.")
_LOG_INS: Final = [
    _alone("closes", close),
    _alone("another-protocol", say(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    _alone("ones", say_for_ever(b"\xff" * BLOCK)),
    _alone("noise", say_for_ever(noise(1))),
    _alone("closes-later", negotiated(close)),
    _alone("noise-later", negotiated(say_for_ever(noise(2)))),
    _alone("silent-later", negotiated(keep_silent)),
    _alone("zeros-later", negotiated(say_for_ever(bytes(BLOCK)))),
    _alone("keeps-alive-for-ever", negotiated(say_for_ever(b"\0\0\0\x07\x0a\0\0\0\0\0\0" * 100))),
    _alone("frame-of-2-gib", say(openwire_info() + HUGE)),
    _alone("info-of-another-protocol", say(openwire_frame(b"\1ActiveXX\0\0\0\x0c\0"))),
    _alone("info-of-version-0", say(openwire_frame(b"\1ActiveMQ\0\0\0\0\0"))),
    _alone("info-cut-off", say(openwire_frame(b"\1Act"))),
    _log_in("no-answer", lambda _: []),
    _log_in("answer-to-another", lambda _: [response(b"\0\x7f\0\0\0\0")]),
    _log_in("answer-cut-off", lambda _: [openwire_frame(b"\x1e\0\0")]),
    _log_in("answer-of-no-type", lambda _: [openwire_frame(b"\xfe" + bytes(16))]),
    _log_in("answer-of-no-bytes", lambda _: [openwire_frame(b"")]),
    _log_in("password-refused", lambda c: [response(c, 31, _SECURITY)]),
    _log_in("refused-in-60000-bytes", lambda c: [response(c, 31, _LONG)]),
    _log_in("refused-with-a-class-of-nothing", lambda c: [response(c, 31, _NO_CLASS)]),
    _log_in("refusal-cut-off", lambda c: [response(c, 31, b"\1\1\xff\xff")]),
    _log_in("frame-of-2-gib-for-an-answer", _flood(HUGE)),
    _log_in("noise-for-an-answer", lambda _: [openwire_frame(noise(3)[:5_000])]),
]
_SOURCES: Final = [
    _source("consumer-without-an-answer", lambda _: []),
    _source("consumer-refused", lambda c: [response(c, 31, _SECURITY)]),
    _source("consumer-refused-in-60000-bytes", lambda c: [response(c, 31, _LONG)]),
]
_READINGS: Final = [
    _reading("frame-of-2-gib-later", _flood(HUGE)),
    _reading("frame-of-no-type", lambda _: [openwire_frame(b"\xfe" + bytes(16))]),
    # The library reads on behind a frame that is too short.
    _reading("frame-cut-off", _flood(openwire_frame(b"\x15\0"), blocks=_ONES)),
    _harmless("end", lambda _: [openwire_frame(b"\x0b" + bytes(5))]),
    _reading("message-cut-off", lambda c: [dispatch(c, message("x")[:40])]),
    _reading(
        "error-of-the-connection", lambda _: [openwire_frame(b"\x10" + bytes(5) + _LONG + b"\0")]
    ),
    *(_reading(f"noise-{n}", _flood(openwire_frame(noise(n)[:900]), blocks=_ONES)) for n in (4, 5)),
]
_HARMLESS: Final = [
    _harmless("honest", lambda _: []),
    _harmless("text-of-noise", lambda c: [dispatch(c, message("", content=noise(6)[:900]))]),
    _harmless("text-that-claims-2-gib", lambda c: [dispatch(c, message("", content=HUGE))]),
    _harmless(
        "map-of-noise", lambda c: [dispatch(c, message("", kind=25, content=noise(7)[:900]))]
    ),
    _harmless(
        "map-that-claims-2-to-31-entries",
        lambda c: [dispatch(c, message("", kind=25, content=HUGE))],
    ),
    _harmless(
        "stream-of-noise", lambda c: [dispatch(c, message("", kind=27, content=noise(8)[:900]))]
    ),
    _harmless(
        "object-of-noise", lambda c: [dispatch(c, message("", kind=26, content=noise(9)[:900]))]
    ),
    _harmless(
        "properties-that-claim-2-to-31-entries",
        lambda c: [dispatch(c, message("x", more=b"\1\0\0\0\4" + HUGE))],
    ),
    _harmless(
        "properties-of-noise",
        lambda c: [dispatch(c, message("x", more=b"\1\0\0\2\0" + noise(10)[:512]))],
    ),
    _harmless("messages-of-another", lambda _: [dispatch(b"\0", message("x"))] * 100),
    _harmless("responses-to-nothing", lambda _: [response(b"\0" + HUGE)] * 10_000),
    _harmless("keep-alives", lambda _: [openwire_frame(b"\x0a" + bytes(5))] * 10_000),
    _harmless("message-of-half-a-mib", lambda c: [dispatch(c, message("x" * (MIB // 2)))]),
    _harmless("message-of-two-mib", lambda c: [dispatch(c, message("x" * 2 * MIB))]),
]
_SENDINGS: Final = [
    _sending("silence", lambda _: []),
    _sending("answer-to-another-message", lambda _: [response(b"\0" + HUGE)]),
    _sending("frame-of-2-gib-for-a-receipt", _flood(HUGE)),
    _sending("frame-cut-off-for-a-receipt", lambda _: [openwire_frame(b"\x1e\0\0")]),
    _sending("end-for-a-receipt", lambda _: [openwire_frame(b"\x0b" + bytes(5)), b"\0"]),
]


def _settings(port: int) -> JmsSettings:
    return JmsSettings(
        urls=(f"tcp://127.0.0.1:{port}",), classpath=client_jars(), factory=FACTORY,
        connect_timeout=1.0, answer_timeout=1.0, close_timeout=0.5, receive_window_bytes=MIB,
    )  # fmt: skip


def _honest(request: pytest.FixtureRequest, _stack: ExitStack) -> JmsSettings:
    found: JmsSettings = request.getfixturevalue("session_activemq").settings()
    return found


OPENWIRE: Final = HostileWire(
    "jms",
    "openwire",
    "t.>",
    "t.x",
    _settings,
    _honest,
    [*_LOG_INS, *_SOURCES, *_READINGS, *_HARMLESS, *_SENDINGS],
)
