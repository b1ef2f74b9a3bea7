"""How a gateway takes and makes proofs: its keys, and the longest way of a message."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

from gateway.model.copy_proof import (
    PROOF_SIZE,
    SourceMark,
    parse_proof,
    signature,
)
from gateway.model.message import Headers, Message

DEFAULT_MAX_HOPS: Final = 8
KEY_SIZE: Final = 32  # bytes


def path_secret(text: str) -> bytes:
    """Return the key of a signature, of any length, from the text of a setting."""
    return blake2b(text.encode(), digest_size=KEY_SIZE).digest()


@dataclass(frozen=True, slots=True)
class PathRules:
    """How a gateway takes and makes proofs.

    `keys` are secrets that several gateways share: copies are signed with the first one, and a
    signature by any of them is known. A message that `max_hops` gateways have sent on goes no
    further; 0: it always does.
    """

    max_hops: int = DEFAULT_MAX_HOPS
    keys: tuple[bytes, ...] = ()

    def sign(self, proof: str, name: bytes, payload_hash: bytes, headers: Headers) -> str:
        """Return the text of a proof with a signature, where the gateway has a key."""
        if not self.keys:
            return proof
        return f"{proof}.{signature(self.keys[0], name, payload_hash, proof, headers.origin)}"

    def have_signed(self, message: Message, name: bytes, payload_hash: bytes) -> bool:
        """Return whether a key that this gateway knows has signed the proof and the path."""
        proof = parse_proof(message.proof)
        if proof is None:
            return False
        unsigned, found = message.proof[:PROOF_SIZE], proof.signature.encode()
        origin = [each for each in message.headers.origin if not isinstance(each, SourceMark)]
        return any(
            compare_digest(signature(key, name, payload_hash, unsigned, origin).encode(), found)
            for key in self.keys
        )

    def ends(self, hops: int) -> bool:
        """Return whether a message that came with this count of hops goes no further."""
        return 0 < self.max_hops <= hops


DEFAULT_RULES: Final = PathRules()
