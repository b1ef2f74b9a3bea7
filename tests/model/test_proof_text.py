"""Texts of proofs: hexadecimal digits and dots, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.proof_text import MAX_PROOF, proof_of, read_proof
from tests.copy_proofs import PROOF


@pytest.mark.parametrize(
    ("value", "proof"),
    [
        pytest.param(PROOF, PROOF, id="a-proof"),
        pytest.param("", "", id="empty"),
        pytest.param("a" * MAX_PROOF, "a" * MAX_PROOF, id="longest"),
        pytest.param("a" * (MAX_PROOF + 1), "", id="too-long"),
        pytest.param(PROOF.upper(), "", id="capital-letters"),
        pytest.param(PROOF[:-1] + "g", "", id="another-letter"),
        pytest.param(PROOF + "\n", "", id="end-of-line"),
        pytest.param("\0", "", id="nul"),
        pytest.param("٣", "", id="digit-of-another-script"),
        pytest.param("\ud800", "", id="lone-surrogate"),
        pytest.param(PROOF.encode(), "", id="bytes"),
        pytest.param(5, "", id="number"),
        pytest.param(None, "", id="nothing"),
        pytest.param([PROOF], "", id="list"),
        pytest.param({PROOF: PROOF}, "", id="map"),
    ],
)
def test_a_property_is_read_as_a_proof_or_as_none(value: object, proof: str) -> None:
    assert read_proof(value) == proof


@given(raw=st.binary(max_size=2 * MAX_PROOF) | st.from_regex(rb"[0-9a-f.]*", fullmatch=True))
def test_bytes_are_a_proof_exactly_where_the_pattern_fits(raw: bytes) -> None:
    fits = re.fullmatch(rb"[0-9a-f.]{0,%d}" % MAX_PROOF, raw)

    assert proof_of(raw) == (raw.decode() if fits else "")
