"""Behaviours of a hostile Solace broker: an honest one, some of whose answers are changed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.settings.solace import SolaceSettings
from gateway.wire.smf.assured_control import ControlType, decode_control
from gateway.wire.smf.frames import HEADER_SIZE, Protocol, SmfDecoder, encode_frame, protocol_of
from gateway.wire.smf.parameters import SUMMARY, TOPIC, encode_parameter
from gateway.wire.smf.responses import SmfResponse, encode_response
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.hostile_servers import (
    BLOCK,
    Behaviour,
    close,
    keep_silent,
    noise,
    say,
    say_for_ever,
    serving,
)
from tests.brokers.smf_client import direct
from tests.hostile.behaviours import Cost, Hostile, HostileWire

MIB: Final = 1 << 20
Parts: TypeAlias = Iterable[bytes]
# The client gets these parts in place of a frame of the honest broker.
Change: TypeAlias = Callable[[bytes], Parts]
_BLOCKS: Final = repeat(bytes(MIB))
_SUMMARY: Final = encode_parameter(SUMMARY, b"\x25\0\0\0\1\x45\0\0\0\1", handling=2)


@dataclass(frozen=True, slots=True)
class _Alone:
    """A server without a broker behind it."""

    behave: Behaviour


@dataclass(frozen=True, slots=True)
class _Changed:
    """A broker whose messages are changed. Without guaranteed messages a queue is not asked for."""

    at: Callable[[bytes], bool]
    changed: Change
    guaranteed: bool = False

    def change(self, answered: bytes) -> Parts:
        return self.changed(answered) if self.at(answered) else (answered,)


def frame(header: int, total: int, first: int = 3, protocol: int = 0x8D) -> bytes:
    """Return the head of a message that claims these sizes."""
    return bytes((first, protocol, 0, 1)) + header.to_bytes(4, "big") + total.to_bytes(4, "big")


def is_answer(answered: bytes, protocol: Protocol, kind: int | None = None) -> bool:
    if protocol_of(answered) != protocol:
        return False
    return kind is None or decode_control(answered).kind == kind


def instead(*parts: bytes, then: Parts = ()) -> Change:
    return lambda _answered: (*parts, *then)


def endless(*parts: bytes, blocks: Parts = _BLOCKS) -> Change:
    def change(_answered: bytes) -> Iterator[bytes]:
        yield from parts
        yield from blocks

    return change


def behind(*parts: bytes, then: Parts = ()) -> Change:
    def change(answered: bytes) -> Iterator[bytes]:
        yield answered
        yield from parts
        yield from then

    return change


@contextmanager
def serve(behave: _Alone | _Changed) -> Iterator[SolaceSettings]:
    """Run a behaviour, and yield settings for it."""
    with ExitStack() as stack:
        if isinstance(behave, _Changed):
            port = stack.enter_context(SmfBroker()).port
            alone, guaranteed = relaying(port, behave.change), behave.guaranteed
        else:
            alone, guaranteed = behave.behave, False
        port = stack.enter_context(serving(alone))
        yield SolaceSettings(
            url=f"tcp://127.0.0.1:{port}", connect_timeout=2.0, answer_timeout=2.0, password="p",  # noqa: S106
            keepalive=0.5, receive_window_bytes=MIB, guaranteed=guaranteed,
        )  # fmt: skip


def relaying(port: int, change: Change) -> Behaviour:
    """Relay between a client and a broker, whose messages are changed."""

    def behave(client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", port)) as broker:
            threading.Thread(target=_copy, args=(client, broker), daemon=True).start()
            decoder = SmfDecoder()
            while data := broker.recv(BLOCK):
                for each in decoder.feed(data):
                    for part in change(each):
                        client.sendall(part)

    return behave


def _copy(client: socket.socket, broker: socket.socket) -> None:
    with suppress(OSError):
        while data := client.recv(BLOCK):
            broker.sendall(data)
    with suppress(OSError):
        broker.shutdown(socket.SHUT_RDWR)


def _alone(name: str, behave: Behaviour) -> Hostile:
    return Hostile(name, _Alone(behave), Cost.LOG_IN)


def _is_login(answered: bytes) -> bool:
    return is_answer(answered, Protocol.CLIENT_CONTROL)


def _is_subscription(answered: bytes) -> bool:
    return is_answer(answered, Protocol.SUBSCRIPTION)


def _is_ack(answered: bytes) -> bool:
    return is_answer(answered, Protocol.ASSURED_CONTROL, ControlType.ACK)


def _log_in(name: str, change: Change) -> Hostile:
    return Hostile(name, _Changed(_is_login, change), Cost.LOG_IN)


def _source(name: str, change: Change) -> Hostile:
    return Hostile(name, _Changed(_is_subscription, change), Cost.SOURCE)


def _reading(name: str, change: Change) -> Hostile:
    return Hostile(name, _Changed(_is_subscription, change), Cost.READING)


def _harmless(name: str, *parts: bytes, then: Parts = (), cost: Cost = Cost.NOTHING) -> Hostile:
    def change(answered: bytes) -> Iterator[bytes]:
        yield answered
        yield from parts
        yield from then
        yield direct("t/x", b"honest")

    return Hostile(name, _Changed(_is_subscription, change), cost)


def _sending(name: str, change: Change) -> Hostile:
    return Hostile(name, _Changed(_is_ack, change, guaranteed=True), Cost.SENDING)


def refused(answered: bytes, code: int, text: str) -> Parts:
    """Refuse the log-in."""
    header = int.from_bytes(answered[4:8], "big")
    return [
        encode_frame(
            Protocol.CLIENT_CONTROL, encode_response(SmfResponse(code, text)), answered[header:]
        )
    ]


def cut(answered: bytes) -> Parts:
    """Cut the body of an answer off in its middle, with right sizes."""
    header = int.from_bytes(answered[4:8], "big")
    end = (header + len(answered)) // 2
    return [answered[:8] + end.to_bytes(4, "big") + answered[HEADER_SIZE:end]]


def long_fields(answered: bytes) -> Parts:
    """Let the first field of the log-in's answer be longer than the answer."""
    at = int.from_bytes(answered[4:8], "big") + 7
    return [answered[:at] + b"\x7f\xff\xff\xff" + answered[at + 4 :]]


