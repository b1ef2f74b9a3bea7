"""Proofs of copies, as tests send them."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from gateway.model.proof_text import MAX_PROOF, USUAL_PROOF

PROOF: Final = f"{'a1' * 16}.{'b2' * 16}.01.{'c3' * 16}"
OTHER_PROOF: Final = PROOF.replace("a", "d")
_DIGITS: Final = "0123456789abcdef."
USUAL_PROOFS: Final = st.sampled_from([PROOF, OTHER_PROOF]) | st.text(
    _DIGITS, min_size=USUAL_PROOF, max_size=USUAL_PROOF
)
PROOFS: Final = st.just("") | st.text(_DIGITS, max_size=MAX_PROOF) | USUAL_PROOFS
