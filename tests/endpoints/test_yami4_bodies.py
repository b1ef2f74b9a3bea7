from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.endpoints.yami4.bodies import UNDECODED, BodyReader, BodyWriter, find_address_fault
from gateway.errors import TranslationError
from gateway.model.copy_proof import PROOF_SIZE
from gateway.model.message import NO_HEADERS, DeliveryMode, Headers, Payload, Value
from gateway.wire.yami4.parameters import (
    EMPTY,
    WORD,
    TypeCode,
    decode_parameters,
    encode_blob,
    encode_parameters,
    entry_head,
)
from tests.copy_proofs import OTHER_PROOF, PROOF, PROOFS

FULL = Headers(
    mode=DeliveryMode.EXACTLY_ONCE,
    retained=True,
    redelivered=True,
    priority=9,
    expiry=1_800_000_000_000_000,
    time=5,
    content_type="text/plain",
    correlation_id=b"\0\1",
    reply_to="a.b,c",
    source_id="ID:1",
    origin=("gw1", "gw2"),
    properties={"a": 1, "b": {"c": [True, False]}, "d": b"x"},
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
NAMES = st.one_of(TEXT, st.sampled_from(["payload", "_gateway", "version"]))
SCALARS: st.SearchStrategy[Value] = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT, st.binary()
)
MAPS = st.dictionaries(
    NAMES, st.one_of(SCALARS, st.dictionaries(NAMES, SCALARS, max_size=3)), max_size=4
)
PAYLOADS: st.SearchStrategy[Payload] = st.one_of(st.binary(), TEXT, MAPS)
HEADERS = st.one_of(
    st.just(NO_HEADERS),
    st.just(FULL),
    st.builds(
        Headers,
        priority=st.none() | st.integers(0, 9),
        correlation_id=st.none() | TEXT | st.binary(),
        reply_to=st.none() | TEXT,
        origin=st.lists(TEXT, max_size=3).map(tuple),
        properties=st.dictionaries(TEXT, SCALARS, max_size=3),
    ),
)


@given(st.lists(st.tuples(PAYLOADS, HEADERS, PROOFS), max_size=6))
def test_a_written_body_is_read_as_it_was(rows: list[tuple[Payload, Headers, str]]) -> None:
    writer, reader = BodyWriter(), BodyReader()
    for payload, headers, proof in rows:
        body = writer.write(payload, headers, proof)
        assert len(body) % 4 == 0
        assert reader.read(body) == (payload, headers, proof)
        assert BodyReader().read(body + bytes(4)) == (payload, headers, proof)  # trailing bytes


def test_bodies_with_other_proofs_share_their_headers() -> None:
    writer, reader = BodyWriter(), BodyReader()

    (_, one, first), (_, two, second) = (
        reader.read(writer.write(b"x", FULL, proof)) for proof in (PROOF, OTHER_PROOF)
    )

    assert one is two
    assert (first, second) == (PROOF, OTHER_PROOF)


HIDDEN = (entry_head("proof", TypeCode.STRING) + encode_blob(PROOF.encode())).decode()
FIELDS = st.dictionaries(  # of `_gateway`, by others: a name may be a proof's, or a value hold one
    st.sampled_from(["version", "proof", "properties", "mode"]),
    st.one_of(
        st.just(1),
        PROOFS,
        TEXT,
        st.sampled_from([HIDDEN, HIDDEN.replace(PROOF, OTHER_PROOF)]),
        st.dictionaries(st.sampled_from(["proof", "a"]), PROOFS | st.just(HIDDEN)),
    ),
    max_size=4,
)


def tail_of(fields: Mapping[str, Value]) -> bytes:
    return encode_parameters({"_gateway": {"version": 1, **fields}})[4:]


def hidden_beside(hidden: str, proof: str) -> bytes:
    """Return headers with a proof whose name is padded as no gateway does, and one in a value."""
    fields = tail_of({"properties": {"a": HIDDEN.replace(PROOF, hidden)}, "proof": proof})
    before, name, after = fields.rpartition(b"proof\0\0\0")
    return before + name.replace(b"\0", b"x") + after


def hidden_alone(hidden: str) -> bytes:
    return tail_of({"properties": {"a": HIDDEN.replace(PROOF, hidden)}})


JUNK = b"!" * PROOF_SIZE  # behind the parameters
WITH_PROOF = tail_of({"proof": PROOF})


@example([hidden_alone(hidden) for hidden in (PROOF, OTHER_PROOF)])
@example([hidden_beside(hidden, PROOF) for hidden in (PROOF, OTHER_PROOF)])
@example(
    [
        tail_of({"proof": PROOF}) + JUNK,
        tail_of({"proof": PROOF}).replace(PROOF.encode(), b"") + JUNK,
    ]
)
@given(tails=st.lists(FIELDS.map(tail_of), min_size=1, max_size=4))
def test_headers_are_read_alike_with_and_without_kept_ones(tails: list[bytes]) -> None:
    reader = BodyReader()
    start = BodyWriter().write(b"x", NO_HEADERS)[4:]
    for tail in (*tails, *tails):
        body = WORD.pack(2) + start + tail
        assert reader.read(body) == BodyReader().read(body)


