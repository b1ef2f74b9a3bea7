"""The data types of MQTT packets, bytes to values and back (MQTT 5.0, 1.5)."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from gateway.errors import TranslationError, WireError
from gateway.model.closing_characters import closing_character, why_refused
from gateway.model.dead_letter_rule import (
    CONTROL_CHARACTER,
    NUL,
    PROPERTY_SIZE,
    SURROGATE,
    DeadLetterRule,
)

MAX_TEXT = 65_535  # bytes

U16, U32 = Struct(">H"), Struct(">I")


def unsendable_error(rule: DeadLetterRule, reason: str) -> TranslationError:
    """Return the error of a message without a legal form in MQTT; `rule` is the short name."""
    return TranslationError("mqtt", "", rule, reason)


def refuse_closing(text: str, field_name: str) -> None:
    """Raise TranslationError for a character for which a broker may close the connection."""
    if found := closing_character(text):
        raise unsendable_error(CONTROL_CHARACTER, why_refused(found, field_name))


@lru_cache(maxsize=4096)
def encode_length(size: int) -> bytes:
    """Return a variable byte integer (MQTT 5.0, 1.5.5)."""
    out = bytearray()
    while size > 127:  # seven bits a byte
        out.append(size & 127 | 128)
        size >>= 7
    out.append(size)
    return bytes(out)


def decode_length(buffer: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a variable byte integer and the position after it; 0 when bytes are missing.

    Raises:
        WireError: it has more than four bytes (MQTT 5.0, 1.5.5).
    """
    if position + 1 < end:
        size, more = buffer[position], buffer[position + 1]
        if size < 128:  # as below; most lengths have one byte or two
            return size, position + 1
        if more < 128:
            return size & 127 | more << 7, position + 2
    size = shift = 0
    for index in range(position, min(position + 4, end)):
        byte = buffer[index]
        size |= (byte & 127) << shift
        if byte < 128:  # the bit that means "one more byte"
            return size, index + 1
        shift += 7
    if end - position >= 4:
        raise WireError("mqtt: a length of more than four bytes")
    return 0, 0


def encode_binary(raw: bytes, field_name: str) -> bytes:
    """Return binary data with its length.

    Raises:
        TranslationError: it is too long.
    """
    if len(raw) > MAX_TEXT:
        reason = f"the {field_name} is {len(raw)} bytes, limit {MAX_TEXT}"
        raise unsendable_error(PROPERTY_SIZE, reason)
    return U16.pack(len(raw)) + raw


def encode_text(text: str, field_name: str) -> bytes:
    """Return a UTF-8 string with its length (MQTT 5.0, 1.5.4).

    Raises:
        TranslationError: it is too long, or has a character that MQTT forbids.
    """
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise unsendable_error(SURROGATE, f"the {field_name} holds a lone surrogate") from error
    if b"\0" in raw:
        raise unsendable_error(NUL, f"the {field_name} holds U+0000")
    refuse_closing(text, field_name)
    return encode_binary(raw, field_name)


def decode_utf8(raw: bytes) -> str:
    """Return text in UTF-8, with surrogates for other bytes: a message with them is refused later.

    Some brokers pass on what a publisher sent; nats-server does. To end the connection (MQTT 5.0,
    1.5.4) would bring the same message again, without end.
    """
    return raw.decode(errors="surrogateescape")
