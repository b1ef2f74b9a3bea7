from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.night.archive.segments.id_columns import are_whole, hex_ids, words

VALUES = st.none() | st.binary(max_size=20) | st.binary(min_size=16, max_size=16)


@given(st.lists(VALUES, max_size=5), st.integers(0, 3))
def test_a_value_is_two_signed_numbers(values: list[bytes | None], cut: int) -> None:
    column = pa.chunked_array([values[:cut], values[cut:]], pa.binary())
    padded = [(value or b"")[:16].ljust(16, b"\0") for value in values]

    first, last = words(column)
    assert first.tolist() == [int.from_bytes(each[:8], "big", signed=True) for each in padded]
    assert last.tolist() == [int.from_bytes(each[8:], "big", signed=True) for each in padded]
    assert are_whole(column).tolist() == [
        value is not None and len(value) == 16 for value in values
    ]


def test_a_slice_of_a_column_has_its_own_values() -> None:
    column = pa.chunked_array([pa.array([bytes([n]) * 16 for n in range(5)])])

    assert words(column.slice(3))[0].tolist() == [0x0303030303030303, 0x0404040404040404]


@pytest.mark.parametrize(
    "text", [None, "", "AB" * 15, "ab" * 17, "zz" * 16, "AB" * 16 + "\n", "\u0131" * 32]
)
def test_other_texts_are_no_ids(text: str | None) -> None:
    texts = pa.chunked_array([pa.array([text, "fF" * 16, text], pa.string())])

    found, first, last = hex_ids(texts)
    assert found.tolist() == [False, True, False]
    assert first.tolist() == last.tolist() == [-1]
