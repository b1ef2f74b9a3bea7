"""Ids and hashes as pairs of 64-bit numbers, vectorized over many rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.night.archive.intervals import Flags, Numbers

SIZE: Final = 16  # bytes of an id, and of a payload's hash
_HEX_ID: Final = "^[0-9a-fA-F]{32}$"


def words(column: pa.ChunkedArray) -> tuple[Numbers, Numbers]:
    """Return the first and last 8 bytes of each value as signed big-endian numbers.

    A null is zero; a value of another length is cut, or padded with zeros at its end.
    """
    whole = pc.fill_null(column, bytes(SIZE))
    if pc.all(pc.equal(pc.binary_length(whole), SIZE)).as_py() is False:
        values = whole.to_pylist()
        data: Any = b"".join(value[:SIZE].ljust(SIZE, b"\0") for value in values)
    else:
        chunks = whole.cast(pa.binary(SIZE)).chunks
        data = b"".join(_bytes(chunk) for chunk in chunks)
    both = np.frombuffer(data, ">i8").astype(np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()  # contiguous, which sorts faster


def are_whole(column: pa.ChunkedArray) -> Flags:
    """Return whether each value has all 16 bytes."""
    found: Flags = pc.fill_null(pc.equal(pc.binary_length(column), SIZE), False).to_numpy()
    return found


def hex_ids(texts: pa.ChunkedArray) -> tuple[Flags, Numbers, Numbers]:
    """Return which texts are the 32 hexadecimal digits of an id, and the words of these ids."""
    found: Flags = pc.fill_null(pc.match_substring_regex(texts, _HEX_ID), False).to_numpy()
    ids = bytes.fromhex("".join(texts.filter(pa.array(found)).to_pylist()))
    both = np.frombuffer(ids, ">i8").astype(np.int64).reshape(-1, 2)
    return found, both[:, 0], both[:, 1]


def _bytes(chunk: pa.FixedSizeBinaryArray) -> memoryview:
    buffer = chunk.buffers()[1]
    start = chunk.offset * SIZE
    return memoryview(buffer)[start : start + len(chunk) * SIZE] if buffer else memoryview(b"")
