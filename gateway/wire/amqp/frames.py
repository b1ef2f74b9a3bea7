"""Frames of AMQP 1.0: bytes to performatives and back.

A performative is received as a tuple of its fields, each of its type or None, and sent as bytes.
Source: OASIS AMQP 1.0, parts 2 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.errors import WireError
from gateway.wire.amqp.values import Described, composite, read_value

HEADER: Final = b"AMQP\x00\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"
MIN_FRAME: Final = 512  # bytes that each peer takes
HEAD: Final = struct.Struct(">IBBH")  # size, offset of the content in words, type, channel
AMQP, SASL = 0, 1  # types of frames
EMPTY: Final = HEAD.pack(8, 2, AMQP, 0)  # says that the connection lives
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
MECHANISMS, INIT, CHALLENGE, RESPONSE, OUTCOME = range(0x40, 0x45)
ERROR: Final = 0x1D
RECEIVED, ACCEPTED, REJECTED, RELEASED, MODIFIED = range(0x23, 0x28)  # states of a delivery
OPTIONS_OF_OUTCOMES: Final = (
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
)
SOURCE, TARGET = 0x28, 0x29


class Open(NamedTuple):
    container_id: str | None = None
    hostname: str | None = None
    max_frame_size: int | None = None
    channel_max: int | None = None
    idle_time_out: int | None = None  # milliseconds
    outgoing_locales: Any = None
    incoming_locales: Any = None
    offered_capabilities: Any = None
    desired_capabilities: Any = None
    properties: dict[Any, Any] | None = None


class Begin(NamedTuple):
    remote_channel: int | None = None
    next_outgoing_id: int | None = None
    incoming_window: int | None = None
    outgoing_window: int | None = None
    handle_max: int | None = None


class Attach(NamedTuple):
    name: str | None = None
    handle: int | None = None
    role: bool | None = None  # True: of the receiver
    snd_settle_mode: int | None = None
    rcv_settle_mode: int | None = None
    source: Described | None = None
    target: Described | None = None
    unsettled: Any = None
    incomplete_unsettled: bool | None = None
    initial_delivery_count: int | None = None
    max_message_size: int | None = None


class LinkFlow(NamedTuple):
    next_incoming_id: int | None = None
    incoming_window: int | None = None
    next_outgoing_id: int | None = None
    outgoing_window: int | None = None
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool | None = None
    echo: bool | None = None


class Transfer(NamedTuple):
    handle: int | None = None
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool | None = None
    rcv_settle_mode: int | None = None
    state: Described | None = None
    resume: bool | None = None
    aborted: bool | None = None


class Disposition(NamedTuple):
    role: bool | None = None  # True: of the receiver
    first: int | None = None
    last: int | None = None
    settled: bool | None = None
    state: Described | None = None


class Detach(NamedTuple):
    handle: int | None = None
    closed: bool | None = None
    error: Described | None = None


class SessionEnd(NamedTuple):
    error: Described | None = None


class Close(NamedTuple):
    error: Described | None = None


class Mechanisms(NamedTuple):
    mechanisms: Any = None  # a symbol, or several


class Challenge(NamedTuple):
    challenge: bytes | None = None


class LogInOutcome(NamedTuple):
    code: int | None = None


Performative: TypeAlias = (
    Open
    | Begin
    | Attach
    | LinkFlow
    | Transfer
    | Disposition
    | Detach
    | SessionEnd
    | Close
    | Mechanisms
    | Challenge
    | LogInOutcome
)
_Shape: TypeAlias = tuple[type[Any], ...]
_N, _B, _T, _D, _M, _O, _Y = int, bool, str, Described, dict, object, bytes
_SHAPES: Final[dict[int, tuple[type[Any], _Shape]]] = {
    OPEN: (Open, (_T, _T, _N, _N, _N, _O, _O, _O, _O, _M)),
    BEGIN: (Begin, (_N, _N, _N, _N, _N)),
    ATTACH: (Attach, (_T, _N, _B, _N, _N, _D, _D, _O, _B, _N, _N)),
    FLOW: (LinkFlow, (_N, _N, _N, _N, _N, _N, _N, _N, _B, _B)),
    TRANSFER: (Transfer, (_N, _N, _Y, _N, _B, _B, _N, _D, _B, _B)),
    DISPOSITION: (Disposition, (_B, _N, _N, _B, _D)),
    DETACH: (Detach, (_N, _B, _D)),
    END: (SessionEnd, (_D,)),
    CLOSE: (Close, (_D,)),
    MECHANISMS: (Mechanisms, (_O,)),
    CHALLENGE: (Challenge, (_Y,)),
    OUTCOME: (LogInOutcome, (_N,)),
}
# That a peer may send, by the type of the frame.
_EXPECTED: Final = {AMQP: range(OPEN, CLOSE + 1), SASL: range(MECHANISMS, OUTCOME + 1)}


class Frame(NamedTuple):
    """A received frame; `payload` is what stands behind its performative."""

    channel: int
    performative: Performative
    payload: bytes


class AmqpDecoder:
    """Collects bytes in any slices and hands out whole frames. Mutable: its buffer."""

    def __init__(self, max_frame: int, kind: int = AMQP) -> None:
        self._max_frame, self.kind = max_frame, kind
        self._buffer = b""
        self._header: bytes | None = SASL_HEADER if kind == SASL else HEADER  # until it has come

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete; the end of a log-in is the last one.

        Raises:
            WireError: the bytes are not AMQP 1.0, or a frame is longer than agreed.
        """
        data, at = self._buffer + data if self._buffer else data, 0
        frames: list[Frame] = []
        if self._header is not None:
            at = self._skip_header(data, self._header)
        while not self._header and at + HEAD.size <= len(data):
            size, offset, kind, channel = HEAD.unpack_from(data, at)
            self._check(size, offset, kind)
            if at + size > len(data):
                break
            content = data[at + 4 * offset : at + size]
            at += size
            if content:
                frames.append(self._decode(channel, content))
                if self.kind == SASL and isinstance(frames[-1].performative, LogInOutcome):
                    break
        self._buffer = data[at:]
        return frames

    def begin(self) -> list[Frame]:
        """Expect AMQP behind the log-in; return the frames that are there already."""
        self.kind, self._header = AMQP, HEADER
        return self.feed(b"")

    def _skip_header(self, data: bytes, header: bytes) -> int:
        found = data[: len(header)]
        if not header.startswith(found):
            raise WireError(f"amqp: the server speaks another protocol ({found!r})")
        if len(found) < len(header):
            return 0
        self._header = None
        return len(header)

    def _check(self, size: int, offset: int, kind: int) -> None:
        if size > self._max_frame:
            raise WireError(f"amqp: a frame of {size} bytes, limit {self._max_frame}")
        if not HEAD.size <= 4 * offset <= size:
            raise WireError(f"amqp: a frame of {size} bytes whose content begins at {4 * offset}")
        if kind != self.kind:
            raise WireError(f"amqp: a frame of the type {kind} in place of {self.kind}")

    def _decode(self, channel: int, content: bytes) -> Frame:
        found, at = read_value(content)
        if not isinstance(found, Described) or not isinstance(found.value, list):
            raise WireError("amqp: a frame without a performative")
        code, fields = found
        if not isinstance(code, int) or code not in _EXPECTED[self.kind] or code not in _SHAPES:
            raise WireError(f"amqp: no performative has the descriptor {code!r:.40}")
        make, shape = _SHAPES[code]
        for value, expected in zip(fields, shape, strict=False):
            if value is not None and not isinstance(value, expected):
                name = make.__name__.lower()
                raise WireError(f"amqp: a field of `{name}` is {value!r:.40}")
        return Frame(channel, make(*fields[: len(shape)]), content[at:])


def encode_frame(
    code: int, fields: Sequence[bytes | None], payload: bytes = b"", kind: int = AMQP
) -> bytes:
    """Return a frame of channel 0."""
    content = composite(code, fields)
    return HEAD.pack(HEAD.size + len(content) + len(payload), 2, kind, 0) + content + payload


def error_text(error: object) -> tuple[str, str]:
    """Return condition and description of an error that a peer gave; empty for none."""
    fields = error.value if isinstance(error, Described) else ()
    condition, text = [*(fields if isinstance(fields, list) else ()), "", ""][:2]
    return str(condition or ""), str(text or "")
