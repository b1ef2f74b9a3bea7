"""Typed values survive packing for Java; malformed bytes raise WireError and nothing else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.endpoints.jms.value_codec import (
    JavaByte,
    JavaChar,
    JavaFloat,
    JavaLong,
    JavaShort,
    UnsendableError,
    ValueReader,
    write_value,
)
from gateway.errors import WireError
from gateway.model.message import Value

TEXTS = st.text(
    st.characters(exclude_categories=())
)  # lone surrogates too: Java's text may contain them
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(),
)
VALUES: st.SearchStrategy[Value] = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS.filter(bool), inner),
    max_leaves=10,
)


@given(VALUES)
def test_a_packed_value_is_read_back(value: Value) -> None:
    assert ValueReader(write_value(value)).read_value() == value


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        (JavaByte(-1), 3),
        (JavaShort(-300), 4),
        (7, 5),
        (JavaLong(7), 6),
        (2**31, 6),
        (JavaFloat(1.5), 7),
        (1.5, 8),
        (JavaChar("é"), 9),
    ],
)
def test_a_type_of_java_is_restored(value: Value, tag: int) -> None:
    data = write_value(value)
    restored = ValueReader(data).read_value()

    assert data[0] == tag
    assert restored == value
    assert write_value(restored) == data


def test_nan_is_restored_as_nan() -> None:
    restored = ValueReader(write_value(math.nan)).read_value()

    assert isinstance(restored, float)
    assert math.isnan(restored)


def test_a_value_without_a_java_type_is_refused() -> None:
    deep: Value = 1
    for _ in range(70):
        deep = [deep]
    for value, rule in ((2**63, "integer-size"), (deep, "nesting"), ({"": 1}, "map-name")):
        with pytest.raises(UnsendableError) as caught:
            write_value(value)
        assert caught.value.rule == rule


@given(st.binary(max_size=64))
def test_arbitrary_bytes_raise_only_wire_errors(data: bytes) -> None:
    try:
        ValueReader(data).read_value()
    except WireError as error:
        assert "jms" in str(error)  # noqa: PT017  # most inputs do not raise


def test_a_count_past_the_end_is_an_error() -> None:
    with pytest.raises(WireError, match="past the end"):
        ValueReader(b"\x0b\x7f\xff\xff\xff").read_value()
