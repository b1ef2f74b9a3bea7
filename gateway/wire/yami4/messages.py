"""YAMI4 message headers: requests, replies and exceptions.

Names stay bytes here: brokers compare tags byte by byte, in any character set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.errors import WireError
from gateway.model.limited_cache import LimitedCache
from gateway.model.message import Value
from gateway.wire.yami4.parameters import (
    LONG,
    WORD,
    Long,
    TypeCode,
    decode_parameters,
    encode_blob,
    entry_head,
)

ID_SIZE: Final = LONG.size  # of the message id, which ends our headers except an exception's
_MAX_CACHED: Final = 4 << 20  # bytes of headings


class MessageKind(Enum):
    MESSAGE = "message"
    REPLY = "reply"
    EXCEPTION = "exception"


_KINDS: Final = {kind.value: kind for kind in MessageKind}


@dataclass(frozen=True, slots=True)
class MessageHeading:
    """A header without its message id; an absent name or reason is empty."""

    kind: MessageKind
    object_name: bytes = b""
    message_name: bytes = b""
    reason: bytes = b""


def _string_entry(name: str, data: bytes) -> bytes:
    return entry_head(name, TypeCode.STRING) + encode_blob(data)


_ID_HEAD: Final = entry_head("message_id", TypeCode.LONG)
_MESSAGE: Final = WORD.pack(4) + _string_entry("type", b"message")
REPLY_HEAD: Final = WORD.pack(2) + _string_entry("type", b"reply") + _ID_HEAD
_EXCEPTION: Final = WORD.pack(3) + _string_entry("type", b"exception") + _ID_HEAD


def request_head(object_name: bytes, message_name: bytes) -> bytes:
    """Return a request's header up to its message id; all messages of a name share it."""
    names = _string_entry("object_name", object_name) + _string_entry("message_name", message_name)
    return _MESSAGE + names + _ID_HEAD


def encode_id(message_id: int) -> bytes:
    return LONG.pack(message_id)


def encode_request(object_name: bytes, message_name: bytes, message_id: int) -> bytes:
    return request_head(object_name, message_name) + LONG.pack(message_id)


def encode_reply(message_id: int) -> bytes:
    return REPLY_HEAD + LONG.pack(message_id)


def encode_exception(message_id: int, reason: bytes) -> bytes:
    return _EXCEPTION + LONG.pack(message_id) + _string_entry("reason", reason)


def read_header(header: bytes) -> tuple[MessageHeading, int] | None:
    """Return the heading and the message id, or None when a peer would ignore the header.

    Fields come in any order, unknown ones are skipped, and the id must be a `long long`.
    """
    try:
        fields = decode_parameters(header, depth=8, values=1_000, errors="surrogateescape")
    except WireError:
        return None
    kind, message_id = _KINDS.get(str(fields.get("type"))), fields.get("message_id")
    if kind is None or not isinstance(message_id, Long):
        return None
    if kind is not MessageKind.MESSAGE:
        return MessageHeading(kind, reason=_as_bytes(fields.get("reason")) or b""), message_id
    object_name = _as_bytes(fields.get("object_name"))
    message_name = _as_bytes(fields.get("message_name"))
    if object_name is None or message_name is None:
        return None
    return MessageHeading(kind, object_name, message_name), message_id


def _as_bytes(value: Value) -> bytes | None:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else None


class HeaderReader:
    """Reads headers, and caches headings that many messages share.

    Mutable: used by one thread at a time.
    """

    def __init__(self) -> None:
        self._headings: LimitedCache[bytes, MessageHeading] = LimitedCache(_MAX_CACHED)

    def read(self, header: bytes) -> tuple[MessageHeading, int] | None:
        heading = self._headings.get(header[:-ID_SIZE])
        if heading is not None:
            return heading, LONG.unpack_from(header, len(header) - ID_SIZE)[0]
        found = read_header(header)
        if found is not None and _canonical(*found) == header:
            self._headings.add(header[:-ID_SIZE], found[0], 2 * len(header))
        return found


def _canonical(heading: MessageHeading, message_id: int) -> bytes:
    """Return the header as written with the id last; only such a heading is cached."""
    if heading.kind is MessageKind.MESSAGE:
        return encode_request(heading.object_name, heading.message_name, message_id)
    return encode_reply(message_id) if heading.kind is MessageKind.REPLY else b""
