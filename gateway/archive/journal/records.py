"""The journal's bytes: batches of rows to framed records and back; no files, no clock.

A journal is MAGIC, then records: MARK, length, CRC-32, body. The body is a msgpack list of
batches, each `[count, common, columns]`. A column is a list of values, or the number of the list
in its record that has the same: both legs of a message share most. The mark lets a reader find the
next record after a damaged one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgpack

from gateway.archive.schema import COLUMNS

Cell: TypeAlias = "str | bytes | int | bool | Sequence[str] | Mapping[str, str] | None"

MAGIC: Final = b"GWJRNL\x00\x02"
_READABLE: Final = (MAGIC, b"GWJRNL\x00\x01")  # 1 has every list where it is used
MARK: Final = b"\xf5\x9cGR"
_HEAD = struct.Struct(">4sII")
_NOTHING: Mapping[str, Cell] = {}


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows: what they share in `common`, the rest column by column in `columns`.

    Times are microseconds since 1970-01-01 UTC. A column of neither is null; `gateway` is filled
    in by the writer.
    """

    count: int
    common: Mapping[str, Cell] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Cell]] = field(default_factory=dict)

    def values(self, name: str) -> Sequence[Cell]:
        """The column `name`, row by row, whether they share its value or not."""
        own = self.columns.get(name)
        return [self.common.get(name)] * self.count if own is None else own


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a journal that are no record; `torn` when nothing readable follows them."""

    offset: int
    size: int
    torn: bool


def pack(batches: Sequence[Rows], common: Mapping[str, Cell] = _NOTHING) -> bytes:
    """One record of `batches`; `common` is added to what the rows of each share.

    Raises:
        ValueError: a column is unknown, or does not have `count` values.
    """
    known: dict[int, int] = {}  # identity of a list -> its number
    body: bytes = msgpack.packb(
        [[rows.count, {**common, **rows.common}, _listed(rows, known)] for rows in batches],
        unicode_errors="backslashreplace",  # a lone surrogate must not stop an archive
    )
    return _HEAD.pack(MARK, len(body), zlib.crc32(body)) + body


def is_journal(data: bytes) -> bool:
    """Whether `data` begins as a journal that this version reads, or is cut before that shows."""
    return any(magic.startswith(data[: len(magic)]) for magic in _READABLE)


def _listed(rows: Rows, known: dict[int, int]) -> Mapping[str, Sequence[Cell] | int]:
    """The columns, numbers in the place of lists that are `known`."""
    columns: dict[str, Sequence[Cell] | int] = {}
    for name, values in rows.columns.items():
        if len(values) != rows.count:
            raise ValueError(f"archive: column {name!r} has {len(values)} of {rows.count} values")
        number = known.get(id(values))
        if number is None:
            known[id(values)] = len(known)
        columns[name] = values if number is None else number
    if unknown := (rows.columns.keys() | rows.common.keys()) - COLUMNS.keys():
        raise ValueError(f"archive: unknown columns {sorted(unknown)}")
    return columns


def read_records(data: bytes, start: int = len(MAGIC)) -> Iterator[list[Rows] | Damage]:
    """The batches of every whole record in order, and what lies between them."""
    offset = start
    while offset < len(data):
        if (end := _record_end(data, offset)) is not None:
            yield _batches(data, offset, end)
            offset = end
            continue
        follower = _next_record(data, offset + 1)
        yield Damage(offset, (follower or len(data)) - offset, torn=follower is None)
        offset = follower or len(data)


def _record_end(data: bytes, offset: int) -> int | None:
    """Where the record at `offset` ends, or None when there is no whole one."""
    body = offset + _HEAD.size
    if body > len(data):
        return None
    mark, length, crc = _HEAD.unpack_from(data, offset)
    if mark != MARK or body + length > len(data):
        return None
    whole = zlib.crc32(memoryview(data)[body : body + length]) == crc
    return body + length if whole else None


def _next_record(data: bytes, offset: int) -> int | None:
    while (found := data.find(MARK, offset)) >= 0:
        if _record_end(data, found) is not None:
            return found
        offset = found + 1
    return None


def _batches(data: bytes, offset: int, end: int) -> list[Rows]:
    body = msgpack.unpackb(memoryview(data)[offset + _HEAD.size : end])
    lists: list[Sequence[Cell]] = []
    for _, _, columns in body:
        for name, values in columns.items():
            if isinstance(values, int):
                columns[name] = lists[values]
            else:
                lists.append(values)
    return [Rows(count, common, columns) for count, common, columns in body]
