"""The proof that travels with each copy: which message it is a copy of, and what was sent.

A gateway adds one to every copy, as one small property. Beside it travels the origin path, which
many messages share. The path belongs to a message only if the message equals the digest of its
proof: an application may copy properties to another message, and anybody may write them.

    FIRST.LAST.HOPS.DIGEST             101 characters: hexadecimal digits and dots
    FIRST.LAST.HOPS.DIGEST.SIGNATURE   128 characters

- FIRST: the id of the original, 16 bytes: a hash of its id at the first gateway, with a secret of
  that one. So nobody can give it to a message before it is sent.
- LAST: its id at the gateway that sent this copy, 16 bytes.
- HOPS: the gateways that have sent it on, one byte.
- DIGEST: of the copy as it was sent, 16 bytes: its canonical name and the hash of its payload.
- SIGNATURE: of all this and of the path, 13 bytes, by a key that gateways share. A gateway with
  another key, or without one, believes the digest all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from xxhash import xxh3_128_hexdigest

PROOF_SIZE: Final = 101  # characters of a proof without a signature
PROOF_SIZES: Final = (PROOF_SIZE, 128)
FIRST_END: Final = 32  # places in its text
HOPS_AT: Final = 65  # with the dots around them
DIGEST_AT: Final = 69
MAX_HOPS: Final = 0xFF
SIGNATURE_SIZE: Final = 13  # bytes
# Returns the digest of a copy: of its canonical name, then the 16 bytes of its payload's hash.
content_digest: Final[Callable[[bytes], str]] = xxh3_128_hexdigest
# The text of each count of hops; the one behind the highest has the same text.
HOPS: Final = (*(f"{hops:02x}" for hops in range(MAX_HOPS + 1)), f"{MAX_HOPS:02x}")
# Returns the text of a proof without a signature, of first id, last id, hops and digest.
render_proof: Final[Callable[[tuple[str, str, str, str]], str]] = ".".join
_FORM: Final = re.compile(
    r"([0-9a-f]{32})\.([0-9a-f]{32})\.([0-9a-f]{2})\.([0-9a-f]{32})(?:\.([0-9a-f]{26}))?"
)


class SourceMark(str):
    """An entry of an origin path that the source itself adds: it outlives a refused path."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class CopyProof:
    """A proof as it was received: hexadecimal digits, and a number of hops."""

    first: str
    last: str
    hops: int
    digest: str
    signature: str = ""


def parse_proof(text: str) -> CopyProof | None:
    """Return the proof in `text`; None if it is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    return CopyProof(found[1], found[2], int(found[3], 16), found[4], found[5] or "")


def signature(key: bytes, name: bytes, payload_hash: bytes, proof: str, path: Sequence[str]) -> str:
    """Return the signature of a copy, for the text of its `proof` without one."""
    mac = blake2b(payload_hash, key=key, digest_size=SIGNATURE_SIZE)
    for each in (proof, ",".join(path)):
        mac.update(each.encode("utf-8", "surrogatepass"))
        mac.update(b"\0")
    mac.update(name)
    return mac.hexdigest()
