"""Rows of the archive for tests and tools, a batch in memory at a time; Spark reads on its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.layout import segments
from gateway.errors import ArchiveError

Row: TypeAlias = dict[str, Any]  # what pyarrow makes of a row; its columns are schema.COLUMNS


def read_rows(root: Path, day: date) -> Iterator[Row]:
    """The rows of `day`, file by file.

    Raises:
        ArchiveError: a file is no whole segment; the text names it.
    """
    for path in segments(root, day):
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches():
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(f"{path}: is not a whole segment: {error}") from error
