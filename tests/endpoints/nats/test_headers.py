"""Headers of NATS: what a gateway writes comes back equal, and nothing that comes in raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.message import DeliveryMode, Headers, Value
from tests.copy_proofs import PROOF, PROOFS

headers = pytest.importorskip("gateway.endpoints.nats.headers")
MODE = DeliveryMode.AT_LEAST_ONCE
OWN = {"mode": MODE, "time": 1, "source_id": "nats T 1"}
READER, WRITER = headers.HeaderBlockReader(), headers.HeaderWriter()
FIELDS, PROOF_NAME = headers.FIELDS, headers.PROOF
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


@given(WRITTEN, PROOFS)
def test_headers_and_proof_come_back_equal(written: Headers, proof: str) -> None:
    assert READER.read(WRITER.write(written, proof), OWN) == (written, proof)


@pytest.mark.parametrize(
    ("found", "proof"),
    [
        pytest.param({PROOF_NAME: PROOF}, PROOF, id="alone"),
        pytest.param({PROOF_NAME: PROOF, FIELDS: "{"}, PROOF, id="beside-other-fields"),
        pytest.param({PROOF_NAME: PROOF.upper()}, "", id="capital-letters"),
        pytest.param({PROOF_NAME: "a" * 129}, "", id="too-long"),
        pytest.param({}, "", id="absent"),
        pytest.param(None, "", id="no-headers"),
    ],
)
def test_a_header_is_read_as_a_proof_or_none(found: dict[str, str] | None, proof: str) -> None:
    read, got = READER.read(found, OWN)

    assert got == proof
    assert PROOF_NAME not in read.properties


def test_a_property_with_the_name_of_the_proof_stands_in_the_fields() -> None:
    named = Headers(MODE, time=1, source_id="i", properties={PROOF_NAME: "x"})
    written = WRITER.write(named, PROOF)

    assert written[PROOF_NAME] == PROOF
    assert READER.read(written, OWN) == (named, PROOF)


@given(JSON.map(json.dumps) | TEXTS)
def test_fields_of_a_stranger_never_raise_and_have_their_types(text: str) -> None:
    found, _ = READER.read({FIELDS: text, "plain": "x"}, OWN)

    assert found.properties["plain"] == "x"
    numbers = (found.priority, found.time, found.expiry)
    assert all(each is None or -(2**63) <= each < 2**63 for each in numbers)
    assert isinstance(found.source_id, str | None)
    assert all(isinstance(each, str) for each in found.origin)
    assert found.mode is DeliveryMode.AT_LEAST_ONCE


def test_what_messages_share_is_read_and_written_once() -> None:
    shared = Headers(MODE, priority=4, origin=("@1:2", "one~3/r"))
    written = WRITER.write(shared, PROOF)
    read, _ = READER.read(written, OWN)

    again, got = READER.read(WRITER.write(shared), {**OWN, "source_id": "nats T 2"})

    assert (read.origin, read.priority, read.source_id) == (shared.origin, 4, "nats T 1")
    assert (again.origin, again.priority, again.source_id) == (shared.origin, 4, "nats T 2")
    assert got == ""
