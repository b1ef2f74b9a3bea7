"""The files of one date, compared with the seals that name them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from gateway.archive.findings import Finding, error
from gateway.archive.layout import day_folder, hour_folder, staged_path
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import Storage
from gateway.night.archive.seals.evidence import Evidence
from gateway.night.archive.seals.seal import MergeSeal, SegmentEntry
from gateway.night.archive.seals.store import HashFiles
from gateway.terminal.units import counted


@dataclass(frozen=True, slots=True)
class VerifiedSegment:
    """A file with rows of a date.

    `sealed` when it is as its seal states. A merged segment has rows of several gateways, and no
    `gateway`. Times are those of the earliest and the latest row in microseconds.
    """

    path: Path
    sealed: bool
    size: int
    rows: int = 0
    gateway: str = ""
    journal: str = ""  # its stem, or the name of the compaction
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """A segment that a seal names, and whether the seal itself is trusted."""

    entry: SegmentEntry
    gateway: str
    source: str  # the stem of the journal, or the name of the compaction
    trusted: bool


@dataclass(frozen=True, slots=True)
class DayClaims:
    """The segments that must be there; the replaced ones; and findings about the seals."""

    present: Mapping[str, Claim]
    replaced: Mapping[str, str]  # path -> SHA-256 of the content that was merged
    findings: tuple[Finding, ...]
    sizes: frozenset[int]  # of both


def claims_of(evidence: Sequence[Evidence], day: date) -> DayClaims:
    """Return the segments of `day` that seals name, after all compactions of the date."""
    findings: list[Finding] = []
    found: dict[str, Claim] = {}
    for claim in _claims(evidence, day):
        if claim.entry.path in found:
            text = f"{found[claim.entry.path].source} and {claim.source} both have this segment"
            findings.append(error("forked-chain", claim.entry.path, text))
        found[claim.entry.path] = claim
    replaced: dict[str, str] = {}
    merges = [(each.seal, each.path) for each in evidence if isinstance(each.seal, MergeSeal)]
    for seal, path in sorted(merges, key=lambda each: each[0].generation):
        if seal.date == day.isoformat():
            findings += _merge_findings(path, seal, found, replaced)
            replaced |= {one.path: one.sha256 for one in seal.replaces}
    present = {path: claim for path, claim in found.items() if path not in replaced}
    sizes = frozenset(claim.entry.size for claim in found.values())
    return DayClaims(present, replaced, tuple(findings), sizes)


def files_of(storage: Storage, day: date) -> dict[Path, int]:
    """Return the files of `day` that readers of the archive take, with their bytes.

    Raises:
        OSError: the storage cannot be read.
    """
    found = storage.files(day_folder(Path(), day))
    return {path: size for path, size in found if not _is_hidden(path)}


def strangers(files: Iterable[Path], claims: DayClaims) -> list[Path]:
    """Return the files that are neither named by a seal nor replaced by a compaction."""
    known = claims.present.keys() | claims.replaced.keys()
    return [path for path in files if path.as_posix() not in known]


def check_files(
    files: Mapping[Path, int], claims: DayClaims, hash_files: HashFiles
) -> tuple[list[Finding], list[VerifiedSegment], int]:
    """Compare the hash of each segment with the seal; a file of another size is not read.

    The number counts the rows that seals list, and no file proves.

    Raises:
        OSError: `hash_files` cannot read the storage.
    """
    others = strangers(files, claims)
    entries = [claim.entry for claim in claims.present.values()]
    expected = {Path(entry.path): entry.size for entry in entries}
    wanted = expected | {path: files[path] for path in others if files[path] in claims.sizes}
    other = {path: files[path] for path in wanted if files.get(path, wanted[path]) != wanted[path]}
    digests = dict(hash_files({path: wanted[path] for path in wanted if path not in other}))
    digests |= {path: StoredDigest("", size) for path, size in other.items()}
    # A merged segment may have no final name yet.
    staged = {place_of(digests, entry): entry.size for entry in entries}
    if absent := {path: size for path, size in staged.items() if path not in digests}:
        digests |= hash_files(absent)
    checked = [_check(digests, claim) for claim in claims.present.values()]
    findings = [finding for found, _ in checked for finding in found]
    segments = [segment for _, segment in checked if segment is not None]
    sealed = sum(segment.rows for segment in segments if segment.sealed)
    unproven = sum(entry.rows for entry in entries) - sealed
    origins = {sha256: path for path, sha256 in claims.replaced.items()}
    origins |= {claim.entry.sha256: path for path, claim in claims.present.items()}
    for path in others:
        sha256 = digests[path].sha256 if path in digests else ""
        text = f"it is a copy of {origins[sha256]}" if sha256 in origins else "no seal names it"
        text = f"{text}; its rows count in no proof"
        findings.append(error("unsealed-segment", path.as_posix(), text))
        segments.append(VerifiedSegment(path, sealed=False, size=files[path]))
    return findings, segments, unproven


def _claims(evidence: Sequence[Evidence], day: date) -> Iterator[Claim]:
    folder = f"{day_folder(Path(), day)}/"
    for seal, trusted in ((each.seal, each.finding is None) for each in evidence if each.seal):
        for entry in seal.segments:
            if entry.path.startswith(folder):
                yield Claim(entry, seal.gateway, seal.journal, trusted)


def _merge_findings(
    path: Path, seal: MergeSeal, found: Mapping[str, Claim], replaced: Mapping[str, str]
) -> Iterator[Finding]:
    """Compare a compaction with the seals of the segments that it replaced."""
    rows = 0
    for each in seal.replaces:
        claim = found.get(each.path)
        if claim is None:
            text = f"{seal.journal} replaced it, and no seal names it"
            yield error("unsealed-segment", each.path, text)
            return
        rows += claim.entry.rows
        if claim.entry.sha256 != each.sha256:
            text = f"{seal.journal} replaced another content than {claim.source} sealed"
            yield error("changed-segment", each.path, text)
        if each.path in replaced:
            yield error("forked-chain", each.path, f"{seal.journal} replaced it for a second time")
    merged = sum(entry.rows for entry in seal.segments)
    if merged != rows:
        text = (
            f"the merged segments have {counted(merged, 'row')}, those that they replace {rows:,}"
        )
        yield error("changed-segment", path.as_posix(), text)


def _check(
    digests: Mapping[Path, StoredDigest], claim: Claim
) -> tuple[list[Finding], VerifiedSegment | None]:
    """Compare a segment with the seal."""
    entry = claim.entry
    path = place_of(digests, entry)
    digest = digests.get(path)
    if digest is None:
        text = f"it is absent; {claim.source} sealed {counted(entry.rows, 'row')} in it"
        return [error("missing-segment", entry.path, text)], None
    if digest != entry.file:
        text = f"the content is not what {claim.source} sealed"
        segment = VerifiedSegment(path, sealed=False, size=digest.size)
        return [error("changed-segment", entry.path, text)], segment
    segment = VerifiedSegment(
        path=path,
        sealed=claim.trusted,
        size=entry.size,
        rows=entry.rows,
        gateway=claim.gateway,
        journal=claim.source,
        first=entry.first,
        last=entry.last,
    )
    return _placement(entry), segment


def place_of(files: Container[Path], entry: SegmentEntry) -> Path:
    """Return where a segment lies; a merged one may have no final name yet."""
    path = Path(entry.path)
    return path if path in files else staged_path(path)


def _placement(entry: SegmentEntry) -> list[Finding]:
    """Return the finding about rows of another hour than that of their folder."""
    folder = Path(entry.path).parent
    if entry.misplaced:
        text = f"{entry.misplaced} of {entry.rows} rows are of another hour, or have no valid time"
        return [error("wrong-folder", entry.path, text)]
    if not entry.rows or {hour_folder(at) for at in (entry.first, entry.last)} == {folder}:
        return []
    return [error("wrong-folder", entry.path, "its rows are of another hour")]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)
