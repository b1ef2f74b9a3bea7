"""The packets of an MQTT session: CONNECT, SUBSCRIBE, UNSUBSCRIBE, their answers, DISCONNECT.

Each function takes or returns one whole packet, of MQTT 3.1.1 or 5.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gateway.errors import WireError
from gateway.wire.mqtt.packet_fields import (
    U16,
    U32,
    decode_length,
    encode_binary,
    encode_length,
    encode_text,
)
from gateway.wire.mqtt.properties import IN_SESSION, USER_PROPERTY, decode_properties

CONNACK, SUBACK, UNSUBACK, DISCONNECT = 2, 9, 11, 14  # packet types
DISCONNECT_PACKET: Final = b"\xe0\x00"

Properties: TypeAlias = Mapping[int, Any]  # a number, text or bytes

SESSION_EXPIRY, SERVER_KEEP_ALIVE, REASON_STRING, RECEIVE_MAXIMUM = 0x11, 0x13, 0x1F, 0x21
MAXIMUM_QOS, RETAIN_AVAILABLE, MAXIMUM_PACKET_SIZE = 0x24, 0x25, 0x27

_WILL: Final = 0x04 | 0x08 | 0x20  # a will, its QoS 1, its RETAIN (MQTT 5.0, 3.1.2.5)
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
    will: tuple[str, bytes] | None = None  # topic and payload, with QoS 1 and RETAIN


def encode_connect(connect: Connect, *, five: bool) -> bytes:
    """Return a CONNECT (MQTT 5.0, 3.1).

    Raises:
        TranslationError: a text has no legal form.
    """
    flags = _CLEAN if connect.clean else 0
    payload = encode_text(connect.client_id, "client id")
    if connect.will is not None:
        topic, content = connect.will
        flags |= _WILL
        payload += b"\0" if five else b""  # no properties: it is published without a delay
        payload += encode_text(topic, "topic of the will") + encode_binary(content, "will")
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


def encode_retained(topic: str, payload: bytes, packet_id: int = 0, *, five: bool) -> bytes:
    """Return a PUBLISH with RETAIN (MQTT 5.0, 3.3): of QoS 1 with a packet id, else of QoS 0.

    Raises:
        TranslationError: the topic is not legal text.
    """
    first, number = (0x33, U16.pack(packet_id)) if packet_id else (0x31, b"")
    body = encode_text(topic, "topic") + number + (b"\0" if five else b"") + payload
    return _packet(first, body)


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


def decode_connack(packet: bytes, *, five: bool) -> tuple[int, bool, Properties]:
    """Return the reason of a CONNACK, whether the session is present, and properties.

    MQTT 5.0, 3.2. A refusal by a broker of another version has no properties.

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if len(body) < 2:  # flags and reason
        raise WireError("mqtt: a CONNACK is too short")
    flags, reason = body[0], body[1]
    is_bare = reason != 0 and len(body) == 2
    properties = {} if is_bare or not five else _decode_properties(body, 2)[0]
    return reason, flags & 1 == 1, properties


def decode_suback(packet: bytes, *, five: bool) -> tuple[int, bytes]:
    """Return the packet id of a SUBACK and the reason of each filter (MQTT 5.0, 3.9).

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if len(body) < 3:  # the packet id and a reason
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
    if len(body) != 2:  # the packet id
        raise WireError("mqtt: an UNSUBACK has no packet id")
    return body[0] << 8 | body[1], b""


def decode_disconnect(packet: bytes) -> tuple[int, Properties]:
    """Return the reason of a DISCONNECT of 5.0 and its properties (MQTT 5.0, 3.14).

    Raises:
        WireError: it is malformed.
    """
    body = _body(packet)
    if not body:
        return 0, {}
    return body[0], _decode_properties(body, 1)[0] if len(body) > 1 else {}


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
    found: dict[int, Any] = {}
    for kind, value in decode_properties(body[:end], position, IN_SESSION):
        if kind in found:
            raise WireError(f"mqtt: property 0x{kind:02x} stands twice")
        if kind != USER_PROPERTY:
            found[kind] = value
    return found, end
