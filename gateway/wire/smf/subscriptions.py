"""Subscription messages (SMP): topics added or removed for a client or a queue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from gateway.errors import WireError
from gateway.wire.smf.frames import Protocol, encode_frame, split_frame
from gateway.wire.smf.parameters import LIGHT_TAG, U32, encode_tag, read_parameters
from gateway.wire.smf.responses import SmfResponse, encode_response

RESPONSE_WANTED: Final = 0x08
_HEAD_SIZE: Final = 6


class SubscriptionChange(IntEnum):
    ADD = 0
    REMOVE = 1
    ADD_TO_QUEUE = 2
    REMOVE_FROM_QUEUE = 3


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    change: SubscriptionChange
    topic: bytes
    queue: bytes = b""  # only for changes of a queue
    answered: bool = True
    tag: bytes = b""
    body: bytes = b""  # repeated in the answer


def decode_subscription(frame: bytes) -> SubscriptionRequest:
    """Decode a subscription message.

    Raises:
        WireError: the message is malformed, or is on behalf of another client.
    """
    parameters, body = split_frame(frame)
    if len(body) < _HEAD_SIZE or U32.unpack_from(body, 1)[0] != len(body):
        raise WireError("smf: a subscription message has the wrong length")
    if body[0] & 0x7F > SubscriptionChange.REMOVE_FROM_QUEUE:
        raise WireError(f"smf: subscription message type {body[0] & 0x7F} is not known")
    change = SubscriptionChange(body[0] & 0x7F)
    queue = b""
    if change in {SubscriptionChange.ADD, SubscriptionChange.REMOVE}:
        topic = body[_HEAD_SIZE:]
    else:
        queue, position = _read_counted(body, _HEAD_SIZE)
        topic, _ = _read_counted(body, position)
    tags = [each.value for each in read_parameters(parameters) if each.kind == LIGHT_TAG]
    return SubscriptionRequest(
        change=change,
        topic=topic.partition(b"\0")[0],
        queue=queue.partition(b"\0")[0],
        answered=bool(body[5] & RESPONSE_WANTED),
        tag=tags[0] if tags else b"",
        body=body,
    )


def encode_subscription_reply(request: SubscriptionRequest, response: SmfResponse) -> bytes:
    parameters = encode_tag(request.tag) + encode_response(response)
    return encode_frame(Protocol.SUBSCRIPTION, parameters, request.body)


def _read_counted(body: bytes, position: int) -> tuple[bytes, int]:
    end = position + 1 + body[position] if position < len(body) else -1
    if not position < end <= len(body):
        raise WireError("smf: a name in a subscription message ends outside")
    return body[position + 1 : end], end
