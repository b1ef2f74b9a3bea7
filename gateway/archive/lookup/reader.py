"""The rows of one day as dictionaries, read file by file with one batch in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.layout import segments
from gateway.errors import ArchiveError

Row: TypeAlias = dict[str, Any]  # the columns of schema.COLUMNS, with values as pyarrow reads them


def read_rows(root: Path, day: date) -> Iterator[Row]:
    """Yield the rows of `day`, file by file.

    Raises:
        ArchiveError: a file is damaged or no segment; the text names it.
    """
    for path in segments(root, day):
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                for batch in file.iter_batches():
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise ArchiveError(f"{path}: is damaged, or no segment: {error}") from error
