from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import TranslationError, WireError
from gateway.model.message import Value
from gateway.wire.yami4.parameters import MAX_DEPTH, Long, decode_parameters, encode_parameters

# Section 2 of the facts: bytes written by the reference library.
HEX = [
    pytest.param("b", True, "01000000 01000000 62000000 01000000 01000000", id="boolean"),
    pytest.param("i", -2, "01000000 01000000 69000000 02000000 feffffff", id="integer"),
    pytest.param(
        "L",
        Long(0x0102030405060708),
        "01000000 01000000 4c000000 03000000 08070605 04030201",
        id="long",
    ),
    pytest.param("d", 1.5, "01000000 01000000 64000000 04000000 00000000 0000f83f", id="double"),
    pytest.param(
        "s", "hello", "01000000 01000000 73000000 05000000 05000000 68656c6c 6f000000", id="string"
    ),
    pytest.param("s", "", "01000000 01000000 73000000 05000000 00000000", id="empty-string"),
    pytest.param(
        "bin",
        bytes([1, 2, 3, 4, 5]),
        "01000000 03000000 62696e00 06000000 05000000 01020304 05000000",
        id="binary",
    ),
    pytest.param(
        "ba",
        [i % 3 == 0 for i in range(31)],
        "01000000 02000000 62610000 07000000 1f000000 49922449",
        id="booleans",
    ),
    pytest.param(
        "n",
        [10, -20, 30],
        "01000000 01000000 6e000000 08000000 03000000 0a000000 ecffffff 1e000000",
        id="integers",
    ),
    pytest.param(
        "n",
        [Long(1), Long(-1)],
        "01000000 01000000 6e000000 09000000 02000000 01000000 00000000 ffffffff ffffffff",
        id="longs",
    ),
    pytest.param(
        "n",
        [3.125, -0.5],
        "01000000 01000000 6e000000 0a000000 02000000 00000000 00000940 00000000 0000e0bf",
        id="doubles",
    ),
    pytest.param(
        "n",
        ["Kazik", "abcd"],
        "01000000 01000000 6e000000 0b000000 02000000 05000000 4b617a69 6b000000 04000000 61626364",
        id="strings",
    ),
    pytest.param(
        "n",
        [b"abc", b"defghi"],
        "01000000 01000000 6e000000 0c000000 02000000 03000000 61626300 06000000 64656667 68690000",
        id="binaries",
    ),
    pytest.param(
        "nested",
        {"x": 7},
        "01000000 06000000 6e657374 65640000 0d000000 01000000 01000000 78000000 02000000 07000000",
        id="nested",
    ),
    pytest.param(
        "na",
        [{"x": 7}, {"y": "z"}],
        "01000000 02000000 6e610000 0e000000 02000000"
        " 01000000 01000000 78000000 02000000 07000000"
        " 01000000 01000000 79000000 05000000 01000000 7a000000",
        id="nested-array",
    ),
]


@pytest.mark.parametrize(("name", "value", "text"), HEX)
def test_values_have_the_bytes_of_the_reference_library(name: str, value: Value, text: str) -> None:
    data = bytes.fromhex(text)

    assert encode_parameters({name: value}) == data
    assert decode_parameters(data) == {name: value}
    assert type(decode_parameters(data)[name]) is type(value)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INT32 = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1).map(Long)
SCALARS: list[st.SearchStrategy[Value]] = [
    st.booleans(),
    INT32,
    LONG,
    st.floats(allow_nan=False),
    TEXT,
    st.binary(max_size=12),
]
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(*SCALARS, *(cast("st.SearchStrategy[Value]", st.lists(s)) for s in SCALARS)),
    lambda inner: st.one_of(
        st.dictionaries(TEXT, inner, max_size=3),
        st.lists(st.dictionaries(TEXT, inner, max_size=3), max_size=3),
    ),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.binary(max_size=8))
