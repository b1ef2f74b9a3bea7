"""What a data message says: topic, payload and properties out of its bytes; it changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from types import MappingProxyType
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.smf.frames import DISCARDED, HEADER_SIZE
from gateway.wire.smf.parameters import (
    DELIVERY_MODE,
    PRIORITY,
    REDELIVERED,
    SUMMARY,
    TIME_TO_LIVE,
    TOPIC,
)
from gateway.wire.smf.sdt import decode_value

_U32: Final = Struct(">I")
_XML, _ATTACHMENT, _METADATA = 1, 2, 4  # elements of the content summary
_NO_HEADERS: Final[Mapping[str, Value]] = MappingProxyType({})
_WANTED: Final = frozenset({TOPIC, SUMMARY, PRIORITY, DELIVERY_MODE, TIME_TO_LIVE})


class Form(Enum):
    """What the sender says the payload is."""

    BYTES = "bytes"
    TEXT = "text"
    MAP = "map"
    STREAM = "stream"


_FORMS: Final = {0x07: Form.TEXT, 0x0A: Form.MAP, 0x0B: Form.STREAM, 0x80: Form.BYTES}


@dataclass(frozen=True, slots=True)
class Described:
    """The binary metadata: the payload's form, the header map and the user's properties."""

    form: Form | None
    headers: Mapping[str, Value]
    properties: Mapping[str, Value]


UNDESCRIBED: Final = Described(None, _NO_HEADERS, _NO_HEADERS)


@dataclass(frozen=True, slots=True)
class Heading:
    """The header parameters that receivers care for, and where the body's parts begin."""

    topic: str
    parts: tuple[tuple[int, int, int], ...]  # kind, start and stop within the body
    priority: int
    persistent: bool
    redelivered: bool
    time_to_live: int  # milliseconds; 0 is for ever


def lost_before(frame: bytes) -> bool:
    """Whether the broker dropped messages in front of this one."""
    return bool(frame[0] & DISCARDED)


def body_start(frame: bytes) -> int:
    """Raises: WireError: these are too few bytes for a message."""
    if len(frame) < HEADER_SIZE:
        raise WireError(f"smf: a message of {len(frame)} bytes, its header alone has {HEADER_SIZE}")
    start: int = _U32.unpack_from(frame, 4)[0]
    return start


def decode_heading(parameters: bytes) -> Heading:
    """Raises: WireError: no topic, or a parameter that ends outside."""
    found: dict[int, bytes] = {}
    redelivered = False
    position, end = 0, len(parameters)
    while position < end:
        first = parameters[position]
        if first & 0x20 or not first:  # light parameters and padding
            position += 1 + (first & 3)
            continue
        kind = first & 0x1F
        size = parameters[position + 1] if position + 1 < end else 0
        start = position + 2
        if not size and start + 4 <= end:
            size, start = _U32.unpack_from(parameters, start)[0], position + 6
        if not start <= position + size <= end:
            raise WireError(f"smf: header parameter 0x{first:02x} ends outside its header")
        if kind in _WANTED:
            found[kind] = parameters[start : position + size]
        elif kind == REDELIVERED:
            redelivered = True
        position += size
    if TOPIC not in found:
        raise WireError("smf: a message without a topic")
    return Heading(
        topic=found[TOPIC].partition(b"\0")[0].decode("utf-8", "backslashreplace"),
        parts=_read_summary(found.get(SUMMARY, b"")),
        priority=int.from_bytes(found.get(PRIORITY, b"\4"), "big"),
        persistent=DELIVERY_MODE in found and found[DELIVERY_MODE] != b"\2",
        redelivered=redelivered,
        time_to_live=int.from_bytes(found.get(TIME_TO_LIVE, b""), "big"),
    )


def parameters_of(frame: bytes) -> bytes:
    """Raises: WireError: as `body_start`."""
    return frame[HEADER_SIZE : body_start(frame)]


def split_body(frame: bytes, heading: Heading) -> tuple[bytes, bytes]:
    """The payload and the binary metadata.

    Raises:
        WireError: the summary promises more than there is.
    """
    start = body_start(frame)
    payload = metadata = b""
    for kind, low, high in heading.parts:
        if start + high > len(frame):
            raise WireError("smf: the content summary promises more than the message has")
        if kind == _METADATA:
            metadata = frame[start + low : start + high]
        elif kind == _ATTACHMENT or (kind == _XML and not payload):
            payload = frame[start + low : start + high]
    if not heading.parts:
        payload = frame[start:]
    return payload, metadata


def decode_metadata(metadata: bytes) -> Described:
    """Raises: WireError: it is not the block that Solace's libraries write."""
    if not metadata:
        return UNDESCRIBED
    if len(metadata) < 5 or metadata[0] != 1:  # noqa: PLR2004  # a count and a u32
        raise WireError("smf: binary metadata of an unknown form")
    items = decode_value(metadata[5:])
    if not isinstance(items, list):
        raise WireError("smf: binary metadata that is no stream")
    kinds = [item for item in items if isinstance(item, bytes)]
    maps = [item for item in items if isinstance(item, Mapping)]
    first = kinds[0][0] if kinds and kinds[0] else 0
    content = maps[0] if maps else _NO_HEADERS
    return Described(
        _FORMS.get(first),
        _as_map(content.get("h")),
        _as_map(content.get("p")),
    )


def decode_payload(payload: bytes, form: Form | None) -> bytes | str | dict[str, Value]:
    """What was sent; a stream becomes a map whose one key is `stream`.

    Raises:
        WireError: it does not have the form that its sender says.
    """
    if form is None or form is Form.BYTES or not payload:
        return "" if form is Form.TEXT else payload
    value = decode_value(payload)
    if isinstance(value, str) and form is Form.TEXT:
        return value
    if isinstance(value, Mapping) and form is Form.MAP:
        return dict(value)
    if isinstance(value, list) and form is Form.STREAM:
        return {"stream": value}
    raise WireError(f"smf: a payload that is said to be {form.value} and is not")


def _read_summary(summary: bytes) -> tuple[tuple[int, int, int], ...]:
    parts: list[tuple[int, int, int]] = []
    position = offset = 0
    while position < len(summary):
        kind, size = summary[position] >> 4, summary[position] & 0xF
        stop = position + size
        if size < 2 or stop > len(summary):  # noqa: PLR2004  # the head and a byte of size
            raise WireError("smf: a malformed content summary")
        length = int.from_bytes(summary[position + 1 : stop], "big")
        parts.append((kind, offset, offset + length))
        offset += length
        position = stop
    return tuple(parts)


def _as_map(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, Mapping) else _NO_HEADERS
