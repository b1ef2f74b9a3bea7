"""The text of a copy's proof in properties, and its place among their bytes.

A stranger's property may be anything: only hexadecimal digits and dots are read as a proof.
Each message has another proof, while many messages have equal properties beside it. A reader that
keeps decoded properties by their bytes therefore cuts the proof out of the bytes first:

    mark  what a gateway writes before the text of the proof: its name, its type and its length
    key   the bytes without the text behind the first mark, and whether it was cut
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway.model.copy_proof import PROOF_SIZES

MAX_PROOF: Final = 128  # characters
# what it changes is not a character of a proof
_DIGITS: Final = bytes(each if each in b"0123456789abcdef." else 48 for each in range(256))


def read_proof(value: object) -> str:
    """Return the proof that a property holds; empty where it is none."""
    return proof_of(value.encode(errors="replace")) if isinstance(value, str) else ""


def proof_of(raw: bytes) -> str:
    """Return the proof in `raw`; empty where it is none."""
    return raw.decode() if len(raw) <= MAX_PROOF and raw.translate(_DIGITS) == raw else ""


def cut_proof(data: bytes, start: int, end: int, marks: Sequence[bytes]) -> tuple[bytes, str]:
    """Return the bytes from `start` to `end` without the text behind a mark, and that.

    `marks` are those of the PROOF_SIZES. The text is empty, and nothing is cut, where it is no
    proof of this size.
    """
    which = 0
    at = data.find(marks[0], start, end)
    if at < 0:
        which = 1
        at = data.find(marks[1], start, end)
    if at >= 0:
        at += len(marks[which])
        stop = at + PROOF_SIZES[which]
        proof = data[at:stop]
        if stop <= end and proof.translate(_DIGITS) == proof:
            return data[start:at] + data[stop:end], proof.decode()
    return data[start:end], ""


def is_shared(data: bytes, name: bytes, cut: str, found: str) -> bool:
    """Return whether encoded properties that differ in the text `cut` differ in the proof only.

    `found` is the proof that was decoded from `data`; each encoding of its name contains `name`.
    Where `name` stands once, the text behind it is the proof, and no value of an application.
    Another proof in its place adds no name.
    """
    return not cut or (found == cut and data.count(name) == 1)
