"""Which path a received message may keep: the check of the proof that came with it.

A message keeps its origin path if it equals the digest of its proof. Any other begins a new path;
only the marks that its source added stay, which are the source's own word. The count of hops goes
on with every proof, also of a message that equals no digest, so that no circle is endless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from typing import Final, NamedTuple

from gateway.model.copy_proof import (
    DIGEST_AT,
    FIRST_END,
    HOPS_AT,
    MAX_HOPS,
    PROOF_SIZE,
    PROOF_SIZES,
    SourceMark,
    content_digest,
    parse_proof,
    render_proof,
    signature,
)
from gateway.model.message import Headers, Message

DEFAULT_MAX_HOPS: Final = 8
KEY_SIZE: Final = 32  # bytes
_HOPS: Final = {f".{hops:02x}.": hops for hops in range(MAX_HOPS + 1)}  # as a proof spells them


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

    def prove(  # noqa: PLR0913, PLR0917  # the facts of one copy
        self, first: str, last: str, hops: int, name: bytes, payload_hash: bytes, headers: Headers
    ) -> str:
        """Return the text of the proof of a copy that is sent with `headers`."""
        proof = render_proof(first, last, hops, content_digest(name, payload_hash))
        if not self.keys:
            return proof
        return f"{proof}.{signature(self.keys[0], name, payload_hash, proof, headers.origin)}"

    def ends(self, hops: int) -> bool:
        """Return whether a message that came with this count of hops goes no further."""
        return 0 < self.max_hops <= hops


DEFAULT_RULES: Final = PathRules()


class CopyPath(NamedTuple):
    """The path of a received message by its proof: its original, and the hops so far.

    `first` is empty where the message equals no digest. `signed`: by a key that gateways share.
    """

    first: str = ""
    hops: int = 0
    signed: bool = False


NO_PATH: Final = CopyPath()


@dataclass(slots=True)
class PathCheck:
    """The check of the messages of one batch; those with equal headers share the result.

    Mutable: it lives as long as the batch is recognised.
    """

    rules: PathRules
    _begun: dict[int, Headers] = field(default_factory=dict)  # headers without their path

    def read(self, message: Message, name: bytes, payload_hash: bytes) -> CopyPath:
        """Return the path of a message with a canonical name at its source."""
        text = message.proof
        hops = _HOPS.get(text[HOPS_AT:DIGEST_AT])
        if hops is None or len(text) not in PROOF_SIZES:
            return NO_PATH
        if text[DIGEST_AT:PROOF_SIZE] != content_digest(name, payload_hash):
            return CopyPath("", hops)
        signed = len(text) > PROOF_SIZE and self._is_signed(message, name, payload_hash)
        return CopyPath(text[:FIRST_END], hops, signed)

    def _is_signed(self, message: Message, name: bytes, payload_hash: bytes) -> bool:
        """Return whether a key that this gateway knows has signed the proof and the path."""
        proof = parse_proof(message.proof)
        if proof is None:
            return False
        unsigned, found = message.proof[:PROOF_SIZE], proof.signature.encode()
        origin = [each for each in message.headers.origin if not isinstance(each, SourceMark)]
        return any(
            compare_digest(signature(key, name, payload_hash, unsigned, origin).encode(), found)
            for key in self.rules.keys
        )

    def begin(self, headers: Headers) -> Headers:
        """Return `headers` at the begin of a path: with the marks of the source alone."""
        if not headers.origin:
            return headers
        if (known := self._begun.get(id(headers))) is None:
            known = self._begun[id(headers)] = headers.with_origin(own_marks(headers.origin))
        return known


def own_marks(origin: Sequence[str]) -> tuple[str, ...]:
    """Return the marks that the source itself added to a path."""
    return tuple(each for each in origin if isinstance(each, SourceMark))
