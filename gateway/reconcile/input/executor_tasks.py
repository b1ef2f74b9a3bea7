"""Work that executors do on whole files, in Python: sums of segments. It needs no Spark itself.

Executors open the files by the same paths as the driver: the archive is local, or on a file system
that all of them have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.schema import DIGESTS, PAIRS
from gateway.archive.segments.digest import DIGEST_SCHEMA, PAIR_SCHEMA, add_up, digests_of, pairs_of
from gateway.archive.segments.digest import disordered_streams as disordered_in
from gateway.archive.segments.parquet import write_table
from gateway.reconcile.input.files import DAY
from gateway.reconcile.input.footers import note_of

Record: TypeAlias = tuple[Any, ...]  # a row of a table, as Spark takes it

_NEEDED: Final = (
    "gateway", "route", "target", "targets", "leg", "system", "name", "source_name", "id", "hash",
    "time", "received", "outcome", "redelivered", "attempt", "size",
)  # fmt: skip
_BLOCKWISE: Final = ("disordered",)  # sums over blocks of a file, not over the whole


def blocks(path: Path) -> Iterator[pa.Table]:
    """The rows of a file, a row group at a time, with the columns that sums are made of."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        columns = [name for name in _NEEDED if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=columns)
            if rows.num_rows:
                yield rows


def digest_rows(paths: Iterable[str]) -> Iterator[Record]:
    """Digest rows of segments that have none, with the file and `forced` at the end."""
    for path in paths:
        for row in digest_file(Path(path)).to_pylist():
            yield (*(row[name] for name in DIGESTS), path, True)


def pair_rows(paths: Iterable[str]) -> Iterator[Record]:
    """Name pairs of segments that have none, block by block, with file and block at the end."""
    for path in paths:
        for number, rows in enumerate(blocks(Path(path))):
            for row in _pairs(rows).to_pylist():
                yield (*(row[name] for name in PAIRS), path, number)


def disordered_streams(paths: Iterable[str]) -> Iterator[Record]:
    """Gateway, route, target and source name of what is out of order in a file, then the file.

    A day table is told block by block, as its digest and its pairs are; a segment as a whole.
    """
    for path in paths:
        whole = blocks(Path(path))
        parts = whole if Path(path).parent.name == DAY else [pa.concat_tables(list(whole))]
        found = {tuple(row.values()) for part in parts for row in _streams(part)}
        yield from ((*stream, path) for stream in sorted(found))


def _streams(rows: pa.Table) -> list[dict[str, str]]:
    return list(disordered_in(rows).to_pylist())


def digest_file(path: Path) -> pa.Table:
    """The digest of a file; `disordered` is told within its row groups."""
    parts = [digests_of(rows) for rows in blocks(path)]
    return add_up(pa.concat_tables(parts or [DIGEST_SCHEMA.empty_table()]))


def write_sums(places: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, int]]:
    """Write the digest and the pairs of files, given with their paths; each file and its rows.

    Pairs are those of each row group, with its number as `block`, so that the order among the row
    groups of a large file can be told as that among files.
    """
    for path, digest, pairs in places:
        source = Path(path)
        named = [_numbered(rows, number) for number, rows in enumerate(blocks(source))]
        count = pq.read_metadata(source).num_rows
        note = note_of(count, source.stat().st_size)
        _keep(pa.concat_tables(named), Path(pairs))
        _keep(digest_file(source).replace_schema_metadata(note), Path(digest))
        yield path, count


def _pairs(rows: pa.Table) -> pa.Table:
    """All name pairs of `rows`, however many they are."""
    found = pairs_of(rows, kept=None)
    return found if found is not None else PAIR_SCHEMA.empty_table()


def _numbered(rows: pa.Table, number: int) -> pa.Table:
    found = _pairs(rows)
    return found.append_column("block", pa.array([number] * len(found), pa.int64()))


def _keep(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".tmp-{path.name}")
    with hidden.open("wb") as file:
        write_table(table, file)
        file.flush()
        os.fsync(file.fileno())
    hidden.replace(path)


def differences(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Segments whose digest says other sums than their rows; pairs of segment and digest."""
    for path, digest in pairs:
        if (text := _difference(Path(path), Path(digest))) is not None:
            yield digest, text


def _difference(path: Path, digest: Path) -> str | None:
    wanted = digest_file(path)
    found = pq.read_table(digest, partitioning=None)
    names = [name for name in wanted.column_names if name not in _BLOCKWISE]
    if missing := [name for name in names if name not in found.column_names]:
        names = [name for name in names if name not in missing]
    wanted, found = _ordered(wanted, names), _ordered(found, names)
    if wanted.equals(found):
        return None
    if wanted.num_rows != found.num_rows:
        return f"has {found.num_rows} sums, its segment {wanted.num_rows}"
    wrong = [name for name in names if not wanted[name].equals(found[name])]
    first = _first_difference(wanted[wrong[0]], found[wrong[0]])
    minute = wanted["minute"][first].as_py()
    return f"does not add up to its segment: {', '.join(wrong)}, first in minute {minute:%H:%M}"


def _ordered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Comparable: the same columns and types, no metadata, one order."""
    keys = [(name, "ascending") for name in ("gateway", "route", "target", "leg", "minute")]
    whole = add_up(table) if set(DIGESTS) <= set(table.column_names) else table
    return whole.select(list(names)).replace_schema_metadata(None).combine_chunks().sort_by(keys)


def _first_difference(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int:
    both = zip(one.to_pylist(), other.to_pylist(), strict=True)  # Arrow compares no lists
    return next(place for place, (left, right) in enumerate(both) if left != right)
