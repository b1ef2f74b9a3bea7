"""Messages in blocks of bytes, as AMQP 0-9-1 has them (4.2): a method, a header, a body.

Only the frames of most traffic are known here: a delivered message, a confirm, and a published
message. The library reads and writes all others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

METHOD, HEADER, BODY, END = 1, 2, 3, 0xCE
FRAME: Final = struct.Struct(">BHI")  # type, channel, size; one byte is behind the content
HEADER_START: Final = 12  # bytes of a header frame before the properties
BLOCK: Final = 1 << 17  # bytes that are read or written at once
_DELIVER, _ACK, _NACK = 60 << 16 | 60, 60 << 16 | 80, 60 << 16 | 120  # class and method
_CONFIRMS: Final = frozenset({_ACK, _NACK})
_PUBLISH: Final = struct.pack(">HHH", 60, 40, 0)
_MANDATORY: Final = b"\1"
_START: Final = struct.Struct(">BHII")  # of a method: type, channel, size, class and method
_TAG: Final = struct.Struct(">QBB")  # tag, redelivered, length of the exchange
_CONFIRM: Final = struct.Struct(">BHIIQBB")  # a method with its tag, bits, and the end
_CONTENT: Final = struct.Struct(">BHIIQ")  # of a header: class and weight, size of the body
_BEHIND: Final = struct.Struct(">BBHI")  # an end, and the start of the next frame
_BEHIND_METHOD: Final = struct.Struct(">BBHIIQ")  # an end, and the start of a header
_BASIC: Final = 60 << 16  # class and weight
_LAST: Final = bytes((END,))


class WholeMessage(NamedTuple):
    """A delivered message, with the names of the library. A name that is not UTF-8 is bytes."""

    channel: int
    consumer: str
    delivery_tag: int
    redelivered: bool
    exchange: str | bytes
    routing_key: str | bytes
    encoded: bytes  # properties
    body: bytes
    dropped: int = 0  # its size where it is not here


class Confirm(NamedTuple):
    """An answer to the published message `tag`, or to all until it."""

    channel: int
    tag: int
    multiple: bool
    is_taken: bool


def read_delivery(data: bytes, at: int, most: int, longest: int) -> tuple[WholeMessage, int] | None:
    """Return the message that begins at `at`, and where it ends.

    None for all else: frames above `most` bytes, a body above `longest` bytes or in several frames,
    a message that is not whole, or not one.
    """
    try:
        kind, channel, size, number = _START.unpack_from(data, at)
        if kind != METHOD or number != _DELIVER:
            return None
        head, start = at + size + 8, at + 12
        place = start + data[start - 1]
        consumer = data[start:place]
        tag, redelivered, length = _TAG.unpack_from(data, place)
        start = place + 10
        place = start + length
        exchange, length = data[start:place], data[place]
        start = place + 1
        place = start + length
        kind, same, size, _, left = _CONTENT.unpack_from(data, head)
        behind = head + size + 8
        is_whole = place + 1 == head and data[place] == END == data[behind - 1]
        if (
            not is_whole
            or kind != HEADER
            or same != channel
            or size < HEADER_START
            or left > longest
        ):
            return None
        properties, body, end = data[head + 19 : behind - 1], b"", behind
        if left:
            kind, same, size = FRAME.unpack_from(data, behind)
            end = behind + size + 8
            if kind != BODY or same != channel or size != left or data[end - 1] != END:
                return None
            body = data[behind + 7 : end - 1]
    except (IndexError, struct.error):
        return None
    if max(behind - head, end - behind) > most:
        return None
    key = data[start:place]
    found = WholeMessage(
        channel,
        consumer.decode("utf-8", "replace"),
        tag,
        redelivered & 1 == 1,
        _name(exchange),
        _name(key),
        properties,
        body,
    )
    return found, end


def read_confirms(data: bytes, at: int) -> tuple[list[Confirm], int]:
    """Return the confirms of one channel that begin at `at`, and where they end."""
    found: list[Confirm] = []
    while len(data) - at >= _CONFIRM.size:
        kind, channel, size, number, tag, bits, end = _CONFIRM.unpack_from(data, at)
        is_confirm = kind == METHOD and number in _CONFIRMS and size == _CONFIRM.size - 8
        if not is_confirm or end != END or (found and found[0].channel != channel):
            break
        found.append(Confirm(channel, tag, bits & 1 == 1, number == _ACK))
        at += _CONFIRM.size
    return found, at


def publish_method(exchange: str, key: str) -> bytes:
    """Return the method that publishes a message; one that no queue gets is returned."""
    names = (name.encode() for name in (exchange, key))
    return b"".join((_PUBLISH, *(bytes((len(name),)) + name for name in names), _MANDATORY))


def write_messages(
    channel: int, messages: Iterable[tuple[bytes, bytes, bytes]], longest: int
) -> Iterator[bytes]:
    """Yield the frames of messages in blocks; of each: its method, its properties, its body.

    A body above `longest` bytes has several frames.
    """
    parts: list[bytes] = []
    size = 0
    for method, properties, body in messages:
        parts += (
            FRAME.pack(METHOD, channel, len(method)),
            method,
            _BEHIND_METHOD.pack(
                END, HEADER, channel, HEADER_START + len(properties), _BASIC, len(body)
            ),
            properties,
        )
        for start in range(0, len(body), longest):
            piece = body[start : start + longest]
            parts += (_BEHIND.pack(END, BODY, channel, len(piece)), piece)
        parts.append(_LAST)
        size += len(method) + len(properties) + len(body)
        if size >= BLOCK:
            yield b"".join(parts)
            parts.clear()
            size = 0
    if parts:
        yield b"".join(parts)


def _name(name: bytes) -> str | bytes:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name
