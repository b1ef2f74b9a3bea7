"""The packets of an MQTT session: CONNECT, SUBSCRIBE, UNSUBSCRIBE, their answers, DISCONNECT.

Each function takes or returns one whole packet, of MQTT 3.1.1 or 5.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from gateway.errors import WireError
from gateway.wire.mqtt.packet_fields import (
    U16,
    U32,
    decode_binary,
    decode_length,
    decode_text,
    encode_binary,
    encode_length,
    encode_text,
)

CONNACK, SUBACK, UNSUBACK, DISCONNECT = 2, 9, 11, 14  # packet types
DISCONNECT_PACKET: Final = b"\xe0\x00"
TOO_LARGE_PACKET: Final = b"\xe0\x01\x95"  # a DISCONNECT of 5.0 with "packet too large"

PropertyValue: TypeAlias = int | str | bytes
Properties: TypeAlias = Mapping[int, PropertyValue]

SESSION_EXPIRY, SERVER_KEEP_ALIVE, REASON_STRING, RECEIVE_MAXIMUM = 0x11, 0x13, 0x1F, 0x21
MAXIMUM_QOS, RETAIN_AVAILABLE, USER_PROPERTY, MAXIMUM_PACKET_SIZE = 0x24, 0x25, 0x26, 0x27

_NO_PROPERTIES: Final[Properties] = MappingProxyType({})
_CLEAN, _PASSWORD, _USERNAME = 0x02, 0x40, 0x80  # flags of a CONNECT (MQTT 5.0, 3.1.2.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """The fields of a CONNECT; the last three are for 5.0 only, and `None` leaves them out."""

    client_id: str
    clean: bool  # 5.0: Clean Start; 3.1.1: Clean Session
    keepalive: int  # seconds
    username: str | None = None
    password: str | None = None
    session_expiry: int | None = None  # seconds
    receive_maximum: int | None = None
    max_packet: int | None = None  # bytes


@dataclass(frozen=True, slots=True)
class Connack:
    """A decoded CONNACK."""

    reason: int
    session_present: bool
    properties: Properties


def encode_connect(connect: Connect, *, five: bool) -> bytes:
    """Return a CONNECT (MQTT 5.0, 3.1).

    Raises:
        TranslationError: a text has no legal form.
    """
    flags = _CLEAN if connect.clean else 0
    payload = encode_text(connect.client_id, "client id")
    if connect.username is not None:
        flags |= _USERNAME
        payload += encode_text(connect.username, "user name")
        if connect.password is not None:
            flags |= _PASSWORD
            payload += encode_binary(connect.password.encode(), "password")
    header = b"\0\4MQTT" + bytes((5 if five else 4, flags)) + U16.pack(connect.keepalive)
    if five:
        properties = b""
        if connect.session_expiry is not None:
            properties += bytes((SESSION_EXPIRY,)) + U32.pack(connect.session_expiry)
        if connect.receive_maximum is not None:
            properties += bytes((RECEIVE_MAXIMUM,)) + U16.pack(connect.receive_maximum)
        if connect.max_packet is not None:
            properties += bytes((MAXIMUM_PACKET_SIZE,)) + U32.pack(connect.max_packet)
        header += encode_length(len(properties)) + properties
    return _packet(0x10, header + payload)


def encode_subscribe(packet_id: int, filters: Sequence[tuple[str, int]], *, five: bool) -> bytes:
    """Return a SUBSCRIBE for filters with their subscription options (MQTT 5.0, 3.8).

    Raises:
        TranslationError: a filter has no legal form.
    """
    body = U16.pack(packet_id) + (b"\0" if five else b"")
    for topic_filter, options in filters:
        body += encode_text(topic_filter, "topic filter") + bytes((options,))
    return _packet(0x82, body)


def encode_unsubscribe(packet_id: int, filters: Sequence[str], *, five: bool) -> bytes:
    """Return an UNSUBSCRIBE (MQTT 5.0, 3.10). Raises as `encode_subscribe` does."""
    body = U16.pack(packet_id) + (b"\0" if five else b"")
    for topic_filter in filters:
        body += encode_text(topic_filter, "topic filter")
    return _packet(0xA2, body)


def decode_connack(packet: bytes, *, five: bool) -> Connack:
    """Decode a CONNACK (MQTT 5.0, 3.2).

    A refusal by a broker of another version has no properties.

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if len(body) < 2:  # noqa: PLR2004  # flags and reason
        raise WireError("mqtt: a CONNACK is too short")
    flags, reason = body[0], body[1]
    properties = _decode_properties(body, 2)[0] if five and not _is_bare(body) else _NO_PROPERTIES
    return Connack(reason, flags & 1 == 1, properties)


