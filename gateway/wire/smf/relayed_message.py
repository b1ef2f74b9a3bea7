"""Data messages as a broker relays them: the topic, and the header fields of each connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf import parameters as kinds
from gateway.wire.smf.frames import GUARANTEED, HEADER_SIZE, Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import U32, U64, encode_parameter, read_parameters

_FLAGS: Final = 0xF8  # byte 0 without the version
_REDELIVERED: Final = encode_parameter(kinds.REDELIVERED, b"")


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """A data message from a publisher."""

    topic: bytes
    flow_id: int
    message_id: int
    previous_id: int
    flags: int  # byte 0 without the version, `GUARANTEED` included
    shared_parameters: bytes  # sent to every receiver
    body: bytes

    @property
    def size(self) -> int:
        return len(self.shared_parameters) + len(self.body)


def read_topic(frame: bytes) -> bytes:
    """Return the topic without its NUL; it is usually the first parameter.

    Raises:
        WireError: the message has no topic.
    """
    if len(frame) > HEADER_SIZE + 2 and frame[HEADER_SIZE] & 0x3F == kinds.TOPIC:
        size = frame[HEADER_SIZE + 1]
        if size > 2 and HEADER_SIZE + size <= len(frame):  # type and length
            return frame[HEADER_SIZE + 2 : HEADER_SIZE + size].partition(b"\0")[0]
    for parameter in read_parameters(split_frame(frame)[0]):
        if parameter.kind == kinds.TOPIC:
            return parameter.value.partition(b"\0")[0]
    raise WireError("smf: a message has no topic")


def decode_direct(frame: bytes) -> PublishedMessage:
    """Decode a direct message, which has no ids.

    Raises:
        WireError: the message has no topic.
    """
    return decode_published(frame, guaranteed=False)


def decode_published(frame: bytes, *, guaranteed: bool = True) -> PublishedMessage:
    """Decode a message from a publisher.

    Raises:
        WireError: topic, or the flow id or message id of a guaranteed message, is missing or
            malformed.
    """
    parameters, body = split_frame(frame)
    found: dict[int, bytes] = {}
    shared: list[bytes] = []
    for parameter in read_parameters(parameters):
        found[parameter.kind] = parameter.value
        if parameter.kind not in kinds.OF_ONE_CONNECTION:
            shared.append(parameter.raw)
    if kinds.TOPIC not in found:
        raise WireError("smf: a message has no topic")
    return PublishedMessage(
        topic=found[kinds.TOPIC].partition(b"\0")[0],
        flow_id=_number(found, kinds.FLOW_ID, 4) if guaranteed else 0,
        message_id=_number(found, kinds.MESSAGE_ID, 8) if guaranteed else 0,
        previous_id=_number(found, kinds.PREVIOUS_ID, 8) if kinds.PREVIOUS_ID in found else 0,
        flags=frame[0] & _FLAGS,
        shared_parameters=b"".join(shared),
        body=body,
    )


def encode_delivery(
    message: PublishedMessage, flow_id: int, message_id: int, previous_id: int, *, redelivered: bool
) -> bytes:
    """Encode `message` for the flow of a consumer."""
    own = (
        encode_parameter(kinds.FLOW_ID, U32.pack(flow_id), handling=2)
        + encode_parameter(kinds.MESSAGE_ID, U64.pack(message_id), handling=2)
        + encode_parameter(kinds.PREVIOUS_ID, U64.pack(previous_id), handling=2)
    )
    return _encode(message, own + _REDELIVERED if redelivered else own, message.flags)


def encode_direct(message: PublishedMessage) -> bytes:
    """Encode `message` for a direct subscriber, which does not acknowledge it."""
    return _encode(message, b"", message.flags & ~GUARANTEED)


def _encode(message: PublishedMessage, own: bytes, flags: int) -> bytes:
    parameters = message.shared_parameters + own
    return encode_frame(
        Protocol.MESSAGE | 0x80, parameters, message.body, flags=flags, time_to_live=0xFF
    )


def _number(found: dict[int, bytes], kind: int, size: int) -> int:
    value = found.get(kind, b"")
    if len(value) != size:
        what = f"parameter 0x{kind:02x} of a message"
        raise WireError(f"smf: {what} has {len(value)} bytes instead of {size}")
    return int.from_bytes(value, "big")
