"""Parquet files with the encodings, pages and checksums of the archive.

A segment also holds its id sets and name pairs: each is a Parquet file of its own between the last
row group and the footer, whose metadata has its first byte and its size. Readers of the rows follow
the offsets of the footer, and never meet them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from gateway.archive.schema import COLUMNS
from gateway.untyped import Untyped

SETS_KEY: Final = b"gateway.sets"  # in the metadata of a segment: where its id sets lie
PAIRS_KEY: Final = b"gateway.pairs"  # the name pairs, which are not kept when they are too many
_PAGE_ROWS: Final = 10_000
ROW_GROUP_ROWS: Final = 250_000  # small enough that readers skip groups by their statistics
_ENCODINGS: Final = {  # unique or ascending values, which a dictionary would not shrink
    "id": "DELTA_BYTE_ARRAY",
    "origin_id": "DELTA_BYTE_ARRAY",
    "identity": "DELTA_BYTE_ARRAY",
    "trace": "DELTA_BYTE_ARRAY",
    "time": "DELTA_BINARY_PACKED",
    "received": "DELTA_BINARY_PACKED",
    "source_time": "DELTA_BINARY_PACKED",
    "begin": "DELTA_BINARY_PACKED",
    "payload": "PLAIN",
    "reason": "DELTA_BYTE_ARRAY",
    **{
        f"{name}.list.element": "DELTA_BINARY_PACKED"
        for name in ("settled_first", "settled_last", "open_first", "open_last")
    },
}
_DICTIONARY_PATHS: Final = [
    name if kind != "list" else f"{name}.list.element"
    for name, kind in COLUMNS.items()
    if name not in _ENCODINGS and kind not in ("map", "boolean")
]


def encoded(table: pa.Table) -> pa.Buffer:
    """Return a table as a file with the archive's encodings."""
    file = pa.BufferOutputStream()
    pq.write_table(table, file, row_group_size=ROW_GROUP_ROWS, **_options(table.column_names))
    return file.getvalue()


def row_group_writer(schema: pa.Schema, file: Untyped) -> pq.ParquetWriter:
    """Return a writer of row groups with the archive's encodings; the caller closes it."""
    return pq.ParquetWriter(file, schema, **_options(schema.names))


def append_tables(
    writer: pq.ParquetWriter, content: pa.BufferOutputStream, tables: Mapping[bytes, pa.Table]
) -> None:
    """Add `tables` to the segment that `writer` writes to `content`, after its last row group."""
    for key, table in tables.items():
        part = encoded(table)
        writer.add_key_value_metadata({key: f"{content.tell()} {part.size}"})
        content.write(part)


def _options(columns: Sequence[str]) -> dict[str, Any]:
    names = set(columns)
    return {
        "compression": "zstd",
        "use_dictionary": [path for path in _DICTIONARY_PATHS if path.partition(".")[0] in names],
        "column_encoding": {
            path: kind for path, kind in _ENCODINGS.items() if path.partition(".")[0] in names
        },
        "dictionary_pagesize_limit": 16 << 20,  # a hash is stored once for both legs
        "write_page_checksum": True,
        "write_page_index": True,  # a reader of one minute skips the other pages
        "max_rows_per_page": _PAGE_ROWS,
    }
