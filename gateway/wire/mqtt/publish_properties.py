"""MQTT 5.0 PUBLISH properties to `Headers` and back."""

from __future__ import annotations

from struct import error as StructError  # noqa: N812  # the class has a lower-case name

from gateway.errors import WireError
from gateway.model.message import DeliveryMode, Headers
from gateway.wire.mqtt.packet_fields import (
    U32,
    decode_binary,
    decode_text,
    encode_binary,
    encode_length,
    encode_text,
    unsendable_error,
)
from gateway.wire.mqtt.user_properties import (
    ORIGIN,
    PRIORITY,
    SOURCE_ID,
    TIME,
    join_pairs,
    parse_whole_number,
    split_pairs,
)

PAYLOAD_FORMAT, EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION = 0x01, 0x02, 0x03, 0x08, 0x09
USER = 0x26

SECOND = 1_000_000  # microseconds
MAX_EXPIRY = 4_294_967_295  # seconds
MAX_USER_PROPERTIES = 10_000
MIN_USER_PROPERTY = 5  # bytes: its kind and two empty strings
ERROR = "mqtt.error"  # property of the gateway's message: why the sender's are left out

HEADERS_BY_FLAGS = [  # by the low four bits of a PUBLISH (MQTT 5.0, 3.3.1); shared values
    Headers(
        mode=DeliveryMode(min(flags >> 1 & 3, 2)),
        retained=bool(flags & 1),
        redelivered=bool(flags & 8),
    )
    for flags in range(16)
]


class PublishProperties:
    """The properties of one PUBLISH.

    Mutable: filled while it is decoded.
    """

    def __init__(self) -> None:
        self.text = False  # the payload is declared as UTF-8
        self.expires_in: int | None = None  # seconds
        self.content_type: str | None = None
        self.reply_to: str | None = None
        self.correlation: bytes | None = None
        self.pairs: list[tuple[str, str]] = []
        self.excess = 0  # user properties beyond `MAX_USER_PROPERTIES`, which are not in `pairs`

    def headers(self, flags: int, now: int) -> Headers:
        """Return the headers of a PUBLISH with these flags; `now` is in microseconds."""
        by_flags = HEADERS_BY_FLAGS[flags & 15]
        own, properties = split_pairs(self.pairs)
        if self.excess:
            count = len(self.pairs) + self.excess
            text = f"{count} user properties, limit {MAX_USER_PROPERTIES}; they are left out"
            properties = {ERROR: text}
        return Headers(
            mode=by_flags.mode,
            retained=by_flags.retained,
            redelivered=by_flags.redelivered,
            priority=parse_whole_number(own.get(PRIORITY)),
            expiry=None if self.expires_in is None else now + self.expires_in * SECOND,
            time=parse_whole_number(own.get(TIME)),
            content_type=self.content_type,
            correlation_id=self.correlation,
            reply_to=self.reply_to,
            source_id=own.get(SOURCE_ID),
            origin=tuple(own[ORIGIN].split(",")) if own.get(ORIGIN) else (),
            properties=properties,
        )


def decode_properties(data: bytes) -> PublishProperties:
    """Decode the properties of a PUBLISH, without their length.

    Raises:
        WireError: they violate MQTT 5.0, 3.3.2.3.
    """
    properties = PublishProperties()
    pairs = properties.pairs
    may_exceed = len(data) > MAX_USER_PROPERTIES * MIN_USER_PROPERTY
    try:
        position = 0
        while position < len(data):
            if may_exceed and data[position] == USER and len(pairs) == MAX_USER_PROPERTIES:
                position = _skip_user_property(data, position)
                properties.excess += 1
            else:
                position = _decode_property(properties, data, position)
    except (IndexError, StructError) as error:
        raise WireError(f"mqtt: malformed properties in a PUBLISH: {error}") from error
    return properties


def _decode_property(properties: PublishProperties, data: bytes, position: int) -> int:
    kind, position = data[position], position + 1
    match kind:
        case 0x26:  # USER
            name, position = decode_text(data, position)
            value, position = decode_text(data, position)
            properties.pairs.append((name, value))
        case 0x01:  # PAYLOAD_FORMAT
            properties.text, position = data[position] == 1, position + 1
        case 0x02:  # EXPIRY
            properties.expires_in, position = U32.unpack_from(data, position)[0], position + 4
        case 0x03:  # CONTENT_TYPE
            properties.content_type, position = decode_text(data, position)
        case 0x08:  # RESPONSE_TOPIC
            properties.reply_to, position = decode_text(data, position)
        case 0x09:  # CORRELATION
            properties.correlation, position = decode_binary(data, position)
        case 0x0B:  # a subscription identifier, skipped: a variable byte integer
            while data[position] > 127:  # noqa: PLR2004  # the bit that means "one more byte"
                position += 1
            position += 1
        case _:  # also a topic alias: our CONNECT allows none (MQTT 5.0, 3.3.2.3.4)
            raise WireError(f"mqtt: property 0x{kind:02x} is not allowed in a PUBLISH to us")
    return position


def _skip_user_property(data: bytes, position: int) -> int:
    """Return the position after a user property, whose texts are not decoded."""
    position += 3 + (data[position + 1] << 8 | data[position + 2])
    position += 2 + (data[position] << 8 | data[position + 1])
    if position > len(data):
        raise IndexError("a string ends after its properties")
    return position


def encode_properties(headers: Headers, *, text: bool, now: int) -> bytes:
    """Return the properties of a PUBLISH with their length; `now` is in microseconds.

    Raises:
        TranslationError: a value has no legal form, or the message has expired.
    """
    out = bytearray()
    if text:
        out += bytes((PAYLOAD_FORMAT, 1))
    if headers.expiry is not None:
        left = -(-(headers.expiry - now) // SECOND)
        if left <= 0:
            raise unsendable_error("expired", "the message expired before it could be sent")
        out += bytes((EXPIRY,)) + U32.pack(min(left, MAX_EXPIRY))
    if headers.content_type is not None:
        out += bytes((CONTENT_TYPE,)) + encode_text(headers.content_type, "content type")
    if headers.reply_to is not None:
        out += bytes((RESPONSE_TOPIC,)) + _encode_reply_to(headers.reply_to)
    if headers.correlation_id is not None:
        raw = headers.correlation_id
        out += bytes((CORRELATION,)) + encode_binary(
            raw.encode("utf-8", "replace") if isinstance(raw, str) else raw, "correlation id"
        )
    for name, value in join_pairs(headers):
        out += bytes((USER,)) + encode_text(name, "property name") + encode_text(value, name)
    return encode_length(len(out)) + out


def _encode_reply_to(topic: str) -> bytes:
    if not topic or "+" in topic or "#" in topic:  # MQTT 5.0, 3.3.2.3.5
        raise unsendable_error("reply-to", f"the reply-to {topic[:80]!r} is not a topic name")
    return encode_text(topic, "reply-to")
