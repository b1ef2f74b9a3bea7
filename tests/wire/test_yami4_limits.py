"""Counts, lengths and nesting near the limits of parameters give values or a WireError."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import WireError
from gateway.wire.yami4.messages import HeaderReader
from gateway.wire.yami4.parameters import MAX_DEPTH, MAX_VALUES, TypeCode, decode_parameters

BUDGET = 5.0  # seconds; a decoder with quadratic time needs minutes
LIMIT = 4_096  # values
ELEMENT_BITS = {
    TypeCode.BOOLEANS: 1,
    TypeCode.INTEGERS: 32,
    TypeCode.LONGS: 64,
    TypeCode.DOUBLES: 64,
    TypeCode.STRINGS: 32,
    TypeCode.BINARIES: 32,
    TypeCode.OBJECTS: 32,
}
NUMBER_ARRAYS = {TypeCode.BOOLEANS, TypeCode.INTEGERS, TypeCode.LONGS, TypeCode.DOUBLES}
NUMBERS = st.one_of(
    st.sampled_from([0, 1, 2**31 - 1, -1, -(2**31), 2**28]), st.integers(-(2**31), 2**31 - 1)
)


def one_entry(code: int, value: bytes) -> bytes:
    return struct.pack("<ii4si", 1, 1, b"n", code) + value


def is_decoded(data: bytes, values: int = LIMIT) -> bool:
    """Return whether the data is decoded; WireError is the only error."""
    HeaderReader().read(data)
    try:
        return bool(repr(decode_parameters(data, values=values)))
    except WireError:
        return False


@given(st.sampled_from(sorted(ELEMENT_BITS)), st.integers(-2, 2))
def test_the_elements_of_every_array_are_counted(code: TypeCode, more: int) -> None:
    cost = 1 if code in NUMBER_ARRAYS else 4
    count = (LIMIT - 4) // cost + more  # the entry itself counts four
    data = one_entry(
        code, struct.pack("<i", count) + bytes(-(-count * ELEMENT_BITS[code] // 32) * 4)
    )

    assert is_decoded(data) is (more <= 0)


@given(st.integers(MAX_DEPTH - 2, MAX_DEPTH + 2))
def test_nesting_near_its_limit(depth: int) -> None:
    data = struct.pack("<ii4si", 1, 1, b"n", TypeCode.OBJECT) * (depth - 1) + bytes(4)

    assert is_decoded(data) is (depth <= MAX_DEPTH)


@given(st.integers(-1, 16), NUMBERS, st.binary(max_size=64))
@example(TypeCode.STRING, 2**31 - 1, b"")
def test_every_type_with_every_length(code: int, number: int, rest: bytes) -> None:
    is_decoded(one_entry(code, struct.pack("<i", number) + rest))


@pytest.mark.parametrize("code", sorted(ELEMENT_BITS))
def test_a_million_elements_are_decoded_or_refused_in_bounded_time(code: TypeCode) -> None:
    data = one_entry(code, struct.pack("<i", 1_000_001) + bytes(8_000_016))
    started = time.monotonic()

    assert not is_decoded(data, MAX_VALUES)
    assert time.monotonic() - started < BUDGET
