"""Requests of SMF clients: structured data, and changes of subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import U32, encode_tag
from gateway.wire.smf.sdt import BOOLEAN, BYTES, FLOAT, INTEGER, MAP, NULL, STREAM, STRING, UNSIGNED
from gateway.wire.smf.subscriptions import RESPONSE_WANTED, SubscriptionChange, SubscriptionRequest


def encode_value(value: Value) -> bytes:  # noqa: PLR0911  # one return for each type
    """Encode a value.

    Raises:
        WireError: an integer needs more than 64 bits.
    """
    match value:
        case None:
            return _element(NULL, b"")
        case bool():
            return _element(BOOLEAN, bytes((value,)))
        case int():
            return _encode_integer(value)
        case float():
            return _element(FLOAT, pack(">d", value))
        case str():
            return _element(STRING, value.encode() + b"\0")
        case bytes():
            return _element(BYTES, value)
        case Mapping():
            pairs = (encode_value(key) + encode_value(each) for key, each in value.items())
            return _element(MAP, b"".join(pairs), container=True)
        case list() | tuple():
            return _element(STREAM, b"".join(map(encode_value, value)), container=True)


def _encode_integer(value: int) -> bytes:
    if not -(2**63) <= value < 2**64:
        raise WireError(f"smf: an integer of {value.bit_length()} bits does not fit into 64 bits")
    kind = UNSIGNED if value > 2**63 - 1 else INTEGER
    return _element(kind, value.to_bytes(8, "big", signed=kind == INTEGER))


def _element(kind: int, value: bytes, *, container: bool = False) -> bytes:
    size = len(value) + 2
    if size <= 0xFF and not container:  # what one byte holds
        return bytes((kind << 2, size)) + value
    return bytes((kind << 2 | 3,)) + (len(value) + 5).to_bytes(4, "big") + value


def encode_subscription(request: SubscriptionRequest) -> bytes:
    """Encode the request of a client."""
    topic = request.topic + b"\0"
    if request.change in {SubscriptionChange.ADD_TO_QUEUE, SubscriptionChange.REMOVE_FROM_QUEUE}:
        queue = request.queue + b"\0"
        topic = bytes((len(queue),)) + queue + bytes((len(topic),)) + topic
    flags = 0x04 | (RESPONSE_WANTED if request.answered else 0)
    head = bytes((0x80 | request.change,)) + U32.pack(6 + len(topic)) + bytes((flags,))
    return encode_frame(Protocol.SUBSCRIPTION | 0x80, encode_tag(request.tag), head + topic)
