"""Findings of nights that somebody acknowledged: they stay listed, and count in no verdict.

    ARCHIVE/_acknowledged/<digest of the finding>.json

Written by `gateway archive acknowledge`, read by each night, and never deleted. A finding with
another text is another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, Weight
from gateway.archive.layout import NIGHTS, days_in
from gateway.archive.signed_json import SignedStatement
from gateway.archive.storage import Storage
from gateway.errors import ArchiveError
from gateway.night.archive.night_record import Night, night_numbers, night_path

_FOLDER: Final = Path("_acknowledged")


@dataclass(frozen=True, slots=True)
class Acknowledgement(SignedStatement):
    """The statement that a finding of this rule, place and text is known, and why it stays."""

    rule: str
    place: str
    text: str
    why: str
    at: int  # microseconds since 1970-01-01 UTC


def acknowledge(  # the archive, the finding, and who says so
    storage: Storage, rule: str, place: str, why: str, at: int, key: bytes | None
) -> Sequence[Finding]:
    """Write durably that the findings of the last night with this rule and place are known.

    Raises:
        ArchiveError: the last night has no such finding, or no reason is given.
        OSError: the archive cannot be read or written.
    """
    if not why.strip():
        raise ArchiveError("--why: is empty; say why the finding stays")
    known = _last_findings(storage, key)
    found = [each for each in known if (each.rule, each.place) == (rule, place)]
    if not found:
        others = ", ".join(f"{each.rule} {each.place}" for each in known) or "none"
        text = f"the last night found no {rule!r} at {place!r}; it found: {others}"
        if days_in(Path(place).parts):
            text += "; a finding of a date cannot be acknowledged: the date keeps its status"
        raise ArchiveError(text)
    for each in found:
        statement = Acknowledgement(rule, place, each.text, why, at)
        storage.put(_path(each), statement.signed(key).to_json())
    return found


def with_acknowledged(
    storage: Storage, findings: Sequence[Finding], key: bytes | None
) -> list[Finding]:
    """Return `findings`, in which those that somebody acknowledged are warnings with the reason.

    A damaged or forged statement acknowledges nothing.

    Raises:
        OSError: the archive cannot be read.
    """
    return [_shown(storage, each, key) for each in findings]


def _shown(storage: Storage, finding: Finding, key: bytes | None) -> Finding:
    content = storage.read(_path(finding))
    if content is None:
        return finding
    try:
        found = Acknowledgement.from_json(content)
    except ValueError:
        return finding
    same = (found.rule, found.place, found.text) == (finding.rule, finding.place, finding.text)
    if not same or found.fault(key):
        return finding
    text = f"{finding.text} (acknowledged: {found.why})"
    return replace(finding, weight=Weight.WARNING, text=text)


def _last_findings(storage: Storage, key: bytes | None) -> Sequence[Finding]:
    numbers = night_numbers(storage)
    if not numbers:
        raise ArchiveError(f"{NIGHTS}: no night has judged the archive; run gateway reconcile")
    path = night_path(numbers[-1])
    try:
        night = Night.from_json(storage.read(path) or b"")
        if fault := night.fault(key):
            raise ValueError(fault)  # noqa: TRY301  # one text for all
    except ValueError as fault:
        raise ArchiveError(f"{path}: {fault}; restore it from a copy of the archive") from fault
    return night.findings


def _path(finding: Finding) -> Path:
    facts = json.dumps([finding.rule, finding.place, finding.text])
    return _FOLDER / f"{hashlib.sha256(facts.encode()).hexdigest()}.json"
