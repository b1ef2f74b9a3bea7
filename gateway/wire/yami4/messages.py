"""YAMI4 message headers: requests, replies and rejections.

Names stay bytes here: brokers compare tags byte by byte, whatever their charset.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.errors import WireError
from gateway.model.message import Value
from gateway.wire.yami4.parameters import (
    LONG,
    WORD,
    Code,
    Long,
    ValueLimits,
    blob,
    decode_parameters,
    entry_head,
)

ID_SIZE: Final = 8  # bytes of the message id, which ends every header we write but a rejection
_LIMITS: Final = ValueLimits(depth=8, values=1_000)
_LONGEST_KEPT: Final = 1_024  # bytes of a header worth remembering
_MOST_KEPT: Final = 8_192


class Kind(Enum):
    MESSAGE = "message"
    REPLY = "reply"
    EXCEPTION = "exception"


_KINDS: Final = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Heading:
    """A header without its message id; names and reason are empty where it has none."""

    kind: Kind
    object_name: bytes = b""
    message_name: bytes = b""
    reason: bytes = b""


def _string(name: str, data: bytes) -> bytes:
    return entry_head(name, Code.STRING) + blob(data)


_ID_HEAD: Final = entry_head("message_id", Code.LONG)
_MESSAGE: Final = WORD.pack(4) + _string("type", b"message")
REPLY_HEAD: Final = WORD.pack(2) + _string("type", b"reply") + _ID_HEAD
_EXCEPTION: Final = WORD.pack(3) + _string("type", b"exception") + _ID_HEAD


def request_head(object_name: bytes, message_name: bytes) -> bytes:
    """All of a request's header before its message id; the same for every message of a name."""
    names = _string("object_name", object_name) + _string("message_name", message_name)
    return _MESSAGE + names + _ID_HEAD


def encode_id(message_id: int) -> bytes:
    return LONG.pack(message_id)


def encode_request(object_name: bytes, message_name: bytes, message_id: int) -> bytes:
    return request_head(object_name, message_name) + LONG.pack(message_id)


def encode_reply(message_id: int) -> bytes:
    return REPLY_HEAD + LONG.pack(message_id)


def encode_exception(message_id: int, reason: bytes) -> bytes:
    return _EXCEPTION + LONG.pack(message_id) + _string("reason", reason)


def read_header(header: bytes) -> tuple[Heading, int] | None:
    """Return what the header says and its message id, or None when a peer would ignore it.

    Fields come in any order, unknown ones are skipped, and an id must be a `long long`.
    """
    try:
        fields = decode_parameters(header, _LIMITS, errors="surrogateescape")
    except WireError:
        return None
    kind, message_id = _KINDS.get(str(fields.get("type"))), fields.get("message_id")
    if kind is None or not isinstance(message_id, Long):
        return None
    if kind is not Kind.MESSAGE:
        return Heading(kind, reason=_raw(fields.get("reason")) or b""), message_id
    object_name, message_name = _raw(fields.get("object_name")), _raw(fields.get("message_name"))
    if object_name is None or message_name is None:
        return None
    return Heading(kind, object_name, message_name), message_id


def _raw(value: Value) -> bytes | None:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else None


class HeaderReader:
    """Reads headers and remembers those that differ only in their id, within bounds."""

    def __init__(self) -> None:
        self._known: dict[bytes, Heading] = {}

    def read(self, header: bytes) -> tuple[Heading, int] | None:
        heading = self._known.get(header[:-ID_SIZE])
        if heading is not None:
            return heading, LONG.unpack_from(header, len(header) - ID_SIZE)[0]
        found = read_header(header)
        if found is not None and len(header) <= _LONGEST_KEPT and _canonical(*found) == header:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[header[:-ID_SIZE]] = found[0]
        return found


def _canonical(heading: Heading, message_id: int) -> bytes:
    """The header as written when the id comes last, which is what makes it worth keeping."""
    if heading.kind is Kind.MESSAGE:
        return encode_request(heading.object_name, heading.message_name, message_id)
    return encode_reply(message_id) if heading.kind is Kind.REPLY else b""
