"""Python functions that Spark executors run on whole files: digests and name pairs of segments.

Executors open the files by the same paths as the driver: the archive is local, or on a file system
that all of them mount.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.schema import DIGESTS, PAIRS
from gateway.archive.segments.digest import DIGEST_SCHEMA, PAIR_SCHEMA, add_up, digests_of, pairs_of
from gateway.archive.segments.digest import disordered_streams as disordered_in
from gateway.archive.storage import LocalStorage
from gateway.reconcile.input.files import DAY_TABLES
from gateway.reconcile.input.footers import segment_metadata

Record: TypeAlias = tuple[Any, ...]  # a row of a DataFrame

_COLUMNS: Final = (
    "gateway", "route", "target", "targets", "leg", "system", "name", "source_name", "id", "hash",
    "time", "received", "outcome", "redelivered", "attempt", "size",
)  # fmt: skip
_BLOCKWISE: Final = ("disordered",)  # computed for each block, not for the whole file


def blocks(path: Path) -> Iterator[pa.Table]:
    """Yield the rows of a file by row group, with the columns that digests need."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        columns = [name for name in _COLUMNS if name in file.schema_arrow.names]
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=columns)
            if rows.num_rows:
                yield rows


def digest_rows(paths: Iterable[str]) -> Iterator[Record]:
    """Compute the digest rows of segments; the last columns are the file and `forced`."""
    for path in paths:
        for row in digest_file(Path(path)).to_pylist():
            yield (*(row[name] for name in DIGESTS), path, True)


def pair_rows(paths: Iterable[str]) -> Iterator[Record]:
    """Compute the name pairs of segments block by block; the last columns are file and block."""
    for path in paths:
        for number, rows in enumerate(blocks(Path(path))):
            for row in _pairs(rows).to_pylist():
                yield (*(row[name] for name in PAIRS), path, number)


def disordered_streams(paths: Iterable[str]) -> Iterator[Record]:
    """Yield gateway, route, target, source name and file of each stream that is out of order.

    A day table is checked block by block, like its digest and its pairs; a segment as a whole.
    """
    for path in paths:
        rows = blocks(Path(path))
        parts = rows if Path(path).parent.name == DAY_TABLES else [pa.concat_tables(list(rows))]
        found = {tuple(row.values()) for part in parts for row in _streams(part)}
        yield from ((*stream, path) for stream in sorted(found))


def _streams(rows: pa.Table) -> list[dict[str, str]]:
    return list(disordered_in(rows).to_pylist())


def digest_file(path: Path) -> pa.Table:
    """Compute the digest of a file, with `disordered` by row group."""
    parts = [digests_of(rows) for rows in blocks(path)]
    return add_up(pa.concat_tables(parts or [DIGEST_SCHEMA.empty_table()]))


def write_sums(paths: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, int]]:
    """Write the digest and the pairs of day tables; yield each table with its number of rows.

    `paths` are those of table, digest and pairs. Pairs are computed by row group, with its number
    as `block`, so that the order among row groups is checked like the order among files.
    """
    for path, digest, pairs in paths:
        table = Path(path)
        numbered = [_numbered_pairs(rows, number) for number, rows in enumerate(blocks(table))]
        count = pq.read_metadata(table).num_rows
        metadata = segment_metadata(count, table.stat().st_size)
        _write(Path(pairs), pa.concat_tables(numbered))
        _write(Path(digest), digest_file(table).replace_schema_metadata(metadata))
        yield path, count


def _pairs(rows: pa.Table) -> pa.Table:
    """Compute the name pairs of `rows` without a limit."""
    found = pairs_of(rows, limit=None)
    return found if found is not None else PAIR_SCHEMA.empty_table()


def _numbered_pairs(rows: pa.Table, number: int) -> pa.Table:
    found = _pairs(rows)
    return found.append_column("block", pa.array([number] * len(found), pa.int64()))


def _write(path: Path, table: pa.Table) -> None:
    LocalStorage(path.parent).write(Path(path.name), table)


def differences(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the digests that differ from their segments; `pairs` are segment and digest."""
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
        return f"has {found.num_rows} rows instead of {wanted.num_rows}"
    wrong = [name for name in names if not wanted[name].equals(found[name])]
    first = _first_difference(wanted[wrong[0]], found[wrong[0]])
    minute = wanted["minute"][first].as_py()
    return f"differs from its segment in {', '.join(wrong)}, first in minute {minute:%H:%M}"


def _ordered(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the digest in comparable form: these columns, no metadata, sorted by its keys."""
    keys = [(name, "ascending") for name in ("gateway", "route", "target", "leg", "minute")]
    summed = add_up(table) if set(DIGESTS) <= set(table.column_names) else table
    return summed.select(list(names)).replace_schema_metadata(None).combine_chunks().sort_by(keys)


def _first_difference(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int:
    both = zip(one.to_pylist(), other.to_pylist(), strict=True)  # Arrow cannot compare lists
    return next(index for index, (left, right) in enumerate(both) if left != right)
