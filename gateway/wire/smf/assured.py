"""Assured control messages: publisher flows, binds, acknowledgements, in their three layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf.frames import Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import (
    LIGHT_TAG,
    RESPONSE,
    U32,
    Response,
    decode_response,
    encode_response,
    encode_tag,
    read_parameters,
)


class Kind(IntEnum):
    OPEN_PUBLISHER = 0
    ACK = 3
    BIND = 4
    UNBIND = 5
    UNSUBSCRIBE = 6
    CLOSE_PUBLISHER = 7
    CREATE = 8
    DELETE = 9
    FLOW_CHANGE = 0x0C


class Field(IntEnum):
    LAST_SENT = 0x01
    LAST_ACKED = 0x02
    WINDOW = 0x03
    APP_ACK = 0x05
    FLOW_ID = 0x06
    QUEUE = 0x07
    FLOW_NAME = 0x0A
    DURABILITY = 0x0B
    ACCESS = 0x0C
    SELECTOR = 0x0D
    LAST_RECEIVED = 0x10
    OTHERS_PERMISSIONS = 0x11
    FLOW_TYPE = 0x12
    QUOTA = 0x13
    MAX_MESSAGE = 0x14
    PERMISSIONS = 0x15
    RESPECTS_TTL = 0x16
    ACTIVE = 0x20
    WANTS_CHANGES = 0x21
    PUBLISHER_ID = 0x23
    ENDPOINT_ID = 0x2C
    MAX_UNACKED = 0x31


class AppOutcome(IntEnum):
    ACCEPTED = 0
    FAILED = 1
    RELEASED = 2
    REJECTED = 3


@dataclass(frozen=True, slots=True)
class AppAck:
    """How the application settled the messages `low` to `high`, both included."""

    low: int
    high: int
    outcome: AppOutcome = AppOutcome.ACCEPTED


@dataclass(frozen=True, slots=True)
class Control:
    """One message; `fields` keeps the last value of a repeated field, but for the acks."""

    kind: int
    version: int = 2
    fields: tuple[tuple[int, bytes], ...] = ()
    tag: bytes = b""
    response: Response | None = None

    def get(self, field: Field) -> bytes | None:
        found = None
        for number, value in self.fields:
            if number == field:
                found = value
        return found

    def number(self, field: Field, default: int = 0) -> int:
        value = self.get(field)
        return default if value is None else int.from_bytes(value, "big")

    def text(self, field: Field) -> bytes:
        return (self.get(field) or b"").partition(b"\0")[0]

    def app_acks(self) -> list[AppAck]:
        """Raises: WireError: a range of the wrong size or with an unknown outcome."""
        return [_read_ack(value) for number, value in self.fields if number == Field.APP_ACK]


_V2: Final = 2
_V4: Final = 4
_HEAD_SIZES: Final = {2: 3, 3: 6, 4: 6}
_WORD: Final = 4
_BYTES: Final = frozenset(
    {
        Field.WINDOW,
        Field.DURABILITY,
        Field.ACCESS,
        Field.FLOW_TYPE,
        Field.RESPECTS_TTL,
        Field.ACTIVE,
        Field.WANTS_CHANGES,
    }
)
_LONGS: Final = frozenset({Field.LAST_SENT, Field.LAST_ACKED, Field.LAST_RECEIVED})
_TEXTS: Final = frozenset({Field.QUEUE, Field.FLOW_NAME})


def field(number: Field, value: int | bytes) -> tuple[int, bytes]:
    """A field for `Control`, as wide as its type says."""
    if isinstance(value, bytes):
        return number, value + b"\0" if number in _TEXTS else value
    size = 1 if number in _BYTES else 8 if number in _LONGS else 4
    return number, value.to_bytes(size, "big")


def encode_ack(ack: AppAck) -> tuple[int, bytes]:
    value = ack.low.to_bytes(8, "big") + ack.high.to_bytes(8, "big")
    if ack.outcome is not AppOutcome.ACCEPTED:
        value += bytes((ack.outcome,))
    return Field.APP_ACK, value


def decode_control(frame: bytes) -> Control:
    """Raises: WireError: the version is none of 2 to 4, or a field ends outside."""
    parameters, body = split_frame(frame)
    tag, response = b"", None
    for parameter in read_parameters(parameters):
        if parameter.kind == LIGHT_TAG:
            tag = parameter.value
        elif parameter.kind == RESPONSE:
            response = decode_response(parameter.value)
    version = body[0] & 0x3F if body else 0
    head = _HEAD_SIZES.get(version)
    if head is None or len(body) < head:
        raise WireError(f"smf: assured control version {version} is not 2, 3 or 4")
    if version == _V2:
        word = int.from_bytes(body[1:3], "big")
        kind, size = word >> 12, (word & 0xFFF) * _WORD
    else:
        kind, size = body[1], int(U32.unpack_from(body, 2)[0])
    if not head <= size <= len(body):
        raise WireError(f"smf: assured control size {size} is outside {head}..{len(body)}")
    return Control(kind, version, tuple(_read_fields(body[head:size])), tag, response)


def encode_control(control: Control) -> bytes:
    parameters = encode_tag(control.tag)
    if control.response is not None:
        parameters += encode_response(control.response)
    fields = _write_fields(control.fields)
    if control.version == _V2:
        words = (len(fields) + _HEAD_SIZES[_V2] + _WORD - 1) // _WORD
        head = bytes((_V2,)) + (control.kind << 12 | words).to_bytes(2, "big")
        body = (head + fields).ljust(words * _WORD, b"\0")
    else:
        size = len(fields) + _HEAD_SIZES[control.version]
        body = bytes((control.version, control.kind)) + U32.pack(size) + fields
    return encode_frame(Protocol.ASSURED_CONTROL, parameters, body)


def encode_answer(
    request: Control, response: Response, fields: Sequence[tuple[int, bytes]] = ()
) -> bytes:
    """The answer to `request`, in its version and with its tag."""
    return encode_control(
        Control(request.kind, request.version, tuple(fields), request.tag, response)
    )


def _read_fields(data: bytes) -> list[tuple[int, bytes]]:
    fields: list[tuple[int, bytes]] = []
    position, end = 0, len(data)
    while position < end:
        first = data[position]
        if not first:
            position += 1
            continue
        size = data[position + 1] if position + 1 < end else -1
        start = position + 2
        if not size and position + 6 <= end:
            size, start = int(U32.unpack_from(data, start)[0]), position + 6
        if not start <= position + size <= end:
            raise WireError(f"smf: assured control field 0x{first:02x} ends outside")
        fields.append((first & 0x3F, data[start : position + size]))
        position += size
    return fields


def _write_fields(fields: Sequence[tuple[int, bytes]]) -> bytes:
    parts: list[bytes] = []
    for number, value in fields:
        size = len(value) + 2
        if size <= 0xFF:  # noqa: PLR2004  # what one byte holds
            parts.append(bytes((number, size)) + value)
        else:
            parts.append(bytes((number, 0)) + U32.pack(size + 4) + value)
    return b"".join(parts)


def _read_ack(value: bytes) -> AppAck:
    if len(value) not in {16, 17}:
        raise WireError(f"smf: an acknowledgement range of {len(value)} bytes")
    outcome = value[16] if len(value) > 16 else 0  # noqa: PLR2004  # after two u64
    if outcome > AppOutcome.REJECTED:
        raise WireError(f"smf: settlement outcome {outcome} is not known")
    low, high = int.from_bytes(value[:8], "big"), int.from_bytes(value[8:16], "big")
    return AppAck(low, high, AppOutcome(outcome))
