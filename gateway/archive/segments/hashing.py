"""The 128-bit hash of ids and contents that digests sum up, vectorized over many rows.

A row's hash is four lanes of 32 bits: sums in int64 hold two thousand million rows, and add up in
any order and in any tool. The hash is two chains of 64-bit finalisers (splitmix64 and MurmurHash3,
each with an own constant) over the words of an id and of a payload's hash. Each chain is a
bijection of the last word, so two ids of one run never have the same hash.

Two different sets of n random rows have the same sums with a probability of about 2**-128; a
missing and a surplus row cancel out with the same probability. The hash is not cryptographic: a
writer of archive files can construct two sets with equal sums. It detects faults, not forgery.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words: TypeAlias = npt.NDArray[np.uint64]
Lanes: TypeAlias = npt.NDArray[np.int64]

SIZE: Final = 16  # bytes of an id, and of a payload's hash
_MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_SPLITMIX: Final = (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)
_MURMUR: Final = (33, 0xFF51AFD7ED558CCD, 33, 0xC4CEB9FE1A85EC53, 33)
_LEFT: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio
_RIGHT: Final = np.uint64(0xD1B54A32D192ED03)  # the same of its two-dimensional generalization


def words(column: pa.ChunkedArray) -> tuple[Words, Words]:
    """Return the first and last 8 bytes of each value as big-endian numbers; a null is zero.

    A value of another length is cut, or padded with zeros at its end.
    """
    whole = pc.fill_null(column, bytes(SIZE))
    if pc.all(pc.equal(pc.binary_length(whole), SIZE)).as_py() is False:
        values = whole.to_pylist()
        data: Any = b"".join(value[:SIZE].ljust(SIZE, b"\0") for value in values)
    else:
        chunks = whole.cast(pa.binary(SIZE)).chunks
        data = b"".join(_bytes(chunk) for chunk in chunks)
    both = np.frombuffer(data, ">u8").astype(np.uint64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _bytes(chunk: pa.FixedSizeBinaryArray) -> memoryview:
    buffer = chunk.buffers()[1]
    start = chunk.offset * SIZE
    return memoryview(buffer)[start : start + len(chunk) * SIZE] if buffer else memoryview(b"")


def hash_ids(first: Words, last: Words) -> tuple[Words, Words]:
    """Return both halves of the hash of ids."""
    left = _mix(_mix(first + _LEFT, _SPLITMIX) ^ last, _SPLITMIX)
    right = _mix(_mix(last + _RIGHT, _MURMUR) ^ first, _MURMUR)
    return left, right


def hash_contents(ids: tuple[Words, Words], first: Words, last: Words) -> tuple[Words, Words]:
    """Return both halves of the hash of hashed ids combined with payload hashes."""
    left = _mix(_mix(ids[0] + first, _SPLITMIX) ^ last, _SPLITMIX)
    right = _mix(_mix(ids[1] + last, _MURMUR) ^ first, _MURMUR)
    return left, right


def lanes(halves: tuple[Words, Words]) -> list[Lanes]:
    """Return the four 32-bit words of each hash, ready to be summed."""
    return [part.astype(np.int64) for half in halves for part in (half >> _HALF, half & _MASK)]


def _mix(values: Words, constants: tuple[int, int, int, int, int]) -> Words:
    first, by, second, times, third = map(np.uint64, constants)
    mixed = (values ^ (values >> first)) * by
    mixed = (mixed ^ (mixed >> second)) * times
    return mixed ^ (mixed >> third)
