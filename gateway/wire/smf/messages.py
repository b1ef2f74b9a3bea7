"""Data messages: their topic, and the header a broker changes on their way; payloads stay shut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf.frames import (
    GUARANTEED,
    HEADER_SIZE,
    Protocol,
    encode_frame,
    split_frame,
)
from gateway.wire.smf.parameters import (
    ACK_MESSAGE_ID,
    FLOW_ID,
    LIGHT_ACK_NOW,
    MESSAGE_ID,
    PREVIOUS_ID,
    REDELIVERED,
    TOPIC,
    U32,
    U64,
    encode_parameter,
    read_number,
    read_parameters,
)

_HOP_KINDS: Final = frozenset(
    {MESSAGE_ID, PREVIOUS_ID, REDELIVERED, FLOW_ID, ACK_MESSAGE_ID, LIGHT_ACK_NOW}
)  # of one connection only
_FLAGS: Final = 0xF8  # byte 0 without the version
_REDELIVERED: Final = encode_parameter(REDELIVERED, b"")


@dataclass(frozen=True, slots=True)
class Published:
    """A guaranteed message from a publisher, taken apart once."""

    topic: bytes
    flow_id: int
    message_id: int
    previous_id: int
    flags: int  # byte 0 without the version, `GUARANTEED` included
    kept: bytes  # parameters that every receiver gets
    body: bytes

    @property
    def size(self) -> int:
        return len(self.kept) + len(self.body)


def read_topic(frame: bytes) -> bytes:
    """The topic without its NUL; clients write it first, so this is usually one look.

    Raises:
        WireError: there is none.
    """
    if len(frame) > HEADER_SIZE + 2 and frame[HEADER_SIZE] & 0x3F == TOPIC:
        size = frame[HEADER_SIZE + 1]
        if size > 2 and HEADER_SIZE + size <= len(frame):  # noqa: PLR2004  # type and length
            return frame[HEADER_SIZE + 2 : HEADER_SIZE + size].partition(b"\0")[0]
    for parameter in read_parameters(split_frame(frame)[0]):
        if parameter.kind == TOPIC:
            return parameter.value.partition(b"\0")[0]
    raise WireError("smf: a message without a topic")


def decode_published(frame: bytes) -> Published:
    """Raises: WireError: topic, flow id or message id are missing or malformed."""
    return _decode(frame, guaranteed=True)


def decode_relayed(frame: bytes) -> Published:
    """A direct message taken apart; it has no ids.

    Raises:
        WireError: it has no topic.
    """
    return _decode(frame, guaranteed=False)


def _decode(frame: bytes, *, guaranteed: bool) -> Published:
    parameters, body = split_frame(frame)
    found: dict[int, bytes] = {}
    kept: list[bytes] = []
    for parameter in read_parameters(parameters):
        found[parameter.kind] = parameter.value
        if parameter.kind not in _HOP_KINDS:
            kept.append(parameter.raw)
    if TOPIC not in found:
        raise WireError("smf: a message without a topic")
    return Published(
        topic=found[TOPIC].partition(b"\0")[0],
        flow_id=_number(found, FLOW_ID, 4) if guaranteed else 0,
        message_id=_number(found, MESSAGE_ID, 8) if guaranteed else 0,
        previous_id=_number(found, PREVIOUS_ID, 8) if PREVIOUS_ID in found else 0,
        flags=frame[0] & _FLAGS,
        kept=b"".join(kept),
        body=body,
    )


def encode_delivery(
    message: Published, flow_id: int, message_id: int, previous_id: int, *, redelivered: bool
) -> bytes:
    """`message` for a consumer's flow."""
    parameters = (
        message.kept
        + encode_parameter(FLOW_ID, U32.pack(flow_id), handling=2)
        + encode_parameter(MESSAGE_ID, U64.pack(message_id), handling=2)
        + encode_parameter(PREVIOUS_ID, U64.pack(previous_id), handling=2)
    )
    if redelivered:
        parameters += _REDELIVERED
    return encode_frame(
        Protocol.MESSAGE | 0x80, parameters, message.body, flags=message.flags, time_to_live=0xFF
    )


def encode_direct(message: Published) -> bytes:
    """`message` for a direct subscriber, who acknowledges nothing."""
    flags = message.flags & ~GUARANTEED
    return encode_frame(
        Protocol.MESSAGE | 0x80, message.kept, message.body, flags=flags, time_to_live=0xFF
    )


def _number(found: dict[int, bytes], kind: int, size: int) -> int:
    return read_number(found.get(kind, b""), f"parameter 0x{kind:02x} of a message", size)
