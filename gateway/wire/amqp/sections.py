"""The sections of a message of AMQP 1.0: their places in its bytes, and their bytes.

Source: OASIS AMQP 1.0, part 3, section 2.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.errors import WireError
from gateway.wire.amqp.values import Described, described, read_value, string

(
    HEADER,
    DELIVERY_ANNOTATIONS,
    ANNOTATIONS,
    PROPERTIES,
    APPLICATION,
    DATA,
    SEQUENCE,
    VALUE,
    FOOTER,
) = range(0x70, 0x79)
BODIES: Final = frozenset({DATA, SEQUENCE, VALUE})
NOTHING: Final[Mapping[Any, Any]] = {}
_LISTS: Final = frozenset({HEADER, PROPERTIES})
_WIDTHS: Final = {0xA0: 1, 0xB0: 4, 0xC0: 1, 0xD0: 4, 0xC1: 1, 0xD1: 4}  # of a length
_EMPTY_LIST: Final = 0x45


class SectionPlace(NamedTuple):
    """A section in the bytes of a message: the type of its value stands at `at`."""

    code: int
    at: int
    end: int


class MessageParts(NamedTuple):
    """The bytes before the body, and the sections of the body."""

    head: bytes
    body: list[SectionPlace]


def find_parts(data: bytes) -> MessageParts:
    """Return the sections; the last one may end beyond `data`, which was cut off.

    Raises:
        WireError: it is not a message.
    """
    at, last, head_end = 0, 0, -1
    body: list[SectionPlace] = []
    while at < len(data):
        place = _find(data, at)
        if place.code < last or (place.code == last and last not in {DATA, SEQUENCE}):
            raise WireError("amqp: the sections of a message are out of order")
        if place.code in BODIES:
            if body and place.code != body[0].code:
                raise WireError("amqp: a message has bodies of two kinds")
            body.append(place)
        if place.code >= DATA and head_end < 0:
            head_end = at
        at, last = place.end, place.code
    return MessageParts(data[: len(data) if head_end < 0 else head_end], body)


def _find(data: bytes, start: int) -> SectionPlace:
    """Return the section that begins at `start`: a described value of a number."""
    wide = data[start : start + 2] == b"\x00\x80"
    at = start + (10 if wide else 3)
    if at >= len(data) or not (wide or data[start : start + 2] == b"\x00\x53"):
        raise WireError("amqp: a message has no section where one begins")
    code, kind = int.from_bytes(data[start + 2 : at], "big"), data[at]
    if not HEADER <= code <= FOOTER:
        raise WireError(f"amqp: no section of a message has the descriptor 0x{code:02x}")
    if kind == _EMPTY_LIST:
        return SectionPlace(code, at, at + 1)
    width = _WIDTHS.get(kind)
    if width is None:
        if code != VALUE:
            raise WireError(f"amqp: a section is of the type 0x{kind:02x}")
        return SectionPlace(code, at, read_value(data, at)[1])
    begin = at + 1 + width
    return SectionPlace(code, at, begin + int.from_bytes(data[at + 1 : begin], "big"))


class MessageHead(NamedTuple):
    """The sections before the body, with the fields of the header."""

    durable: bool = False
    priority: int | None = None
    ttl: int | None = None  # milliseconds
    first_acquirer: bool = False
    delivery_count: int = 0
    annotations: Mapping[Any, Any] = NOTHING
    properties: Sequence[Any] = ()
    application: Mapping[Any, Any] = NOTHING


def read_head(head: bytes) -> MessageHead:
    """Return the sections before the body.

    Raises:
        WireError: one is malformed.
    """
    found: dict[int, Any] = {}
    at = 0
    while at < len(head):
        section, at = read_value(head, at)
        if not isinstance(section, Described):
            raise WireError("amqp: a message has no section where one begins")
        code, value = section
        if not isinstance(value, list if code in _LISTS else dict):
            raise WireError("amqp: a section of a message is of another type")
        found[code] = value
    durable, priority, ttl, first, count = [*found.get(HEADER, ()), *[None] * 5][:5]
    numbers = (each for each in (priority, ttl, count) if each is not None)
    if not all(isinstance(each, int) for each in numbers):
        raise WireError("amqp: a field of the header of a message is no number")
    return MessageHead(
        bool(durable),
        priority,
        ttl,
        bool(first),
        count or 0,
        found.get(ANNOTATIONS, NOTHING),
        found.get(PROPERTIES, ()),
        found.get(APPLICATION, NOTHING),
    )


def data_place(data: bytes, place: SectionPlace) -> tuple[int, int]:
    """Return where the bytes of a section `DATA` begin and end.

    Raises:
        WireError: it has no bytes.
    """
    width = {0xA0: 1, 0xB0: 4}.get(data[place.at])
    if width is None:
        raise WireError("amqp: the data of a message are no bytes")
    return place.at + 1 + width, place.end


def data_section(payload: bytes) -> bytes:
    """Return a body of bytes."""
    return b"\x00\x53\x75\xb0" + struct.pack(">I", len(payload)) + payload


def text_section(text: str) -> bytes:
    """Return a body with a text. Raises TranslationError: it has no UTF-8."""
    return described(VALUE, string(text))
