"""MQTT 5.0 PUBLISH properties to `Headers` and back; it reads no clock and no socket."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812  # the class has a lower-case name

from gateway.endpoints.mqtt.user_properties import (
    ORIGIN,
    PRIORITY,
    SOURCE_ID,
    TIME,
    join_pairs,
    split_pairs,
    unsendable,
    whole,
)
from gateway.errors import WireError
from gateway.model.message import DeliveryMode, Headers

PAYLOAD_FORMAT, EXPIRY, CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION = 0x01, 0x02, 0x03, 0x08, 0x09
SUBSCRIPTION, TOPIC_ALIAS, USER = 0x0B, 0x23, 0x26

SECOND = 1_000_000  # microseconds
U32 = 4_294_967_295
TEXT_BYTES = 65_535

_U16, _U32 = Struct(">H"), Struct(">I")

PLAIN_HEADERS = [  # what the low four bits of a PUBLISH alone say (MQTT 5.0, 3.3.1); shared values
    Headers(
        mode=DeliveryMode(min(flags >> 1 & 3, 2)),
        retained=bool(flags & 1),
        redelivered=bool(flags & 8),
    )
    for flags in range(16)
]


class Block:
    """The properties of one PUBLISH; mutable while it is being read."""

    def __init__(self) -> None:
        self.text = False  # the payload declares itself UTF-8
        self.expires_in: int | None = None  # seconds
        self.content_type: str | None = None
        self.reply_to: str | None = None
        self.correlation: bytes | None = None
        self.pairs: list[tuple[str, str]] = []

    def headers(self, flags: int, now: int) -> Headers:
        plain = PLAIN_HEADERS[flags & 15]
        own, properties = split_pairs(self.pairs)
        return Headers(
            mode=plain.mode,
            retained=plain.retained,
            redelivered=plain.redelivered,
            priority=whole(own.get(PRIORITY)),
            expiry=None if self.expires_in is None else now + self.expires_in * SECOND,
            time=whole(own.get(TIME)),
            content_type=self.content_type,
            correlation_id=self.correlation,
            reply_to=self.reply_to,
            source_id=own.get(SOURCE_ID),
            origin=tuple(own[ORIGIN].split(",")) if own.get(ORIGIN) else (),
            properties=properties,
        )


def decode_block(data: bytes) -> Block:
    """Read the properties of a PUBLISH, their length already cut off.

    Raises:
        WireError: they are not what MQTT 5.0, 3.3.2.3 allows.
    """
    block = Block()
    try:
        position = 0
        while position < len(data):
            position = _read_one(block, data, position)
    except (IndexError, StructError, UnicodeDecodeError) as error:
        raise WireError(f"mqtt: malformed properties in a PUBLISH: {error}") from error
    return block


def _read_one(block: Block, data: bytes, position: int) -> int:
    kind, position = data[position], position + 1
    match kind:
        case 0x26:  # USER
            name, position = _read_text(data, position)
            value, position = _read_text(data, position)
            block.pairs.append((name, value))
        case 0x01:  # PAYLOAD_FORMAT
            block.text, position = data[position] == 1, position + 1
        case 0x02:  # EXPIRY
            block.expires_in, position = _U32.unpack_from(data, position)[0], position + 4
        case 0x03:  # CONTENT_TYPE
            block.content_type, position = _read_text(data, position)
        case 0x08:  # RESPONSE_TOPIC
            block.reply_to, position = _read_text(data, position)
        case 0x09:  # CORRELATION
            block.correlation, position = _read_bytes(data, position)
        case 0x0B:  # SUBSCRIPTION: a variable byte integer; we never asked for one
            while data[position] > 127:  # noqa: PLR2004  # the bit that says "one more byte"
                position += 1
            position += 1
        case _:  # a topic alias too: we never allowed one (MQTT 5.0, 3.3.2.3.4)
            raise WireError(f"mqtt: property 0x{kind:02x} is not allowed in a PUBLISH to us")
    return position


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 2
    end = start + _U16.unpack_from(data, position)[0]
    if end > len(data):
        raise IndexError("a string ends after its properties")
    return data[start:end], end


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    raw, end = _read_bytes(data, position)
    return raw.decode(), end


def encode_block(headers: Headers, *, text: bool, now: int) -> bytes:
    """The properties of a PUBLISH with their length in front.

    Raises:
        TranslationError: a value has no legal form, or the message has expired.
    """
    out = bytearray()
    if text:
        out += bytes((PAYLOAD_FORMAT, 1))
    if headers.expiry is not None:
        left = -(-(headers.expiry - now) // SECOND)
        if left <= 0:
            raise unsendable("expired", "the message expired before it could be sent")
        out += bytes((EXPIRY,)) + _U32.pack(min(left, U32))
    if headers.content_type is not None:
        out += bytes((CONTENT_TYPE,)) + pack_text(headers.content_type, "content type")
    if headers.reply_to is not None:
        out += bytes((RESPONSE_TOPIC,)) + _pack_reply_to(headers.reply_to)
    if headers.correlation_id is not None:
        raw = headers.correlation_id
        out += bytes((CORRELATION,)) + _pack_bytes(
            raw.encode("utf-8", "replace") if isinstance(raw, str) else raw, "correlation id"
        )
    for name, value in join_pairs(headers):
        out += bytes((USER,)) + pack_text(name, "property name") + pack_text(value, name)
    return pack_length(len(out)) + out


def _pack_reply_to(topic: str) -> bytes:
    if not topic or "+" in topic or "#" in topic:  # MQTT 5.0, 3.3.2.3.5
        raise unsendable("reply-to", f"the reply-to {topic[:80]!r} is not a topic name")
    return pack_text(topic, "reply-to")


def pack_text(text: str, what: str) -> bytes:
    """A UTF-8 string as MQTT 5.0, 1.5.4 wants it."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise unsendable("surrogate", f"the {what} holds a lone surrogate") from error
    if b"\0" in raw:
        raise unsendable("nul", f"the {what} holds U+0000")
    return _pack_bytes(raw, what)


def _pack_bytes(raw: bytes, what: str) -> bytes:
    if len(raw) > TEXT_BYTES:
        raise unsendable("property-size", f"the {what} is {len(raw)} bytes, limit {TEXT_BYTES}")
    return _U16.pack(len(raw)) + raw


@lru_cache(maxsize=4096)
def pack_length(size: int) -> bytes:
    """A variable byte integer (MQTT 5.0, 1.5.5)."""
    out = bytearray()
    while size > 127:  # noqa: PLR2004  # seven bits a byte
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)
