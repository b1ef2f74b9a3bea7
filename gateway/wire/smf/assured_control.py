"""Assured control messages in their three layouts: publisher flows, binds, acknowledgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

from gateway.errors import WireError
from gateway.wire.smf import parameters as kinds
from gateway.wire.smf.frames import Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import U32, encode_parameter, encode_tag, read_parameters
from gateway.wire.smf.responses import SmfResponse, decode_response, encode_response


class ControlType(IntEnum):
    OPEN_PUBLISHER = 0
    ACK = 3
    BIND = 4
    UNBIND = 5
    CLOSE_PUBLISHER = 7
    CREATE = 8
    DELETE = 9
    FLOW_CHANGE = 0x0C


class ControlField(IntEnum):
    """A field; a number in it has `width` bytes."""

    width: int

    def __new__(cls, number: int, width: int = 4) -> Self:
        field = int.__new__(cls, number)
        field._value_, field.width = number, width
        return field

    LAST_SENT = 0x01, 8
    LAST_ACKED = 0x02, 8
    WINDOW = 0x03, 1
    APP_ACK = 0x05
    FLOW_ID = 0x06
    QUEUE = 0x07
    FLOW_NAME = 0x0A
    DURABILITY = 0x0B, 1
    ACCESS = 0x0C, 1
    SELECTOR = 0x0D
    LAST_RECEIVED = 0x10, 8
    OTHERS_PERMISSIONS = 0x11
    FLOW_TYPE = 0x12, 1
    QUOTA = 0x13
    MAX_MESSAGE = 0x14
    PERMISSIONS = 0x15
    RESPECTS_TTL = 0x16, 1
    ACTIVE = 0x20, 1
    WANTS_CHANGES = 0x21, 1
    PUBLISHER_ID = 0x23
    ENDPOINT_ID = 0x2C
    MAX_UNACKED = 0x31
    SPOOL_ID = 0x36


class AckOutcome(IntEnum):
    ACCEPTED = 0
    FAILED = 1
    RELEASED = 2
    REJECTED = 3


@dataclass(frozen=True, slots=True)
class AckRange:
    """The application's settlement of the messages `low` to `high`, both included."""

    low: int
    high: int
    outcome: AckOutcome = AckOutcome.ACCEPTED


@dataclass(frozen=True, slots=True)
class AssuredControl:
    """One assured control message; of a repeated field the last value counts, except for acks."""

    kind: int
    version: int = 2
    fields: tuple[tuple[int, bytes], ...] = ()
    tag: bytes = b""
    response: SmfResponse | None = None

    def get(self, field: ControlField) -> bytes | None:
        return dict(self.fields).get(field)

    def get_int(self, field: ControlField, default: int = 0) -> int:
        """Return a number.

        Raises:
            WireError: the number is larger than the type of the field.
        """
        value = self.get(field)
        if value is None:
            return default
        if any(value[: -field.width]):
            reason = f"has more than {field.width} bytes"
            raise WireError(f"smf: assured control field 0x{field:02x} {reason}")
        return int.from_bytes(value[-field.width :], "big")

    def get_text(self, field: ControlField) -> bytes:
        """Return the value up to its first NUL."""
        return (self.get(field) or b"").partition(b"\0")[0]

    def ack_ranges(self) -> list[AckRange]:
        """Return the settlements of the application.

        Raises:
            WireError: a range has the wrong size or an unknown outcome.
        """
        return [_read_ack(value) for number, value in self.fields if number == ControlField.APP_ACK]


_V2: Final = 2
_HEAD_SIZES: Final = {2: 3, 3: 6, 4: 6}
_WORD: Final = 4
_TEXT_FIELDS: Final = frozenset({ControlField.QUEUE, ControlField.FLOW_NAME})


def encode_field(number: ControlField, value: int | bytes) -> tuple[int, bytes]:
    """Return a field of an `AssuredControl`, with the width of its type."""
    if isinstance(value, bytes):
        return number, value + b"\0" if number in _TEXT_FIELDS else value
    return number, value.to_bytes(number.width, "big")


def encode_fields(*fields: tuple[ControlField, int | bytes]) -> tuple[tuple[int, bytes], ...]:
    return tuple(encode_field(*field) for field in fields)


def decode_control(frame: bytes) -> AssuredControl:
    """Decode an assured control message.

    Raises:
        WireError: the version is not 2, 3 or 4, or a field ends outside.
    """
    parameters, body = split_frame(frame)
    found = {each.kind: each.value for each in read_parameters(parameters)}
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
    response = decode_response(found[kinds.RESPONSE]) if kinds.RESPONSE in found else None
    entries = read_parameters(body[head:size], 0x3F, "assured control field 0x{:02x} ends outside")
    fields = tuple((each.kind, each.value) for each in entries)
    return AssuredControl(kind, version, fields, found.get(kinds.LIGHT_TAG, b""), response)


def encode_control(control: AssuredControl) -> bytes:
    parameters = encode_tag(control.tag)
    if control.response is not None:
        parameters += encode_response(control.response)
    fields = b"".join(encode_parameter(number, value) for number, value in control.fields)
    if control.version == _V2:
        words = (len(fields) + _HEAD_SIZES[_V2] + _WORD - 1) // _WORD
        head = bytes((_V2,)) + (control.kind << 12 | words).to_bytes(2, "big")
        body = (head + fields).ljust(words * _WORD, b"\0")
    else:
        size = len(fields) + _HEAD_SIZES[control.version]
        body = bytes((control.version, control.kind)) + U32.pack(size) + fields
    return encode_frame(Protocol.ASSURED_CONTROL, parameters, body)


def encode_control_reply(
    request: AssuredControl, response: SmfResponse, fields: Sequence[tuple[int, bytes]] = ()
) -> bytes:
    """Encode the answer to `request`, in its version and with its tag."""
    return encode_control(
        AssuredControl(request.kind, request.version, tuple(fields), request.tag, response)
    )


def _read_ack(value: bytes) -> AckRange:
    if len(value) not in {16, 17}:
        raise WireError(f"smf: an acknowledgement range has {len(value)} bytes, expected 16 or 17")
    outcome = value[16] if len(value) > 16 else 0  # after two u64
    if outcome > AckOutcome.REJECTED:
        raise WireError(f"smf: settlement outcome {outcome} is not known")
    low, high = int.from_bytes(value[:8], "big"), int.from_bytes(value[8:16], "big")
    return AckRange(low, high, AckOutcome(outcome))
