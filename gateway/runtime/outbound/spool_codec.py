"""Messages and the archive rows they will owe, as bytes for the disk and back; no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import msgpack

from gateway.archive.journal.records import Cell, Rows
from gateway.archive.schema import Leg, Step
from gateway.errors import SpoolError
from gateway.model.message import PLAIN, DeliveryMode, Headers, Message

_FIELDS: Final = tuple(Headers.__dataclass_fields__)
_HUGE: Final = 1  # extension type of an integer past 64 bits, in decimal digits


@dataclass(frozen=True, slots=True)
class End:
    """What the archive will say of the messages at `positions`, but when and after how many tries.

    `rows` is their delivered row as it will be.
    """

    positions: tuple[int, ...]
    rows: Rows
    source: str  # the endpoint the messages came from

    def ended(self, wanted: Sequence[int], **facts: Cell) -> Rows:
        """The rows of the messages at `wanted`, a part of `positions`, with `facts` put in."""
        index = {position: at for at, position in enumerate(self.positions)}
        chosen = [index[position] for position in wanted]
        columns = {
            name: [values[at] for at in chosen] for name, values in self.rows.columns.items()
        }
        return Rows(len(chosen), {**self.rows.common, **facts}, columns)

    def spooled(self, wanted: Sequence[int], at: int) -> Rows:
        """Rows that say that the gateway keeps the messages at `wanted` since `at`."""
        facts: dict[str, Cell] = {"leg": Leg.SPOOLED.value, "outcome": Step.SPOOLED.value}
        facts |= {"time": at, "attempt": 1}
        return self.ended(wanted, **facts)


def pack_parcel(messages: Sequence[Message], ends: Sequence[End]) -> bytes:
    """Messages for one target with their ends; equal headers are kept once."""
    table, listed = _listed(messages)
    told = [[end.positions, end.rows.common, end.rows.columns, end.source] for end in ends]
    return _pack([table, listed, told])


def unpack_parcel(body: bytes) -> tuple[list[Message], list[End]]:
    """The reverse of `pack_parcel`."""
    table, listed, told = _unpack(body)
    headers = [_headers(fields) for fields in table]
    messages = [Message(address, payload, headers[at]) for address, payload, at in listed]
    ends = [
        End(tuple(positions), Rows(len(positions), common, columns), source)
        for positions, common, columns, source in told
    ]
    return messages, ends


def part_of(ends: Sequence[End], kept: Sequence[int], attempts: int) -> list[End]:
    """`ends` of a parcel of which only the messages at `kept` are left, after `attempts`."""
    place = {position: at for at, position in enumerate(kept)}
    parts: list[End] = []
    for end in ends:
        wanted = [position for position in end.positions if position in place]
        if wanted:
            moved = tuple(place[position] for position in wanted)
            parts.append(End(moved, end.ended(wanted, attempt=attempts), end.source))
    return parts


def pack_message(message: Message) -> bytes:
    return pack_parcel([message], [])


def unpack_message(body: bytes) -> Message:
    return unpack_parcel(body)[0][0]


def _listed(messages: Sequence[Message]) -> tuple[list[dict[str, object]], list[list[object]]]:
    numbers: dict[int, int] = {}
    table: list[dict[str, object]] = []
    listed: list[list[object]] = []
    for message in messages:
        at = numbers.setdefault(id(message.headers), len(table))
        if at == len(table):
            table.append(_said(message.headers))
        listed.append([message.address, message.payload, at])
    return table, listed


def _said(headers: Headers) -> dict[str, object]:
    """The fields that say something, by name, so that a later version can add some."""
    values = ((name, getattr(headers, name)) for name in _FIELDS)
    return {name: value for name, value in values if value != getattr(PLAIN, name)}


def _headers(fields: Mapping[str, object]) -> Headers:
    known = {name: value for name, value in fields.items() if name in _FIELDS}
    if "mode" in known:
        known["mode"] = DeliveryMode(int(str(known["mode"])))
    if "origin" in known:
        known["origin"] = tuple(known["origin"])  # type: ignore[arg-type]  # a list of strings
    return replace(PLAIN, **known)  # type: ignore[arg-type]  # as `_said` wrote them


def _pack(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass", default=_beyond)
    return packed


def _beyond(value: object) -> object:
    """What msgpack has no type for: integers past 64 bits, and read-only mappings."""
    if isinstance(value, int):
        return msgpack.ExtType(_HUGE, str(int(value)).encode())
    if isinstance(value, (Mapping, MappingProxyType)):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept on disk")


def _unpack(body: bytes) -> tuple[list[Any], list[Any], list[Any]]:
    """What `_pack` was given.

    Raises:
        SpoolError: the bytes are damaged.
    """
    try:
        table, listed, told = msgpack.unpackb(
            body,
            unicode_errors="surrogatepass",
            strict_map_key=False,
            ext_hook=lambda _, digits: int(digits),
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise SpoolError(f"spool: {len(body)} bytes are damaged: {error}") from error
    return table, listed, told
