"""The bytes of a journal: batches of rows packed into framed records, and read back.

A journal is MAGIC, then records: MARK, length, CRC-32, body. The body is a msgpack list of
batches, each `[count, common, columns]`. A column is a list of values, or the index of an equal
list earlier in the same record: both legs of a message share most lists. A reader finds the next
record after a damaged one by its mark. The body of the head and of the trailer is a mapping: see
`gateway.archive.journal.ends`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import msgpack

from gateway.archive.schema import COLUMNS
from gateway.errors import ArchiveError
from gateway.untyped import Untyped

Cell: TypeAlias = "str | bytes | int | bool | Sequence[str] | Mapping[str, str] | None"

MAGIC: Final = b"GWJRNL\x00\x03"  # the last byte is the version
MARK: Final = b"\xf5\x9cGR"
_HEADER = struct.Struct(">4sII")
_MAX_SEARCH: Final = 64 << 20  # bytes; a payload can hold many marks, each with a long length
_EMPTY: Mapping[str, Cell] = {}
_TYPES: Final[Mapping[str, type]] = {"string": str, "binary": bytes, "timestamp": int}
_MAX_INT64: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch of `count` rows: shared values in `common`, the others column by column in `columns`.

    A column in neither is null. The writer adds the column `gateway`.

    Units: microseconds since 1970-01-01 UTC.
    """

    count: int
    common: Mapping[str, Cell] = field(default_factory=dict)
    columns: Mapping[str, Sequence[Cell]] = field(default_factory=dict)

    def values(self, name: str) -> Sequence[Cell]:
        """Return the column `name` with one value for each row."""
        own = self.columns.get(name)
        return [self.common.get(name)] * self.count if own is None else own


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a journal that are not a record; `torn` when no readable record follows them."""

    offset: int
    size: int
    torn: bool


def pack(batches: Sequence[Rows], common: Mapping[str, Cell] = _EMPTY) -> bytes:
    """Pack `batches` into one record; `common` is added to the shared values of each.

    Raises:
        ValueError: a column is unknown, or has not `count` values.
    """
    known: dict[int, int] = {}  # id() of a list -> its index; `batches` keeps the lists alive
    body: bytes = msgpack.packb(
        [[rows.count, {**common, **rows.common}, _columns_of(rows, known)] for rows in batches],
        unicode_errors="backslashreplace",  # a lone surrogate must not stop an archive
    )
    return _framed(body)


def pack_mapping(values: Mapping[str, object]) -> bytes:
    """Pack a mapping into one record."""
    return _framed(msgpack.packb(values, unicode_errors="backslashreplace"))


def _framed(body: bytes) -> bytes:
    return _HEADER.pack(MARK, len(body), zlib.crc32(body)) + body


def is_journal(data: bytes) -> bool:
    """Return whether `data` starts with `MAGIC`, or with a cut beginning of it."""
    return MAGIC.startswith(data[: len(MAGIC)])


def fault_of(data: bytes) -> str | None:
    """Return why `data` is not a journal of this version, as a predicate; None when it is."""
    if is_journal(data):
        return None
    if data.startswith(MAGIC[:-1]):
        return f"is a journal of version {data[len(MAGIC) - 1]}; this gateway reads {MAGIC[-1]}"
    return "is not a journal"


def _columns_of(rows: Rows, known: dict[int, int]) -> Mapping[str, Sequence[Cell] | int]:
    """Return the columns; a list that is `known` is replaced by its index."""
    columns: dict[str, Sequence[Cell] | int] = {}
    for name, values in rows.columns.items():
        if len(values) != rows.count:
            raise ValueError(f"archive: column {name!r} has {len(values)} of {rows.count} values")
        index = known.get(id(values))
        if index is None:
            known[id(values)] = len(known)
        columns[name] = values if index is None else index
    if unknown := (rows.columns.keys() | rows.common.keys()) - COLUMNS.keys():
        raise ValueError(f"archive: unknown columns {sorted(unknown)}")
    return columns


def read_records(
    data: bytes, start: int = len(MAGIC), required: Collection[str] = ()
) -> Iterator[list[Rows] | Damage]:
    """Yield the batches of every complete record in order, and the damages between them.

    The head and the trailer have no batches, and are left out. A record with a row whose value in
    a `required` column is absent or of another type is a damage.
    """
    for found in record_spans(data, start):
        if isinstance(found, Damage):
            yield found
            continue
        try:
            batches = read_batches(data, found, required)
        except ArchiveError:
            start = found.start - _HEADER.size
            yield Damage(start, found.stop - start, torn=False)
            continue
        if batches is not None:
            yield batches


def record_spans(data: bytes, start: int = len(MAGIC)) -> Iterator[slice | Damage]:
    """Yield the span of the body of every complete record, and the damages between them."""
    offset = start
    budget = _MAX_SEARCH + 2 * len(data)
    while offset < len(data):
        if (end := _record_end(data, offset)) is not None:
            yield slice(offset + _HEADER.size, end)
            offset = end
            continue
        next_record, budget = _next_record(data, offset + 1, budget)
        yield Damage(offset, (next_record or len(data)) - offset, torn=next_record is None)
        offset = next_record or len(data)


def read_batches(data: bytes, body: slice, required: Collection[str] = ()) -> list[Rows] | None:
    """Return the batches of the record with this `body`; None when it is a mapping.

    Raises:
        ArchiveError: the record is intact, and no gateway wrote it.
    """
    found = _unpack(data, body)
    if isinstance(found, dict):
        return None
    try:
        batches = _batches(found, body.stop - body.start)
        for rows in batches:
            _check_values(rows, required)
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise _malformed(body, error) from error
    return batches


def read_mapping(data: bytes, offset: int) -> tuple[Mapping[str, object], int] | None:
    """Return the mapping in the record at `offset`, and its end; None when it is another one."""
    with suppress(ArchiveError):
        if (end := _record_end(data, offset)) is not None:
            body = _unpack(data, slice(offset + _HEADER.size, end))
            return (body, end) if isinstance(body, dict) else None
    return None


def _record_end(data: bytes, offset: int) -> int | None:
    """Return the end of the record at `offset`; None when there is no complete record."""
    body = offset + _HEADER.size
    if body > len(data):
        return None
    mark, length, crc = _HEADER.unpack_from(data, offset)
    if mark != MARK or body + length > len(data):
        return None
    intact = zlib.crc32(memoryview(data)[body : body + length]) == crc
    return body + length if intact else None


def _next_record(data: bytes, offset: int, budget: int) -> tuple[int | None, int]:
    """Return the next complete record, and how many bytes may still be compared with a CRC."""
    while (found := data.find(MARK, offset)) >= 0 and budget > 0:
        if _record_end(data, found) is not None:
            return found, budget
        length = int.from_bytes(data[found + 4 : found + 8], "big")
        budget -= length if length <= len(data) - found else 0
        offset = found + 1
    return None, budget


def _unpack(data: bytes, body: slice) -> Untyped:
    try:
        return msgpack.unpackb(memoryview(data)[body])
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise _malformed(body, error) from error


def _malformed(body: slice, error: Exception) -> ArchiveError:
    return ArchiveError(f"archive: the record at byte {body.start} is not a gateway's: {error}")


def _batches(body: Sequence[Sequence[Any]], size: int) -> list[Rows]:
    """Return the batches of a record of `size` bytes; each has at most a row for every byte."""
    lists: list[Sequence[Cell]] = []
    for _, _, columns in body:
        for name, values in columns.items():
            if isinstance(values, int):
                if values < 0:
                    raise ValueError("a column refers to no list")
                columns[name] = lists[values]
            else:
                lists.append(values)
    found = [Rows(count, common, columns) for count, common, columns in body]
    for rows in found:
        if type(rows.count) is not int or not 0 <= rows.count <= size:
            raise ValueError(f"a batch has {rows.count!r} rows")
        if not isinstance(rows.common, dict):
            raise TypeError("the shared values of a batch are no mapping")
        if any(type(each) is not list or len(each) != rows.count for each in rows.columns.values()):
            raise ValueError("the columns of a batch differ in length")
    return found


def _check_values(rows: Rows, names: Collection[str]) -> None:
    """Check that every row has a value of the right type in the columns `names`.

    Raises:
        ValueError: a value is absent, of another type, or out of range.
    """
    for name in names:
        kind = COLUMNS[name]
        values = rows.columns.get(name)
        if values is None:
            values = [rows.common.get(name)]
        if {*map(type, values)} - {_TYPES[kind]}:
            raise ValueError(f"column {name!r} has a value that is no {kind}")
        if kind == "timestamp" and not all(abs(cast(int, each)) < _MAX_INT64 for each in values):
            raise ValueError(f"column {name!r} has a time out of range")
