"""Headers of NATS: what a gateway writes comes back equal, and nothing that comes in raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.message import DeliveryMode, Headers, Value

headers = pytest.importorskip("gateway.endpoints.nats.headers")
OWN = Headers(DeliveryMode.AT_LEAST_ONCE, time=1, source_id="nats T 1")
FIELDS = headers.FIELDS
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1)
VALUES: st.SearchStrategy[Value] = (
    st.booleans() | NUMBERS | st.floats(allow_nan=False) | TEXTS | st.binary(max_size=20)
)
WRITTEN = st.builds(
    Headers,
    mode=st.just(DeliveryMode.AT_LEAST_ONCE),
    retained=st.booleans(),
    priority=st.none() | st.integers(0, 9),
    expiry=st.none() | NUMBERS,
    time=NUMBERS,
    content_type=st.none() | TEXTS,
    correlation_id=st.none() | TEXTS | st.binary(max_size=20),
    reply_to=st.none() | TEXTS,
    source_id=TEXTS,
    origin=st.lists(TEXTS, max_size=3).map(tuple),
    properties=st.dictionaries(TEXTS, VALUES, max_size=5),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*headers.FIELD_NAMES, "base64", "x"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(WRITTEN)
def test_headers_come_back_equal(written: Headers) -> None:
    assert headers.read_headers(headers.write_headers(written), OWN) == written


@given(JSON.map(json.dumps) | TEXTS)
def test_fields_of_a_stranger_never_raise_and_have_their_types(text: str) -> None:
    found = headers.read_headers({FIELDS: text, "plain": "x"}, OWN)

    assert found.properties["plain"] == "x"
    numbers = (found.priority, found.time, found.expiry)
    assert all(each is None or -(2**63) <= each < 2**63 for each in numbers)
    assert isinstance(found.source_id, str | None)
    assert all(isinstance(each, str) for each in found.origin)
    assert found.mode is DeliveryMode.AT_LEAST_ONCE
