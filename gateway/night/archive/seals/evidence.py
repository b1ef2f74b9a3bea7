"""The seals of an archive as evidence: each is read and judged by itself, both at once.

seal      what the file states; None where it is none, or lies at another place
finding   why its statements are not proven; None where they are
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from gateway.archive.findings import Finding, error
from gateway.archive.storage import Storage
from gateway.night.archive.seals.seal import AnySeal
from gateway.night.archive.seals.store import StoredSeal, read_seal

ReadEvidence: TypeAlias = Callable[[Path], "Evidence"]  # as `read_evidence` does in one archive

_FORGED: Final = "forged-seal"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A file among the seals; with a `finding` its statements are not proven."""

    path: Path
    seal: AnySeal | None
    finding: Finding | None

    @property
    def forged(self) -> bool:
        """Whether its `mac` is wrong, or it is not a seal; one that lacks a key may be right."""
        return self.finding is not None and self.finding.rule == _FORGED


def read_evidence(storage: Storage, key: bytes | None, path: Path) -> Evidence:
    """Read the seal at `path`, and check its place, the paths in it and its `mac`.

    A keyed seal is not checked without a `key`.

    Raises:
        OSError: the storage cannot be read.
    """
    stored = read_seal(storage, path)
    return Evidence(path, stored.seal, _finding(stored, key))


def _finding(stored: StoredSeal, key: bytes | None) -> Finding | None:
    seal, place = stored.seal, str(stored.path)
    if seal is None:
        text = f"the seal {stored.fault}; restore it from a copy of the archive"
        return error(_FORGED, place, text)
    if seal.keyed and key is None:
        return None  # one finding of the verification is about all of them
    if not seal.has_valid_mac(key):
        text = "the content is not what was sealed"
        return error(_FORGED, place, f"{text}, or the key is another one" if key else text)
    if key is not None and not seal.keyed:
        return error("unsigned-seal", place, "the seal has no key, and one was given")
    return None
