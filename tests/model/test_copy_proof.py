"""The proof of a copy: its text, its digest and its signature."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.copy_proof import (
    HOPS,
    PROOF_SIZES,
    CopyProof,
    content_digest,
    parse_proof,
    render_proof,
    signature,
)

HASH = bytes(range(16))
FIRST, LAST, DIGEST = "a" * 32, "b" * 32, "c" * 32
TEXT = f"{FIRST}.{LAST}.07.{DIGEST}"

NO_PROOF = [
    pytest.param("", id="empty"),
    pytest.param(TEXT[:-1], id="cut"),
    pytest.param(TEXT + "0", id="longer"),
    pytest.param(TEXT.upper(), id="capitals"),
    pytest.param(TEXT.replace(".", ","), id="separator"),
    pytest.param(TEXT + "\n", id="line-end"),
    pytest.param("٣" * 32 + TEXT[32:], id="digits-of-another-script"),
]


def test_a_proof_is_read_as_it_was_written() -> None:
    assert render_proof((FIRST, LAST, HOPS[7], DIGEST)) == TEXT
    assert parse_proof(TEXT) == CopyProof(FIRST, LAST, 7, DIGEST)


def test_a_signature_stands_behind_the_digest() -> None:
    signed = f"{TEXT}.{'d' * 26}"

    assert parse_proof(signed) == CopyProof(FIRST, LAST, 7, DIGEST, "d" * 26)
    assert (len(TEXT), len(signed)) == PROOF_SIZES


@pytest.mark.parametrize("text", NO_PROOF)
def test_any_other_text_is_no_proof(text: str) -> None:
    assert parse_proof(text) is None


@given(st.text())
def test_no_text_makes_the_parser_raise(text: str) -> None:
    assert parse_proof(text) is None


@pytest.mark.parametrize("hops", range(257))
def test_the_count_of_hops_never_starts_again(hops: int) -> None:
    found = parse_proof(render_proof((FIRST, LAST, HOPS[hops], DIGEST)))

    assert found is not None
    assert found.hops == min(hops, 255)


@given(st.binary(), st.binary(), st.binary(min_size=16, max_size=16))
def test_the_digest_tells_names_apart(one: bytes, other: bytes, payload_hash: bytes) -> None:
    same = content_digest(one + payload_hash) == content_digest(other + payload_hash)

    assert same == (one == other)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"key": b"l"}, id="key"),
        pytest.param({"name": b"y"}, id="name"),
        pytest.param({"payload_hash": HASH[::-1]}, id="payload"),
        pytest.param({"proof": TEXT.replace("07", "08")}, id="hops"),
        pytest.param({"path": ("@1", "g/s")}, id="path"),
    ],
)
def test_a_signature_covers_every_fact(changed: dict[str, object]) -> None:
    facts: dict[str, object] = {
        "key": b"k",
        "name": b"x",
        "payload_hash": HASH,
        "proof": TEXT,
        "path": ("@1", "g/r"),
    }

    assert signature(**facts) != signature(**facts | changed)  # type: ignore[arg-type]  # as given above