def test_encode_then_decode_is_identity(values: dict[str, Value], trailing: bytes) -> None:
    data = encode_parameters(values)

    assert len(data) % 4 == 0
    got = decode_parameters(data + trailing)
    assert got == values
    assert list(got) == list(values)
    assert encode_parameters(got) == data


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.data())
def test_a_truncated_object_is_a_wire_error(values: dict[str, Value], data: st.DataObject) -> None:
    whole = encode_parameters(values)
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(WireError, match="yami4: parameters at byte"):
        decode_parameters(whole[:cut])


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 65])
def test_booleans_take_one_word_for_each_32(count: int) -> None:
    values: list[Value] = [n % 2 == 0 for n in range(count)]

    data = encode_parameters({"b": values or [True]})

    assert decode_parameters(data) == {"b": values or [True]}
    assert len(data) == 20 + -(-(count or 1) // 32) * 4


def entry(code: int, value: bytes) -> bytes:
    return struct.pack("<ii4si", 1, 1, b"n", code) + value


COUNTS = [
    pytest.param(struct.pack("<i", 0x0FFFFFFF), id="entries"),
    pytest.param(struct.pack("<i", -1), id="negative-entries"),
    *(
        pytest.param(entry(code, struct.pack("<i", number)), id=f"type-{code}-{number}")
        for code in (5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
        for number in (0x0FFFFFFF, -1, -(2**31))
    ),
    *(pytest.param(entry(code, bytes(8)), id=f"unknown-{code}") for code in (0, 15, -1)),
    pytest.param(entry(5, struct.pack("<i4s", 2, b"\xff\xff")), id="not-utf-8"),
]


@pytest.mark.parametrize("data", COUNTS)
def test_an_impossible_count_is_refused_before_anything_is_allocated(data: bytes) -> None:
    with pytest.raises(WireError, match="yami4: parameters at byte"):
        decode_parameters(data)


def test_deviations_that_peers_tolerate() -> None:
    # Section 2: trailing bytes, padding that is not zero, empty names, repeated names.
    data = bytes.fromhex(
        "03000000 01000000 61ffffff 02000000 01000000"
        " 00000000 01000000 05000000"
        " 01000000 61000000 05000000 01000000 7a000000 ffffffff"
    )

    assert decode_parameters(data) == {"a": "z", "": True}
    assert list(decode_parameters(data)) == ["a", ""]


def nest(depth: int) -> dict[str, Value]:
    value: dict[str, Value] = {}
    for _ in range(depth - 1):
        value = {"n": value}
    return value


def test_depth_is_limited_in_both_directions() -> None:
    data = encode_parameters(nest(MAX_DEPTH))
    assert decode_parameters(data) == nest(MAX_DEPTH)

    with pytest.raises(TranslationError, match="nested deeper than 64"):
        encode_parameters(nest(MAX_DEPTH + 1))
    with pytest.raises(WireError, match="nested too deep"):
        decode_parameters(data, depth=MAX_DEPTH - 1)
    deep = struct.pack("<ii4si", 1, 1, b"n", 13) * 200_000 + bytes(4)
    with pytest.raises(WireError, match="nested too deep"):
        decode_parameters(deep)


def test_the_number_of_values_is_limited() -> None:
    data = encode_parameters({"b": [True] * 1000})

    with pytest.raises(WireError, match="too many values"):
        decode_parameters(data, values=1000)


UNENCODABLE = [
    pytest.param({"n": None}, "null-value", "no type for NoneType", id="none"),
    pytest.param({"n": 2**63}, "integer-range", "outside 64 bits", id="too-big"),
    pytest.param({"n": [1, 2.5]}, "mixed-list", "holds double, integer", id="mixed"),
    pytest.param({"n": [None]}, "null-value", "no type for NoneType", id="none-in-list"),
    pytest.param({"n": [[1]]}, "nested-list", "holds no lists", id="list-in-list"),
    pytest.param({"n": "\ud800"}, "not-utf-8", "no valid Unicode", id="surrogate"),
    pytest.param({"\ud800": 1}, "not-utf-8", "no valid Unicode", id="surrogate-name"),
    pytest.param({1: 1}, "field-name", "must be text", id="name"),
    pytest.param({"n": {1, 2}}, "value-type", "no type for set", id="set"),
]


@pytest.mark.parametrize(("values", "rule", "reason"), UNENCODABLE)
def test_a_value_without_a_type_is_refused(values: object, rule: str, reason: str) -> None:
    with pytest.raises(TranslationError, match=reason) as caught:
        encode_parameters(cast("Mapping[str, Value]", values))

    assert caught.value.rule == rule


def test_a_small_long_stays_long_and_a_large_integer_becomes_one() -> None:
    got = decode_parameters(encode_parameters({"a": Long(5), "b": 2**40, "c": [1, 2**40]}))

    assert got == {"a": 5, "b": 2**40, "c": [1, 2**40]}
    assert isinstance(got["a"], Long)
    assert isinstance(got["b"], Long)
