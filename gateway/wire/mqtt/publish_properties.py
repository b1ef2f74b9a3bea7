"""MQTT 5.0 PUBLISH properties to `Headers` and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.dead_letter_rule import EXPIRED, REPLY_TO
from gateway.model.message import DeliveryMode, Headers
from gateway.model.proof_text import proof_of
from gateway.wire.mqtt.packet_fields import (
    U16,
    U32,
    decode_utf8,
    encode_binary,
    encode_text,
    unsendable_error,
)
from gateway.wire.mqtt.properties import IN_PUBLISH, USER_PROPERTY, decode_properties
from gateway.wire.mqtt.user_properties import (
    ORIGIN,
    PRIORITY,
    PROOF,
    SOURCE_ID,
    TIME,
    join_pairs,
    parse_whole_number,
    split_pairs,
)

PAYLOAD_FORMAT, EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION = 0x01, 0x02, 0x03, 0x08, 0x09
SECOND = 1_000_000  # microseconds
MAX_EXPIRY = 4_294_967_295  # seconds
MAX_USER_PROPERTIES = 10_000
_REFUSAL = "property 0x{:02x} is not allowed in a PUBLISH to us"
_PROOF = PROOF.encode()
PROOF_NAME = bytes((USER_PROPERTY,)) + encode_text(PROOF, "property name")
PROOF_MARKS = tuple(PROOF_NAME + U16.pack(size) for size in PROOF_SIZES)
ERROR = "mqtt.error"  # property of the gateway's message: why the sender's are left out

HEADERS_BY_FLAGS = [  # by the low four bits of a PUBLISH (MQTT 5.0, 3.3.1); shared values
    Headers(
        mode=DeliveryMode(min(flags >> 1 & 3, 2)),
        retained=bool(flags & 1),
        redelivered=bool(flags & 8),
    )
    for flags in range(16)
]


def decode_headers(flags: int, data: bytes, now: Callable[[], int]) -> tuple[Headers, bool, str]:
    """Return the headers of a PUBLISH, whether its payload is declared as UTF-8, and its proof.

    `data` has its properties, without their length. `now` gives microseconds; it is called only
    for an expiry interval.

    Raises:
        WireError: the properties violate MQTT 5.0, 3.3.2.3.
    """
    found: dict[int, Any] = {}
    pairs: list[tuple[str, str]] = []
    proof = ""
    excess = 0  # user properties beyond `MAX_USER_PROPERTIES`
    for kind, value in decode_properties(data, 0, IN_PUBLISH, _REFUSAL, " in a PUBLISH"):
        if kind != USER_PROPERTY:
            found[kind] = value
        elif value[0] == _PROOF:
            proof = proof_of(value[1])
        elif len(pairs) < MAX_USER_PROPERTIES:
            pairs.append((decode_utf8(value[0]), decode_utf8(value[1])))
        else:
            excess += 1
    own, properties = split_pairs(pairs)
    if excess:
        count = MAX_USER_PROPERTIES + excess
        text = f"{count} user properties, limit {MAX_USER_PROPERTIES}; they are left out"
        properties = {ERROR: text}
    by_flags, expires_in = HEADERS_BY_FLAGS[flags & 15], found.get(EXPIRY)
    headers = Headers(
        mode=by_flags.mode,
        retained=by_flags.retained,
        redelivered=by_flags.redelivered,
        priority=parse_whole_number(own.get(PRIORITY)),
        expiry=None if expires_in is None else now() + expires_in * SECOND,
        time=parse_whole_number(own.get(TIME)),
        content_type=found.get(CONTENT_TYPE),
        correlation_id=found.get(CORRELATION),
        reply_to=found.get(RESPONSE_TOPIC),
        source_id=own.get(SOURCE_ID),
        origin=tuple(own[ORIGIN].split(",")) if own.get(ORIGIN) else (),
        properties=properties,
    )
    return headers, found.get(PAYLOAD_FORMAT) == 1, proof


def encode_properties(headers: Headers, *, text: bool, now: int) -> bytes:
    """Return the properties of a PUBLISH except its proof; `now` is in microseconds.

    Raises:
        TranslationError: a value has no legal form, or the message has expired.
    """
    out = bytearray()
    if text:
        out += bytes((PAYLOAD_FORMAT, 1))
    if headers.expiry is not None:
        left = -(-(headers.expiry - now) // SECOND)
        if left <= 0:
            raise unsendable_error(EXPIRED, "the message expired before it could be sent")
        out += bytes((EXPIRY,)) + U32.pack(min(left, MAX_EXPIRY))
    if headers.content_type is not None:
        out += bytes((CONTENT_TYPE,)) + encode_text(headers.content_type, "content type")
    if headers.reply_to is not None:
        out += bytes((RESPONSE_TOPIC,)) + _encode_reply_to(headers.reply_to)
    raw = headers.correlation_id
    if raw is not None:
        raw = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
        out += bytes((CORRELATION,)) + encode_binary(raw, "correlation id")
    for name, value in join_pairs(headers):
        out.append(USER_PROPERTY)
        out += encode_text(name, "property name") + encode_text(value, name)
    return bytes(out)


def proof_mark(size: int) -> bytes:
    """Return what stands before the text of a proof of this size, behind the other properties."""
    return PROOF_NAME + U16.pack(size)


def _encode_reply_to(topic: str) -> bytes:
    if not topic or "+" in topic or "#" in topic:  # MQTT 5.0, 3.3.2.3.5
        raise unsendable_error(REPLY_TO, f"the reply-to {topic[:80]!r} is not a topic name")
    return encode_text(topic, "reply-to")