@pytest.mark.parametrize("value", [5, "!", b"a", "a" * 129, [PROOF], {"a": PROOF}])
def test_what_is_no_proof_changes_nothing_else(value: Value) -> None:
    body = (
        WORD.pack(2)
        + BodyWriter().write(b"x", NO_HEADERS)[4:]
        + tail_of({"priority": 3, "proof": value})
    )

    assert BodyReader().read(body) == (b"x", Headers(priority=3), "")


@given(MAPS)
def test_a_foreign_body_is_written_as_it_was_read(values: dict[str, Value]) -> None:
    body = encode_parameters(values)
    payload, headers, proof = BodyReader().read(body)

    if "_gateway" not in values:
        assert BodyWriter().write(payload, headers, proof) == body
    assert BodyReader().read(BodyWriter().write(payload, headers, proof)) == (
        payload,
        headers,
        proof,
    )


@given(st.binary(max_size=200))
def test_any_body_is_read(body: bytes) -> None:
    payload, headers, _ = BodyReader().read(body)

    assert payload == body or headers.properties.get(UNDECODED) is None


@given(PAYLOADS, HEADERS, st.data())
def test_a_damaged_body_is_read(payload: Payload, headers: Headers, data: st.DataObject) -> None:
    body = bytearray(BodyWriter().write(payload, headers))
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    reader = BodyReader()

    assert reader.read(bytes(body)) == reader.read(bytes(body))


FOREIGN = [
    pytest.param({}, {}, id="empty"),
    pytest.param({"payload": b"x"}, b"x", id="bytes"),
    pytest.param({"payload": "x"}, "x", id="text"),
    pytest.param({"payload": 5}, {"payload": 5}, id="payload-of-another-type"),
    pytest.param({"payload": {"a": 1}}, {"payload": {"a": 1}}, id="payload-nested"),
    pytest.param({"payload": b"x", "a": 1}, {"payload": b"x", "a": 1}, id="payload-and-more"),
    pytest.param({"_gateway": 1}, {"_gateway": 1}, id="reserved-name-of-another-type"),
    pytest.param({"_gateway": {"version": 2}}, {"_gateway": {"version": 2}}, id="later-version"),
    pytest.param(
        {"_gateway": {"version": 1, "mode": "x"}},
        {"_gateway": {"version": 1, "mode": "x"}},
        id="wrong-type-inside",
    ),
]


@pytest.mark.parametrize(("values", "payload"), FOREIGN)
def test_foreign_bodies(values: dict[str, Value], payload: Payload) -> None:
    assert BodyReader().read(encode_parameters(values)) == (payload, NO_HEADERS, "")


def test_a_body_that_cannot_be_decoded_is_a_marked_payload() -> None:
    payload, headers, _ = BodyReader().read(b"\xff" * 8)

    assert (payload, headers.properties) == (b"\xff" * 8, {UNDECODED: True})


def test_a_body_with_text_that_is_not_utf_8_is_a_marked_payload() -> None:
    body = WORD.pack(1) + entry_head("payload", TypeCode.STRING) + encode_blob(b"\xff")

    assert BodyReader().read(body) == (body, Headers(properties={UNDECODED: True}), "")


def test_the_parameters_of_a_written_body() -> None:
    writer = BodyWriter()

    assert writer.write({}, NO_HEADERS) == EMPTY
    assert decode_parameters(writer.write(b"x", NO_HEADERS)) == {"payload": b"x"}
    assert decode_parameters(writer.write({"a": 1}, Headers(priority=4))) == {
        "a": 1,
        "_gateway": {"version": 1, "priority": 4},
    }
    assert decode_parameters(writer.write(b"x", NO_HEADERS, PROOF)) == {
        "payload": b"x",
        "_gateway": {"version": 1, "proof": PROOF},
    }
    assert decode_parameters(writer.write({"payload": "x"}, NO_HEADERS)) == {
        "payload": {"payload": "x"},
        "_gateway": {"version": 1},
    }


@pytest.mark.parametrize(
    ("payload", "headers", "rule"),
    [
        pytest.param({"a": None}, NO_HEADERS, "null-value", id="none"),
        pytest.param(b"", Headers(properties={"a": None}), "null-value", id="none-in-properties"),
        pytest.param({"a": [1, "x"]}, NO_HEADERS, "mixed-list", id="mixed-list"),
        pytest.param("\ud800", NO_HEADERS, "not-utf-8", id="text"),
        pytest.param(b"", Headers(time=2**63), "integer-range", id="time"),
    ],
)
def test_a_value_without_a_type_is_refused(payload: Payload, headers: Headers, rule: str) -> None:
    with pytest.raises(TranslationError) as caught:
        BodyWriter().write(payload, headers)

    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("address", "rule"),
    [("a.b,c", ""), ("", ""), ("é", ""), ("a\0", "nul"), ("\ud800", "not-utf-8")],
)
def test_illegal_addresses_are_named(address: str, rule: str) -> None:
    assert find_address_fault(address) == rule