def _is_bare(body: bytes) -> bool:
    return len(body) == 2 and body[1] != 0  # noqa: PLR2004


def decode_suback(packet: bytes, *, five: bool) -> tuple[int, bytes]:
    """Return the packet id of a SUBACK and the reason of each filter (MQTT 5.0, 3.9).

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if len(body) < 3:  # noqa: PLR2004  # the packet id and a reason
        raise WireError("mqtt: a SUBACK or an UNSUBACK is too short")
    start = _decode_properties(body, 2)[1] if five else 2
    return body[0] << 8 | body[1], body[start:]


def decode_unsuback(packet: bytes, *, five: bool) -> tuple[int, bytes]:
    """Return the packet id of an UNSUBACK and the reason of each filter (MQTT 5.0, 3.11).

    3.1.1 has no reasons.

    Raises:
        WireError: it is malformed.
    """
    if five:
        return decode_suback(packet, five=five)
    body = _body(packet)
    if len(body) != 2:  # noqa: PLR2004  # the packet id
        raise WireError("mqtt: an UNSUBACK has no packet id")
    return body[0] << 8 | body[1], b""


def decode_disconnect(packet: bytes) -> tuple[int, Properties]:
    """Return the reason of a DISCONNECT of 5.0 and its properties (MQTT 5.0, 3.14).

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if not body:
        return 0, _NO_PROPERTIES
    return body[0], _decode_properties(body, 1)[0] if len(body) > 1 else _NO_PROPERTIES


def _packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + encode_length(len(body)) + body


def _body(packet: bytes) -> bytes:
    return packet[decode_length(packet, 1, len(packet))[1] :]


def _decode_properties(body: bytes, position: int) -> tuple[Properties, int]:
    """Return properties from `position` on without the user's, and the position after them."""
    size, position = decode_length(body, position, len(body))
    end = position + size
    if not position or end > len(body):
        raise WireError("mqtt: properties are truncated")
    data = body[:end]
    found: dict[int, PropertyValue] = {}
    try:
        while position < end:
            kind, position = data[position], position + 1
            if kind == USER_PROPERTY:
                _, position = decode_binary(data, position)  # its name; it has no use here
                _, position = decode_binary(data, position)
                continue
            decode = _DECODERS.get(kind)
            if decode is None:
                raise WireError(f"mqtt: unknown property 0x{kind:02x}")
            if kind in found:
                raise WireError(f"mqtt: property 0x{kind:02x} stands twice")
            found[kind], position = decode(data, position)
    except (IndexError, StructError) as error:
        raise WireError(f"mqtt: malformed properties: {error}") from error
    return found, end


def _decode_u8(data: bytes, position: int) -> tuple[int, int]:
    return data[position], position + 1


def _decode_u16(data: bytes, position: int) -> tuple[int, int]:
    return cast(int, U16.unpack_from(data, position)[0]), position + 2


def _decode_u32(data: bytes, position: int) -> tuple[int, int]:
    return cast(int, U32.unpack_from(data, position)[0]), position + 4


_DECODERS: Final[Mapping[int, Callable[[bytes, int], tuple[PropertyValue, int]]]] = {
    SESSION_EXPIRY: _decode_u32,
    0x12: decode_text,  # Assigned Client Identifier
    SERVER_KEEP_ALIVE: _decode_u16,
    0x15: decode_text,  # Authentication Method
    0x16: decode_binary,  # Authentication Data
    0x1A: decode_text,  # Response Information
    0x1C: decode_text,  # Server Reference
    REASON_STRING: decode_text,
    RECEIVE_MAXIMUM: _decode_u16,
    0x22: _decode_u16,  # Topic Alias Maximum
    MAXIMUM_QOS: _decode_u8,
    RETAIN_AVAILABLE: _decode_u8,
    MAXIMUM_PACKET_SIZE: _decode_u32,
    0x28: _decode_u8,  # Wildcard Subscription Available
    0x29: _decode_u8,  # Subscription Identifier Available
    0x2A: _decode_u8,  # Shared Subscription Available
}
