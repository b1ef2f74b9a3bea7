"""Proofs of copies, as tests send them."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from gateway.model.copy_proof import PROOF_SIZES
from gateway.model.proof_text import MAX_PROOF

PROOF: Final = f"{'a1' * 16}.{'b2' * 16}.01.{'c3' * 16}"
OTHER_PROOF: Final = PROOF.replace("a", "d")
_DIGITS: Final = "0123456789abcdef."
SIGNED_PROOF: Final = f"{PROOF}.{'e5' * 13}"
WHOLE_PROOFS: Final = st.sampled_from([PROOF, OTHER_PROOF, SIGNED_PROOF]) | st.sampled_from(
    PROOF_SIZES
).flatmap(lambda size: st.text(_DIGITS, min_size=size, max_size=size))
PROOFS: Final = st.just("") | st.text(_DIGITS, max_size=MAX_PROOF) | WHOLE_PROOFS
