"""Data messages as a receiver reads them: topic, payload and properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.smf import parameters as kinds
from gateway.wire.smf.frames import DISCARDED, HEADER_SIZE
from gateway.wire.smf.parameters import U32
from gateway.wire.smf.sdt import decode_value

_XML, _ATTACHMENT, _METADATA = 1, 2, 4  # elements of the content summary
_EMPTY_MAP: Final[Mapping[str, Value]] = MappingProxyType({})


class SmfPayloadForm(Enum):
    """The type of the payload, as its sender declares it by a code."""

    TEXT = 0x07
    MAP = 0x0A
    STREAM = 0x0B
    BYTES = 0x80


_FORMS: Final = {form.value: form for form in SmfPayloadForm}


@dataclass(frozen=True, slots=True)
class MessageMetadata:
    """The binary metadata: form of the payload, header map and user properties."""

    form: SmfPayloadForm | None
    headers: Mapping[str, Value]
    properties: Mapping[str, Value]


NO_METADATA: Final = MessageMetadata(None, _EMPTY_MAP, _EMPTY_MAP)


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The header parameters that a receiver uses, and the bounds of the body's parts."""

    topic: str
    parts: tuple[tuple[int, int, int], ...]  # kind, start and stop within the body
    priority: int
    persistent: bool
    redelivered: bool
    time_to_live: int  # milliseconds; 0: unlimited


def has_discard_flag(frame: bytes) -> bool:
    """Return whether the broker dropped messages before this one."""
    return bool(frame and frame[0] & DISCARDED)


def body_start(frame: bytes) -> int:
    """Return the offset of the body.

    Raises:
        WireError: the frame is shorter than a header.
    """
    if len(frame) < HEADER_SIZE:
        raise WireError(
            f"smf: a message of {len(frame)} bytes is shorter than a header of {HEADER_SIZE}"
        )
    start: int = U32.unpack_from(frame, 4)[0]
    return start


def decode_header(parameters: bytes) -> MessageHeader:
    """Decode the header parameters.

    Raises:
        WireError: the topic is missing, or a parameter ends outside.
    """
    found: dict[int, bytes] = {}
    position, end = 0, len(parameters)
    while position < end:
        first = parameters[position]
        if first & 0x20 or not first:  # light parameters and padding
            position += 1 + (first & 3)
            continue
        size = parameters[position + 1] if position + 1 < end else 0
        start = position + 2
        if not size and start + 4 <= end:
            size, start = U32.unpack_from(parameters, start)[0], position + 6
        stop = position + size
        if not start <= stop <= end:
            raise WireError(f"smf: header parameter 0x{first:02x} ends outside its header")
        found[first & 0x1F] = parameters[start:stop]
        position = stop
    if kinds.TOPIC not in found:
        raise WireError("smf: a message has no topic")
    return MessageHeader(
        topic=found[kinds.TOPIC].partition(b"\0")[0].decode("utf-8", "backslashreplace"),
        parts=_read_summary(found.get(kinds.SUMMARY, b"")),
        priority=int.from_bytes(found.get(kinds.PRIORITY, b"\4"), "big"),
        persistent=kinds.DELIVERY_MODE in found and found[kinds.DELIVERY_MODE] != b"\2",
        redelivered=kinds.REDELIVERED in found,
        time_to_live=int.from_bytes(found.get(kinds.TIME_TO_LIVE, b""), "big"),
    )


def header_parameters(frame: bytes) -> bytes:
    """Return the bytes of the header parameters.

    Raises:
        WireError: the frame is shorter than a header.
    """
    return frame[HEADER_SIZE : body_start(frame)]


def split_body(frame: bytes, header: MessageHeader) -> tuple[bytes, bytes]:
    """Return the payload and the binary metadata.

    Raises:
        WireError: a part of the content summary ends behind the message.
    """
    start = body_start(frame)
    payload = metadata = b""
    for kind, low, high in header.parts:
        if start + high > len(frame):
            raise WireError("smf: a part of the content summary ends behind the message")
        if kind == _METADATA:
            metadata = frame[start + low : start + high]
        elif kind == _ATTACHMENT or (kind == _XML and not payload):
            payload = frame[start + low : start + high]
    if not header.parts:
        payload = frame[start:]
    return payload, metadata


def decode_metadata(metadata: bytes) -> MessageMetadata:
    """Decode binary metadata.

    Raises:
        WireError: Solace's libraries do not write such a block.
    """
    if not metadata:
        return NO_METADATA
    if len(metadata) < 5 or metadata[0] != 1:  # a count and a u32
        raise WireError("smf: binary metadata has an unknown form")
    items = decode_value(metadata[5:])
    if not isinstance(items, list):
        raise WireError("smf: binary metadata is no stream")
    codes = [item for item in items if isinstance(item, bytes)]
    maps = [item for item in items if isinstance(item, Mapping)]
    first = codes[0][0] if codes and codes[0] else 0
    content = maps[0] if maps else _EMPTY_MAP
    return MessageMetadata(_FORMS.get(first), _as_map(content.get("h")), _as_map(content.get("p")))


def decode_payload(payload: bytes, form: SmfPayloadForm | None) -> bytes | str | dict[str, Value]:
    """Return the payload as its sender gave it; a stream becomes a map with the key `stream`.

    Raises:
        WireError: the payload does not have the declared form.
    """
    if form is None or form is SmfPayloadForm.BYTES or not payload:
        return "" if form is SmfPayloadForm.TEXT else payload
    value = decode_value(payload)
    if isinstance(value, str) and form is SmfPayloadForm.TEXT:
        return value
    if isinstance(value, Mapping) and form is SmfPayloadForm.MAP:
        return dict(value)
    if isinstance(value, list) and form is SmfPayloadForm.STREAM:
        return {"stream": value}
    raise WireError(f"smf: the payload is declared as {form.name.lower()} and is not")


def _read_summary(summary: bytes) -> tuple[tuple[int, int, int], ...]:
    parts: list[tuple[int, int, int]] = []
    position = offset = 0
    while position < len(summary):
        kind, size = summary[position] >> 4, summary[position] & 0xF
        stop = position + size
        if size < 2 or stop > len(summary):  # the head and a byte of size
            raise WireError("smf: the content summary is malformed")
        length = int.from_bytes(summary[position + 1 : stop], "big")
        parts.append((kind, offset, offset + length))
        offset += length
        position = stop
    return tuple(parts)


def _as_map(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, Mapping) else _EMPTY_MAP
