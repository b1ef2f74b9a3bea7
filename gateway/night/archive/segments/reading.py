"""Parquet files of an archive, read with bounded memory and in bounded time.

A few hundred bytes of Parquet can stand for hundreds of gigabytes of values: a dictionary repeats
one value, a page compresses a run, a list repeats an element; the footer need not say so. One call
of Arrow may take a gigabyte, or 64 times the size of the file, beyond which the kernel refuses it
more. All values of a file may take a gigabyte, or 1,000 times its size: those of an archive take
about 15 times theirs.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

_ALLOWANCE: Final = 1 << 30  # bytes
_AT_ONCE: Final = 64  # bytes of memory for a byte of a file
_IN_ALL: Final = 1_000
_ARENA: Final = 1 << 30  # bytes that Arrow's allocator may reserve ahead; the kernel counts them
OWN_LIMIT: Final = resource.getrlimit(resource.RLIMIT_DATA)
_STACKS: Final = 64 << 20  # bytes of Arrow's threads
_STATM: Final = Path("/proc/self/statm")  # Linux; elsewhere only batches are bounded
_TOO_LARGE: Final = "its values take too much memory for a file of this size"
_PLACE: Final = re.compile(rb"(\d{1,15}) (\d{1,10})")  # the first byte and the size of a table
_RESIDENT, _DATA = 1, 5  # its fields: pages in memory, and pages that may be written


class ParquetReader:
    """An open Parquet file; every method raises ArrowException as `open_parquet` does.

    Mutable: counts the bytes of its batches; owned by one thread.
    """

    def __init__(self, source: pa.NativeFile, *, pre_buffer: bool) -> None:
        size = source.size()
        self._source = source
        self._memory, self._left = (max(_ALLOWANCE, each * size) for each in (_AT_ONCE, _IN_ALL))
        with _bounded(min(self._memory, self._left)):
            self.file = pq.ParquetFile(
                source, page_checksum_verification=True, pre_buffer=pre_buffer
            )
        self.schema: pa.Schema = self.file.schema_arrow
        self.metadata: pq.FileMetaData = self.file.metadata

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        with _bounded(min(self._memory, self._left)):
            return self._counted(self.file.read(columns and list(columns)))

    def beside(self, key: bytes, columns: Sequence[str] | None = None) -> pa.Table | None:
        """Return the table that the file holds beside its rows; None when it has none."""
        place = (self.metadata.metadata or {}).get(key)
        if place is None:
            return None
        match = _PLACE.fullmatch(place)
        begin, size = map(int, match.groups()) if match else (0, 0)
        if not size or begin + size > self._source.size():
            raise pa.ArrowInvalid(f"it has no table at the place of {key.decode()}")
        with open_parquet(pa.BufferReader(self._source.read_at(size, begin))) as file:
            return file.read(columns)

    def row_group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        with _bounded(min(self._memory, self._left)):
            return self._counted(self.file.read_row_group(number, columns and list(columns)))

    def batches(
        self, rows: int, columns: Sequence[str] | None = None, wanted: pc.Expression | None = None
    ) -> Iterator[pa.Table]:
        """Yield the rows that `wanted` selects, by its columns among `columns`, `rows` at most."""
        groups = list(range(self.metadata.num_row_groups))
        if wanted is not None:  # the statistics exclude row groups
            fragment = ds.ParquetFileFormat().make_fragment(self._source)
            groups = [each.id for each in fragment.subset(filter=wanted).row_groups]
        batches = self.file.iter_batches(rows, groups, columns and list(columns))
        while True:
            with _bounded(min(self._memory, self._left)):
                batch = next(batches, None)
            if batch is None:
                return
            table = self._counted(pa.Table.from_batches([batch]))
            yield table if wanted is None else table.filter(wanted)

    def _counted(self, table: pa.Table) -> pa.Table:
        self._left -= table.nbytes
        if self._left < 0:
            raise pa.ArrowMemoryError(_TOO_LARGE)
        return table


def is_dense(table: pa.Table, size: int) -> bool:
    """Return whether the rows of a file of `size` bytes take half of what they may.

    Such rows stay in files of their own, so that also a merged file takes less than it may.
    """
    return bool(table.nbytes > _IN_ALL // 2 * size)


@contextmanager
def open_parquet(source: pa.NativeFile, *, pre_buffer: bool = False) -> Iterator[ParquetReader]:
    """Read the Parquet file `source`, and close it at the end.

    Raises:
        ArrowException: it is damaged, is not a Parquet file, or takes more memory than it may.
    """
    with source:
        reader = ParquetReader(source, pre_buffer=pre_buffer)
        with reader.file:
            yield reader


@contextmanager
def _bounded(allowance: int) -> Iterator[None]:
    """Let the process take `allowance` bytes more; a refused allocation raises ArrowException."""
    try:
        pages = [*map(int, _STATM.read_text("ascii").split())]
    except OSError:
        yield
        return
    page, (own, most) = resource.getpagesize(), OWN_LIMIT
    limit = max(pages[_DATA] * page, pages[_RESIDENT] * page + _ARENA) + allowance + _STACKS
    limit = limit if own == resource.RLIM_INFINITY else min(limit, own)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    try:
        yield
    except pa.ArrowMemoryError as error:
        pa.default_memory_pool().release_unused()
        raise pa.ArrowMemoryError(_TOO_LARGE) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, OWN_LIMIT)
