"""Encoding of spooled batches: messages and their pending archive rows to bytes and back.

A row in the spool's file has a checksum, which tells a bit that the disk changed: SQLite checks the
form of its pages and no content. The checksum covers the other columns of a row as well: a changed
endpoint must not send a message to another target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgpack
from xxhash import xxh3_64

from gateway.archive.journal.records import Rows
from gateway.errors import SpoolError
from gateway.model.message import (
    HEADER_FIELDS,
    NO_HEADERS,
    DeliveryMode,
    DroppedPayload,
    Headers,
    Message,
    Payload,
)
from gateway.model.proof_text import read_proof
from gateway.runtime.delivery.outbound_batch import PendingRow


def checksum(body: bytes, columns: Sequence[object]) -> bytes:
    """The checksum, 8 bytes, of the body of a row and of its other `columns`."""
    found = xxh3_64(_column_bytes(columns))
    found.update(body)
    return found.digest()


def check(body: bytes, columns: Sequence[object], stored: bytes) -> None:
    """Check a row.

    Raises:
        SpoolError: the row is not as it was written.
    """
    if stored != checksum(body, columns):
        raise SpoolError(f"spool: the checksum of {len(body)} bytes differs")


def _column_bytes(columns: Sequence[object]) -> bytes:
    return repr((*columns,)).encode(errors="surrogatepass")


_DAMAGE: Final = (  # what bytes raise that `pack_batch` did not write
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
    msgpack.UnpackException,
)
_BIG_INTEGER: Final = 1  # extension type of an integer past 64 bits: in hexadecimal digits
_DROPPED: Final = 2  # extension type of a payload that was not kept: its size, as above


def pack_batch(messages: Sequence[Message], pending: Sequence[PendingRow]) -> bytes:
    """Encode messages for one target with their pending rows; equal headers are stored once.

    Raises:
        SpoolError: a value has no form on disk.
    """
    table, entries = _header_table(messages)
    rows = [[each.positions, each.rows.common, each.rows.columns, each.source] for each in pending]
    return _pack([table, entries, rows])


def unpack_batch(body: bytes) -> tuple[list[Message], list[PendingRow]]:
    """Decode the bytes of `pack_batch`.

    Raises:
        SpoolError: the bytes are damaged.
    """
    try:
        table, entries, rows = msgpack.unpackb(
            body, unicode_errors="surrogatepass", strict_map_key=False, ext_hook=_decode_other
        )
        headers = [_headers(fields) for fields in table]
        messages = [_message(headers, *entry) for entry in entries]
        pending = [
            PendingRow(tuple(positions), Rows(len(positions), common, columns), source)
            for positions, common, columns, source in rows
        ]
    except _DAMAGE as error:
        raise SpoolError(f"spool: {len(body)} bytes are damaged: {error}") from error
    return messages, pending


def select_pending(
    pending: Sequence[PendingRow], kept: Sequence[int], attempts: int
) -> list[PendingRow]:
    """The pending rows of the messages at `kept`, renumbered, with `attempts` so far."""
    renumbered = {position: at for at, position in enumerate(kept)}
    selected: list[PendingRow] = []
    for each in pending:
        wanted = [position for position in each.positions if position in renumbered]
        if wanted:
            positions = tuple(renumbered[position] for position in wanted)
            rows = each.completed(wanted, attempt=attempts)
            selected.append(PendingRow(positions, rows, each.source))
    return selected


def pack_message(message: Message) -> bytes:
    """Encode one message.

    Raises:
        SpoolError: a value has no form on disk.
    """
    return pack_batch([message], [])


def unpack_message(body: bytes) -> Message:
    return unpack_batch(body)[0][0]


def _header_table(
    messages: Sequence[Message],
) -> tuple[list[dict[str, object]], list[list[object]]]:
    """The distinct headers, and name, payload, header index and proof of each message."""
    numbers: dict[int, int] = {}
    table: list[dict[str, object]] = []
    entries: list[list[object]] = []
    for message in messages:
        at = numbers.setdefault(id(message.headers), len(table))
        if at == len(table):
            table.append(_set_fields(message.headers))
        proof = [message.proof] if message.proof else []
        payload: object = message.payload
        if isinstance(payload, DroppedPayload):
            payload = msgpack.ExtType(_DROPPED, hex(payload.full).encode())
        entries.append([message.address, payload, at, *proof])
    return table, entries


def _message(
    headers: Sequence[Headers], address: str, payload: Payload, at: int, proof: object = ""
) -> Message:
    return Message(address, payload, headers[at], read_proof(proof))


def _set_fields(headers: Headers) -> dict[str, object]:
    """The fields that differ from their default, by name, so that a later version can add some."""
    values = ((name, getattr(headers, name)) for name in HEADER_FIELDS)
    return {name: value for name, value in values if value != getattr(NO_HEADERS, name)}


def _headers(fields: Mapping[str, object]) -> Headers:
    known = {name: value for name, value in fields.items() if name in HEADER_FIELDS}
    if "mode" in known:
        known["mode"] = DeliveryMode(int(str(known["mode"])))
    if "origin" in known:
        known["origin"] = tuple(known["origin"])  # type: ignore[arg-type]  # a list of strings
    return replace(NO_HEADERS, **known)  # type: ignore[arg-type]  # as `_set_fields` wrote them


def _pack(value: object) -> bytes:
    try:
        packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass", default=_encode_other)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise SpoolError(f"spool: a message has no form on disk: {error}") from error
    return packed


def _encode_other(value: object) -> object:
    """Encode the types that msgpack lacks: integers past 64 bits, and read-only mappings."""
    if isinstance(value, int):
        return msgpack.ExtType(_BIG_INTEGER, hex(value).encode())  # Python limits decimal digits
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept on disk")


def _decode_other(kind: int, digits: bytes) -> int | DroppedPayload:
    number = int(digits, 16)
    return DroppedPayload(number) if kind == _DROPPED else number
