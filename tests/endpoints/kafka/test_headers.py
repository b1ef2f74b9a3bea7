"""Headers of Kafka: what a gateway writes comes back equal, and nothing that comes in raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import TranslationError
from gateway.model.message import CHOSEN_PARTITION, SOURCE_NAME, DeliveryMode, Headers, Value
from tests.copy_proofs import PROOF, PROOFS

headers = pytest.importorskip("gateway.endpoints.kafka.headers")
MODE = DeliveryMode.AT_LEAST_ONCE
READER, WRITER = headers.RecordHeaderReader(), headers.RecordHeaderWriter()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1)
TIMES = st.integers(-(10**18) + 1, 10**18 - 1)
SIMPLE: st.SearchStrategy[Value] = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=20)
)
VALUES = SIMPLE | st.lists(SIMPLE, max_size=3)
WRITTEN = st.builds(
    Headers,
    mode=st.just(MODE),
    retained=st.booleans(),
    priority=st.none() | st.integers(0, 9),
    expiry=st.none() | NUMBERS,
    time=st.none() | TIMES,
    content_type=st.none() | TEXTS,
    correlation_id=st.none() | TEXTS | st.binary(max_size=20),
    reply_to=st.none() | TEXTS,
    source_id=st.none() | TEXTS,
    origin=st.lists(TEXTS, max_size=3).map(tuple),
    properties=st.dictionaries(
        TEXTS | st.sampled_from([headers.FIELDS, headers.TIME, headers.PROOF, headers.MESSAGE_ID]),
        VALUES,
        max_size=5,
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*headers.FIELD_NAMES, "base64", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from([
    headers.FIELDS, headers.PROOF, SOURCE_NAME, headers.TIME, headers.MESSAGE_ID,
    headers.CONTENT_TYPE, "x",
])  # fmt: skip
RECEIVED = st.lists(
    st.tuples(
        NAMES | TEXTS,
        st.none() | st.binary(max_size=40) | JSON.map(lambda each: json.dumps(each).encode()),
    ),
    max_size=6,
)


@given(WRITTEN, PROOFS)
def test_headers_and_proof_come_back_equal(written: Headers, proof: str) -> None:
    found, size = WRITER.write(written, proof)

    assert READER.read(found, None)[:2] == (written, proof)
    assert size >= sum(len(name.encode()) + len(value or b"") for name, value in found)


@given(RECEIVED)
def test_headers_of_a_stranger_never_raise_and_have_their_types(
    received: list[tuple[str, bytes | None]],
) -> None:
    found = READER.read(received, 5).headers

    numbers = (found.priority, found.time, found.expiry)
    assert all(each is None or -(2**63) <= each < 2**63 for each in numbers)
    assert isinstance(found.source_id, str | None)
    assert all(isinstance(each, str) for each in found.origin)
    assert found.mode is MODE
    assert WRITER.write(found)  # it can be sent on


@pytest.mark.parametrize(
    ("received", "properties"),
    [
        pytest.param(
            [("a", b"1"), ("b", b"2"), ("a", b"3")], {"a": ["1", "3"], "b": "2"}, id="two"
        ),
        pytest.param([("a", None), ("b", b"")], {"a": None, "b": ""}, id="null-and-empty"),
        pytest.param([("a", b"\xff"), ("", b"x")], {"a": b"\xff", "": "x"}, id="no-utf-8"),
        pytest.param([(headers.TIME, b"soon")], {headers.TIME: "soon"}, id="no-time"),
        pytest.param([(headers.FIELDS, b"{")], {headers.FIELDS: "{"}, id="no-fields"),
        pytest.param(
            [("content-type", b"a"), ("content-type", b"b")],
            {"content-type": ["a", "b"]},
            id="two-content-types",
        ),
        pytest.param(
            [(headers.MESSAGE_ID, b"\xff")], {headers.MESSAGE_ID: b"\xff"}, id="no-message-id"
        ),
        pytest.param([(headers.PROOF, b"a" * 129)], {}, id="no-proof"),
        pytest.param([(headers.PROOF, PROOF.encode())] * 2, {}, id="two-proofs"),
        pytest.param(None, {}, id="none"),
    ],
)
def test_headers_of_others_are_properties_as_they_came(
    received: list[tuple[str, bytes | None]] | None, properties: dict[str, Any]
) -> None:
    read = READER.read(received, None)

    assert read == (Headers(MODE, properties=properties), "", "")


def test_a_time_is_that_of_the_producer() -> None:
    assert READER.read([], 7).headers.time == 7_000
    assert READER.read([(headers.TIME, b"7123")], 7).headers.time == 7_123
    assert READER.read([], None).headers.time is None


def test_the_property_with_the_name_at_the_source_is_a_header_that_claims_it() -> None:
    named = Headers(MODE, properties={SOURCE_NAME: "plant/ü"})
    found, _ = WRITER.write(named)

    assert found == [("gateway_name", "plant/ü".encode())]
    assert READER.read(found, None) == (named, "", "plant/ü")


@pytest.mark.parametrize("header", [[], [(SOURCE_NAME, b"a")], [(SOURCE_NAME, b"a")] * 2])
def test_only_its_header_claims_a_name(header: list[tuple[str, bytes]]) -> None:
    stranger = json.dumps({"properties": {SOURCE_NAME: "b", "x": 1}}).encode()

    found = READER.read([*header, (headers.FIELDS, stranger)], None)

    assert found.name == ("a" if len(header) == 1 else "")
    assert found.headers.properties.get(SOURCE_NAME) != "b"
    assert found.headers.properties["x"] == 1


def test_a_name_of_a_property_without_utf_8_is_refused() -> None:
    with pytest.raises(TranslationError, match="has no UTF-8"):
        WRITER.write(Headers(properties={"\ud800": "x"}))


def test_what_messages_share_is_written_once() -> None:
    shared = Headers(MODE, priority=4, properties={"a": "b"})

    assert WRITER.write(shared)[0] is WRITER.write(shared)[0]
    assert WRITER.write(shared, PROOF)[0][:-1] == WRITER.write(shared)[0]


def test_what_differs_from_message_to_message_stands_beside_what_they_share() -> None:
    """The fields that several messages share are written, and read, once."""
    first, second = (
        Headers(MODE, priority=4, origin=("a",), source_id=f"ID:{each}", time=each)
        for each in (1, 2)
    )
    ones, others = (WRITER.write(each)[0] for each in (first, second))

    assert ones[0] is others[0]
    assert ones[1:] == [(headers.MESSAGE_ID, b"ID:1"), (headers.TIME, b"1")]
    assert READER.read(others, None).headers == second


@pytest.mark.parametrize(
    "partition", [pytest.param({}, id="any"), pytest.param({CHOSEN_PARTITION: 3}, id="chosen")]
)
def test_copies_of_one_name_share_the_name_that_a_gateway_wrote(partition: dict[str, int]) -> None:
    first, second = (
        Headers(MODE, source_id=f"ID:{each}", origin=("a",), properties={SOURCE_NAME: name})
        for each, name in ((1, "x"), (2, "x"))
    )
    first = first.with_properties({**first.properties, **partition})
    other = second.with_properties({SOURCE_NAME: "y"})
    ones, twos, others = (WRITER.write(each)[0] for each in (first, second, other))

    assert ones[:2] == [(SOURCE_NAME, b"x"), (headers.FIELDS, b'{"origin":["a"]}')]
    assert [id(each) for each in ones[:2]] == [id(each) for each in twos[:2]]
    assert others[0] == (SOURCE_NAME, b"y")


@pytest.mark.parametrize(
    "name", [pytest.param(None, id="null"), pytest.param(["a", "b"], id="two")]
)
def test_another_value_in_the_place_of_that_name_comes_back(name: Value) -> None:
    written = Headers(MODE, properties={SOURCE_NAME: name})
    WRITER.write(Headers(MODE))

    assert READER.read(WRITER.write(written)[0], None).headers == written


def test_a_message_id_without_utf_8_comes_back() -> None:
    odd = Headers(MODE, source_id="\ud800")

    assert READER.read(WRITER.write(odd)[0], None).headers == odd


def test_a_name_that_the_library_would_cut_is_no_header() -> None:
    """It ends a name at a NUL."""
    found, _ = WRITER.write(Headers(MODE, properties={"a\0b": "x", "a": "y"}))

    assert [name for name, _ in found] == ["a", headers.FIELDS]
