"""The id sets that a segment holds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from gateway.night.archive.parquet import SETS_KEY
from gateway.night.archive.segments.reading import open_parquet


def sets_of(path: Path) -> pa.Table:
    """Return the stored id sets of the segment at `path`."""
    with open_parquet(pa.OSFile(str(path))) as file:
        found = file.beside(SETS_KEY)
    assert found is not None
    return found
