"""Behaviours of a hostile server of AMQP 1.0: an honest script, with one answer changed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, repeat
from typing import Any, Final, TypeAlias

import pytest

from gateway.endpoints.settings.amqp import AmqpSettings
from gateway.wire.amqp import frames, sections, values
from gateway.wire.amqp.values import FALSE, NULL, TRUE, composite, described, string, uint
from tests.brokers.hostile_servers import BLOCK, Behaviour, noise
from tests.brokers.rabbitmq_server import Vhost
from tests.hostile.behaviours import Cost, Hostile, HostileWire

MIB: Final = 1 << 20
FRAME: Final = 65_536  # bytes of the longest frame that the endpoint takes
Fields: TypeAlias = Sequence[Any]
Answer: TypeAlias = Callable[[Fields], Iterable[bytes]]
SASL_START, START, TO_SINK = "sasl", "amqp", "sink"
NO_FIELDS: Final[Fields] = ()
_WINDOW: Final = 1_000


def raw_frame(content: bytes, *, kind: int = 0, channel: int = 0, size: int | None = None) -> bytes:
    """Return a frame that claims to have `size` bytes."""
    return (
        struct.pack(">IBBH", len(content) + 8 if size is None else size, 2, kind, channel) + content
    )


def frame(code: int, fields: Sequence[bytes | None] = (), payload: bytes = b"") -> bytes:
    return raw_frame(composite(code, fields) + payload)


def sasl(code: int, fields: Sequence[bytes | None]) -> bytes:
    return raw_frame(composite(code, fields), kind=frames.SASL)


def nested(depth: int) -> bytes:
    """Return lists in each other."""
    return b"".join(
        struct.pack(">BII", 0xD0, 4 + 9 * (depth - at), 1) for at in range(depth)
    ) + struct.pack(">BII", 0xD0, 4, 0)


NULLS: Final = struct.pack(">BIIB", 0xF0, 5, 0xFFFF_FFFF, 0x40)  # an array without a byte each
DEEP: Final = nested(5_000)
PLAIN: Final = frames.SASL_HEADER + sasl(frames.MECHANISMS, [values.symbols(["PLAIN"])])
OPENED: Final = frame(frames.OPEN, [string("server"), None, uint(FRAME)])
BEGUN: Final = frame(frames.BEGIN, [values.ushort(0), uint(0), uint(_WINDOW), uint(_WINDOW)])


def error(condition: str = "amqp:internal-error", text: str = "x" * 10_000) -> bytes:
    return composite(frames.ERROR, [values.symbol(condition), string(text)])


def message(payload: bytes = b"1", to: str = "t.x") -> bytes:
    return composite(sections.PROPERTIES, [None, None, string(to)]) + sections.data_section(payload)


def transfer(
    number: int | None, payload: bytes | None = None, *, handle: int = 0, more: bool = False
) -> bytes:
    identity = [None, None] if number is None else [uint(number), values.binary(b"x")]
    fields = [uint(handle), *identity, uint(0), FALSE, values.boolean(more)]
    return frame(frames.TRANSFER, fields, message() if payload is None else payload)


HONEST: Final = partial(transfer, payload=message(b"honest"))


def attached(
    asked: Fields, *, refused: bool = False, name: str | None = None, filters: bytes | None = None
) -> bytes:
    """Return the answer to an `attach`: the same link, of the other side."""
    is_receiver = bool(asked[2])
    terms = [string("t"), *[None] * 6, filters]
    source = target = None if refused else composite(frames.SOURCE, terms)
    if target is not None:
        target = composite(frames.TARGET, [string("t")])
    fields = [
        string(asked[0] if name is None else name), uint(asked[1]), values.boolean(not is_receiver),
        None, None, source, target, None, None, uint(0) if is_receiver else None,
    ]  # fmt: skip
    return frame(frames.ATTACH, fields)


def credit(handle: int, messages: int = 100) -> bytes:
    """Return the credit for a link that sends, counted from its first message."""
    fields = [uint(0), uint(_WINDOW), uint(0), uint(_WINDOW), uint(handle), uint(0), uint(messages)]
    return frame(frames.FLOW, fields)


def outcome(first: int, last: int, state: bytes, *, settled: bool = True) -> bytes:
    fields = [TRUE, uint(first), uint(last), values.boolean(settled), state]
    return frame(frames.DISPOSITION, fields)


def say(*parts: bytes) -> Answer:
    return lambda _asked: parts


def _attach(asked: Fields) -> Iterable[bytes]:
    return [attached(asked)] if asked[2] else [attached(asked), credit(asked[1])]


_ACCEPTED: Final = composite(frames.ACCEPTED, [])
_HONEST: Final[dict[Any, Answer]] = {
    SASL_START: say(PLAIN),
    frames.INIT: say(sasl(frames.OUTCOME, [values.ubyte(0)])),
    START: say(frames.HEADER),
    frames.OPEN: say(OPENED),
    frames.BEGIN: say(BEGUN),
    frames.ATTACH: _attach,
    frames.TRANSFER: lambda asked: [outcome(asked[1], asked[1], _ACCEPTED)],
    frames.END: say(frame(frames.END)),
    frames.CLOSE: say(frame(frames.CLOSE)),
}


def amqp(at: object, answer: Answer) -> Behaviour:
    """Be honest but for the `answer` to the request `at`, each time that it comes."""
    return scripted({at: answer})


def scripted(script: Mapping[Any, Answer]) -> Behaviour:
    """Be honest but for the answers of a script, by the request."""

    def answers(code: Any, asked: Fields) -> Iterable[bytes]:  # noqa: ANN401  # or a header
        return script.get(code, _HONEST.get(code, say()))(asked)

    def behave(client: socket.socket) -> None:
        heard, fields = b"", NO_FIELDS
        while data := client.recv(BLOCK):
            heard += data
            while len(heard) >= 8:
                if heard.startswith(b"AMQP"):
                    size, code, fields = 8, SASL_START if heard[4] else START, NO_FIELDS
                else:
                    size = int.from_bytes(heard[:4], "big")
                    if len(heard) < size:
                        break
                    code, fields = _performative(heard[8:size])
                heard = heard[size:]
                for part in answers(code, fields):
                    client.sendall(part)

    return behave


def _performative(content: bytes) -> tuple[Any, Fields]:
    if not content:
        return None, ()
    found, _ = values.read_value(content)
    return found.descriptor, [*found.value, *[None] * 14]


def consuming(make: Callable[[], Iterable[bytes]]) -> Behaviour:
    """Attach the link, and send what `make` returns at the first credit."""
    calls = count()

    def answer(_asked: Fields) -> Iterable[bytes]:
        return make() if not next(calls) else ()

    return amqp(frames.FLOW, answer)


def _log_in(name: str, at: object, answer: Answer) -> Hostile:
    return Hostile(name, amqp(at, answer), Cost.LOG_IN)


def _reading(name: str, *parts: bytes) -> Hostile:
    return Hostile(name, consuming(lambda: parts), Cost.READING)


def _harmless(name: str, *parts: bytes, after: int = 1) -> Hostile:
    """Send `parts`, the messages with the numbers before `after`, and then an honest one."""
    return Hostile(name, consuming(lambda: [*parts, HONEST(after)]), Cost.NOTHING)


def _body(name: str, content: bytes) -> Hostile:
    return _harmless(name, transfer(0, content))


def _sending(name: str, answer: Answer) -> Hostile:
    return Hostile(name, amqp(frames.TRANSFER, answer), Cost.SENDING)


def endless(*before: bytes, block: bytes) -> Iterator[bytes]:
    return chain(before, repeat(block))


_HUGE: Final = raw_frame(b"", size=0xFFFF_FFFF)
_LOG_INS: Final = [
    *(_log_in(f"noise-{seed}", SASL_START, say(noise(seed))) for seed in range(5)),
    _log_in("amqp-0-9-1", SASL_START, say(b"AMQP\0\0\x09\x01")),
    _log_in("no-sasl", SASL_START, say(frames.HEADER)),
    _log_in("frame-of-4-gib", SASL_START,
            lambda _: endless(frames.SASL_HEADER, _HUGE, block=bytes(MIB))),
    _log_in("content-before-its-frame", SASL_START,
            say(frames.SASL_HEADER + struct.pack(">IBBH", 16, 1, 1, 0) + bytes(8))),
    _log_in("content-behind-its-frame", SASL_START,
            say(frames.SASL_HEADER + struct.pack(">IBBH", 16, 200, 1, 0) + bytes(8))),
    _log_in("frame-of-another-type", SASL_START,
            say(frames.SASL_HEADER + frame(frames.MECHANISMS, [NULL]))),
    _log_in("no-mechanisms", SASL_START,
            say(frames.SASL_HEADER + sasl(frames.MECHANISMS, [NULL]))),
    _log_in("other-mechanisms", SASL_START,
            say(frames.SASL_HEADER + sasl(frames.MECHANISMS, [values.symbols(["X"] * 5_000)]))),
    _log_in("mechanisms-nested", SASL_START,
            say(frames.SASL_HEADER + sasl(frames.MECHANISMS, [DEEP]))),
    _log_in("array-of-2-to-32-nulls", SASL_START,
            say(frames.SASL_HEADER + sasl(frames.MECHANISMS, [NULLS]))),
    _log_in("log-in-refused", frames.INIT, say(sasl(frames.OUTCOME, [values.ubyte(1)]))),
    _log_in("log-in-challenged", frames.INIT, say(sasl(frames.CHALLENGE, [values.binary(b"x")]))),
    _log_in("log-in-of-an-unknown-code", frames.INIT,
            say(sasl(frames.OUTCOME, [values.ubyte(255)]))),
    _log_in("log-in-with-a-text", frames.INIT, say(sasl(frames.OUTCOME, [string("ok")]))),
    _log_in("log-in-asked-again", frames.INIT, say(PLAIN[8:])),
    _log_in("close-in-place-of-open", frames.OPEN, say(frame(frames.CLOSE, [error()]))),
    _log_in("open-with-a-text-as-a-number", frames.OPEN,
            say(frame(frames.OPEN, [string("x"), None, string("y")]))),
    _log_in("open-nested", frames.OPEN, say(frame(frames.OPEN, [string("x"), *[None] * 8, DEEP]))),
    _log_in("begin-in-place-of-open", frames.OPEN, say(BEGUN)),
    _log_in("unknown-performative", frames.OPEN, say(frame(0x77))),
    _log_in("performative-of-a-name", frames.OPEN,
            say(raw_frame(b"\x00" + values.symbol("amqp:open:list") + b"\x45"))),
    _log_in("open-cut-off", frames.OPEN,
            say(raw_frame(composite(frames.OPEN, [string("x")])[:-1]))),
    _log_in("heartbeats-for-ever", frames.OPEN, lambda _: repeat(frames.EMPTY * 1_000)),
]  # fmt: skip
_SOURCES: Final = [
    Hostile(name, amqp(frames.ATTACH, answer), Cost.SOURCE)
    for name, answer in {
        "link-refused": lambda asked: [
            attached(asked, refused=True),
            frame(frames.DETACH, [uint(asked[1]), TRUE, error("amqp:not-found")]),
        ],
        "link-of-another-name": lambda asked: [attached(asked, name="x" * 1_000)],
        "link-detached-unattached": lambda _: [frame(frames.DETACH, [uint(0), TRUE])],
        "session-ended": lambda _: [frame(frames.END, [error()])],
        "connection-closed": lambda _: [frame(frames.CLOSE, [error()])],
        "no-answer": say(),
    }.items()
]
_READINGS: Final = [
    _reading("link-unknown", transfer(0, handle=9)),
    _reading("number-absent", transfer(None)),
    _reading("number-again", transfer(0), transfer(0)),
    _reading("number-behind", transfer(7), transfer(6)),
    _reading("message-in-a-message", transfer(0, more=True), transfer(1)),
    _reading("beyond-the-credit", *(transfer(at) for at in range(101))),
    _reading("beyond-the-window", *(transfer(0, bytes(100), more=True) for _ in range(2_000))),
    _reading("frame-of-4-gib-for-a-message", _HUGE, bytes(MIB)),
    _reading("frame-longer-than-agreed", transfer(0, bytes(FRAME))),
    _reading("transfer-nested", raw_frame(described(frames.TRANSFER, DEEP))),
    _reading("transfer-of-nulls", raw_frame(described(frames.TRANSFER, NULLS))),
    _reading("begin-again", BEGUN),
    _reading("open-again", OPENED),
    _reading("another-channel", raw_frame(composite(frames.END, []), channel=7)),
    _reading("end-of-the-session", frame(frames.END, [error()])),
    _reading("end-of-the-connection", frame(frames.CLOSE, [error()])),
    _reading("end-of-the-link", frame(frames.DETACH, [uint(0), TRUE, error()])),
    _reading("end-of-an-unknown-link", frame(frames.DETACH, [uint(5), TRUE])),
    _reading("credit-of-an-unknown-link",
             frame(frames.FLOW, [uint(0), uint(1), uint(0), uint(1), uint(5)])),
    *(_reading(f"noise-for-messages-{seed}", noise(seed)) for seed in range(5)),
    _reading("log-in-again", sasl(frames.OUTCOME, [values.ubyte(0)])),
]  # fmt: skip
_READINGS.append(
    Hostile(
        "link-attached-twice",
        amqp(frames.ATTACH, lambda asked: [attached(asked) * 2]),
        Cost.READING,
    )
)
_HARMLESS: Final = [
    _body("message-of-nothing", b"\x00"),
    _body("message-without-sections", b"x" * 1_000),
    _body("sections-out-of-order",
          sections.data_section(b"1") + composite(sections.PROPERTIES, [])),
    _body("section-twice", composite(sections.PROPERTIES, []) * 2 + sections.data_section(b"1")),
    _body("section-unknown", described(0x79, b"\x45") + sections.data_section(b"1")),
    _body("bodies-of-two-kinds", sections.data_section(b"1") + described(sections.VALUE, NULL)),
    _body("data-of-a-text", described(sections.DATA, string("x"))),
    _body("data-cut-off", sections.data_section(b"1" * 100)[:-50]),
    _body("header-of-texts",
          composite(sections.HEADER, [TRUE, string("x"), string("y")]) + message()),
    _body("annotations-nested", described(sections.ANNOTATIONS, DEEP) + message()),
    _body("value-nested", described(sections.VALUE, DEEP)),
    _body("value-of-nulls", described(sections.VALUE, NULLS)),
    _body("map-with-a-list-as-a-key",
          described(sections.APPLICATION, values.map_of({b"\x45": NULL})) + message()),
    _body("no-name", sections.data_section(b"1")),
    _body("name-of-no-utf-8",
          composite(sections.PROPERTIES, [None, None, b"\xa1\x02\xff\xfe"])
          + sections.data_section(b"1")),
    _body("properties-of-lists",
          composite(sections.PROPERTIES, [values.list_of([NULL])] * 13) + message()[30:]),
    _harmless("heartbeats", *repeat(frames.EMPTY * 1_000, 20), after=0),
    _harmless("message-aborted",
              frame(frames.TRANSFER, [uint(0), uint(0), values.binary(b"x"), uint(0), FALSE, FALSE,
                                      None, None, None, TRUE])),
    _harmless("outcomes-of-nothing", outcome(0, 0xFFFF_FFFF, _ACCEPTED), after=0),
    _harmless("number-2-to-31", transfer(5), after=(1 << 31) - 2),
]  # fmt: skip
_SENDINGS: Final = [
    _sending("silence", say()),
    _sending("outcome-of-another", say(outcome(5, 9, _ACCEPTED))),
    _sending("outcome-of-no-message", say(frame(frames.DISPOSITION, [TRUE]))),
    _sending("outcome-nested",
             say(frame(frames.DISPOSITION, [TRUE, uint(0), uint(0), TRUE, DEEP]))),
    _sending("outcome-of-its-own-role", say(frame(frames.DISPOSITION, [FALSE, uint(0), uint(0)]))),
    _sending("frame-of-4-gib-for-an-outcome", lambda _: endless(_HUGE, block=bytes(MIB))),
    _sending("session-ended-for-it", say(frame(frames.END, [error()]))),
    _sending("connection-closed-for-it", say(frame(frames.CLOSE, [error()]))),
    _sending("message-to-a-sink", say(transfer(0))),
]  # fmt: skip


def _settings(port: int) -> AmqpSettings:
    return AmqpSettings(
        url=f"amqp://guest:guest@127.0.0.1:{port}/", known="artemis", connect_timeout=2.0,
        answer_timeout=2.0, receive_window=100, receive_window_bytes=MIB,
    )  # fmt: skip


def _honest(request: pytest.FixtureRequest, stack: ExitStack) -> AmqpSettings:
    vhost = Vhost(request.getfixturevalue("session_rabbitmq_4"), "neighbour")
    vhost.api("PUT", "vhosts")
    stack.callback(vhost.api, "DELETE", "vhosts")
    return AmqpSettings(url=vhost.url)


AMQP: Final = HostileWire(
    "amqp", "amqp", "t.#", "t.x", _settings, _honest,
    [*_LOG_INS, *_SOURCES, *_READINGS, *_HARMLESS, *_SENDINGS],
)  # fmt: skip
