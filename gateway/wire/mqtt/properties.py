"""The properties of MQTT 5.0 packets, bytes to values (MQTT 5.0, 2.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from struct import error as StructError  # noqa: N812  # the class has a lower-case name
from typing import Any, Final, TypeAlias

from gateway.errors import WireError
from gateway.wire.mqtt.packet_fields import U16, U32, decode_utf8

USER_PROPERTY: Final = 0x26

Decoder: TypeAlias = Callable[[bytes, int], tuple[object, int]]


def decode_properties(
    data: bytes,
    position: int,
    decoders: Mapping[int, Decoder],
    refusal: str = "unknown property 0x{:02x}",
    place: str = "",
) -> Iterator[tuple[int, Any]]:
    """Yield the identifier and the value of each property from `position` on.

    That of a user property is its name and its text, not decoded yet: there may be very many.

    Raises:
        WireError: one is malformed, or has no decoder; `refusal` and `place` are for the text.
    """
    try:
        while position < len(data):
            kind = data[position]
            decode = decoders.get(kind)
            if decode is None:
                raise WireError("mqtt: " + refusal.format(kind))
            value, position = decode(data, position + 1)
            yield kind, value
    except (IndexError, StructError) as error:
        raise WireError(f"mqtt: malformed properties{place}: {error}") from error


def _u8(data: bytes, position: int) -> tuple[int, int]:
    return data[position], position + 1


def _u16(data: bytes, position: int) -> tuple[int, int]:
    return U16.unpack_from(data, position)[0], position + 2


def _u32(data: bytes, position: int) -> tuple[int, int]:
    return U32.unpack_from(data, position)[0], position + 4


def _binary(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 2
    end = start + int(U16.unpack_from(data, position)[0])
    if end > len(data):
        raise IndexError("a string ends after its properties")
    return data[start:end], end


def _text(data: bytes, position: int) -> tuple[str, int]:
    raw, end = _binary(data, position)
    return decode_utf8(raw), end


def _pair(data: bytes, position: int) -> tuple[tuple[bytes, bytes], int]:
    name, position = _binary(data, position)
    text, end = _binary(data, position)
    return (name, text), end


def _skip_length(data: bytes, position: int) -> tuple[None, int]:
    while data[position] > 127:  # the bit that means "one more byte"
        position += 1
    return None, position + 1


IN_PUBLISH: Final[Mapping[int, Decoder]] = {
    0x01: _u8,  # Payload Format Indicator
    0x02: _u32,  # Message Expiry Interval
    0x03: _text,  # Content Type
    0x08: _text,  # Response Topic
    0x09: _binary,  # Correlation Data
    0x0B: _skip_length,  # Subscription Identifier
    USER_PROPERTY: _pair,
}  # no topic alias: our CONNECT allows none (MQTT 5.0, 3.3.2.3.4)
IN_SESSION: Final[Mapping[int, Decoder]] = {
    0x11: _u32,  # Session Expiry Interval
    0x12: _text,  # Assigned Client Identifier
    0x13: _u16,  # Server Keep Alive
    0x15: _text,  # Authentication Method
    0x16: _binary,  # Authentication Data
    0x1A: _text,  # Response Information
    0x1C: _text,  # Server Reference
    0x1F: _text,  # Reason String
    0x21: _u16,  # Receive Maximum
    0x22: _u16,  # Topic Alias Maximum
    0x24: _u8,  # Maximum QoS
    0x25: _u8,  # Retain Available
    USER_PROPERTY: _pair,
    0x27: _u32,  # Maximum Packet Size
    0x28: _u8,  # Wildcard Subscription Available
    0x29: _u8,  # Subscription Identifier Available
    0x2A: _u8,  # Shared Subscription Available
}