_LOG_INS: Final = [
    _alone("closes", close),
    _alone("silent", keep_silent),
    _alone("another-protocol", say(b"HTTP/1.1 400 Bad Request\r\n\r\n")),
    _alone("ones", say_for_ever(b"\xff" * BLOCK)),
    _alone("zeros", say_for_ever(bytes(BLOCK))),
    _alone("noise", say_for_ever(noise(1))),
    _alone("another-version", say(frame(12, 12, first=7))),
    _alone("header-longer-than-its-message", say(frame(400, 12))),
    _alone("header-of-no-bytes", say(frame(0, 12) + bytes(64))),
    _alone("keeps-alive-for-ever", say_for_ever(frame(12, 12, protocol=0x0B) * 1_000)),
    _log_in("no-answer", instead()),
    _log_in("answer-of-4-gib", endless(frame(12, (1 << 32) - 1, protocol=0x0C))),
    _log_in("answer-cut-off", cut),
    _log_in("answer-without-a-body", instead(frame(12, 12, protocol=0x0C))),
    _log_in("refused-for-the-password", lambda a: refused(a, 401, "Unauthorized")),
    _log_in("refused-for-the-vpn", lambda a: refused(a, 403, "Message VPN Not Allowed")),
    _log_in("refused-for-now", lambda a: refused(a, 503, "Service Unavailable")),
    _log_in("refused-in-240-bytes", lambda a: refused(a, 400, "\x1b[2J\r\n" + "x" * 230)),
    _log_in("noise-as-an-answer", instead(noise(2))),
]
_SOURCES: Final = [
    _source("subscription-without-an-answer", instead()),
    _source("noise-for-a-subscription", instead(noise(3))),
    _source("message-of-4-gib-for-a-subscription", endless(frame(12, (1 << 32) - 1))),
]
_READINGS: Final = [
    _reading("version-0", behind(frame(12, 12, first=0))),
    _reading("header-longer-than-its-message-later", behind(frame(400, 12))),
    *(_reading(f"noise-{seed}", behind(noise(seed))) for seed in range(4, 7)),
]
_PAYLOADS: Final = [b"", b"\0", b"\xff" * 100, noise(7)[:1_000]]
_HARMLESS: Final = [
    _harmless("honest"),
    *(_harmless(f"payload-{n}", direct("t/x", each)) for n, each in enumerate(_PAYLOADS)),
    _harmless(
        "topic-of-no-utf-8",
        encode_frame(
            Protocol.MESSAGE | 0x80,
            encode_parameter(TOPIC, b"t/\xff\xfe\0", handling=2),
            b"x",
        ),
    ),
    _harmless("keep-alives", frame(12, 12, protocol=0x0B) * 10_000),
    _harmless("messages-of-an-unknown-protocol", frame(12, 12, protocol=0xBF) * 100),
    _harmless("message-of-20-mib", direct("t/x", bytes(20 * MIB))),
    _harmless(
        "500-topics-of-250-bytes",
        then=(direct(f"t/{n}" + "x" * 240) for n in range(500)),
    ),
]
_SENDINGS: Final = [
    _sending("silence", instead()),
    _sending("noise-for-a-receipt", instead(noise(8))),
    _sending("message-of-4-gib-for-a-receipt", endless(frame(12, (1 << 32) - 1))),
    _sending("receipt-cut-off", cut),
]


def _honest(_request: pytest.FixtureRequest, stack: ExitStack) -> SolaceSettings:
    pytest.importorskip("solace.messaging")
    broker = stack.enter_context(SmfBroker())
    return SolaceSettings(url=broker.url, password="p")  # noqa: S106  # of a broker of the tests


SOLACE: Final = HostileWire(
    "solace",
    "solace",
    "t/>",
    "t/x",
    lambda settings: settings,
    _honest,
    [*_LOG_INS, *_SOURCES, *_READINGS, *_HARMLESS, *_SENDINGS],
    serve,
)
