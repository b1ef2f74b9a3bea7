"""Verifies an archive: the chains of its journals, and each file against its seal.

The rows are neither read nor compared: that is the reconciliation's part. No Spark is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, Weight, error, warning
from gateway.archive.heads import WriterHead, head_path, parsed
from gateway.archive.layout import MAX_TIME, SEALS, day_of, day_start, journal_of, parse_day
from gateway.archive.routes import routes_findings
from gateway.archive.signed_json import StoredDigest
from gateway.archive.storage import LocalStorage, Storage
from gateway.clock import today as current_date
from gateway.errors import ArchiveError
from gateway.night.archive.seals.evidence import Evidence, ReadEvidence
from gateway.night.archive.seals.seal import Seal
from gateway.night.archive.seals.store import HashFiles, digests_of, kept_days
from gateway.night.archive.verification.chains import NotRunning, chain_findings
from gateway.night.archive.verification.contents import (
    DayClaims,
    VerifiedSegment,
    check_files,
    claims_of,
    files_of,
    place_of,
    strangers,
)
from gateway.night.archive.verification.holders import Holder, holders
from gateway.night.archive.verification.seal_evidence import (
    NO_HEADS,
    EvidenceReader,
    Period,
)
from gateway.night.archive.verification.waiting import WaitingJournal, waiting_journals
from gateway.night.archive.verification.writers import (
    NO_WRITERS,
    Facts,
    KnownWriters,
    known_writers,
    writer_findings,
)
from gateway.terminal.units import counted

_DAY: Final = timedelta(days=1)
_FIRST_JOURNAL: Final = (
    "the first journal of a running gateway is open: ask again a quarter of an hour after its first"
    " row, or after a stop"
)
_LONGEST_GAP: Final = timedelta(days=400)  # between two dates of one archive
_MAX_PER_RULE: Final = 20  # findings; the others are counted
_UNCHECKED: Final = "the seals are keyed, and no key was given: a forger is not found; give the key"


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a verification.

    `segments` are all files with rows of the date, also those that no seal proves. `pauses` are
    the times in which a gateway did not run. `journals` are those without a seal, where the folder
    of the journals can be read. `seals` counts the seals of the date, and `unproven` the rows that
    they list in segments that are absent or not as they were sealed. `holders` are the instances
    that were active on the date, where a gateway has several. The `writers` were read before seals
    and journals.
    """

    findings: tuple[Finding, ...]
    segments: tuple[VerifiedSegment, ...] = ()
    pauses: tuple[NotRunning, ...] = ()
    journals: tuple[WaitingJournal, ...] = ()
    seals: int = 0
    unproven: int = 0
    holders: tuple[Holder, ...] = ()
    writers: KnownWriters = NO_WRITERS

    @property
    def complete(self) -> bool:
        """Whether nothing shows that a row is missing, added or changed."""
        return not any(finding.weight is Weight.ERROR for finding in self.findings)

    @property
    def proven(self) -> bool:
        """Whether seals prove that; nothing proves the rows of journals that are open."""
        return self.complete and (self.seals > 0 or not self.journals)


def verify_day(  # noqa: PLR0913  # the archive, its key, and the means
    storage: Storage,
    day: date,
    key: bytes | None = None,
    *,
    journals: Path | None = None,
    today: date | None = None,
    hash_files: HashFiles | None = None,
    read: ReadEvidence | None = None,
) -> Verified:
    """Verify the files of `day`, and the journals that can have rows of it.

    `key` is the key of the seals, where they have one. `journals` is the local folder of the
    archive, or the buffer of a remote one; None when it is out of reach. `today` is the current
    date in UTC. `hash_files` hashes the files, by default in threads of this process, and `read`
    reads and judges a seal.

    Raises:
        OSError: the archive cannot be read.
    """
    reader = EvidenceReader(storage, key, read)
    verifier = _Verifier(storage, reader, journals, today or current_date(), hash_files)
    routes = routes_findings(storage, day_start(day), day_start(day + _DAY), key)
    return _merged([Verified(tuple(routes)), verifier.of_day(day)])


def verify_archive(
    storage: Storage,
    key: bytes | None = None,
    *,
    journals: Path | None = None,
    today: date | None = None,
) -> Verified:
    """Verify all dates of the archive, as `verify_day` does.

    Raises:
        OSError: the archive cannot be read.
    """
    reader = EvidenceReader(storage, key)
    verifier = _Verifier(storage, reader, journals, today or current_date())
    known = sorted(kept_days(storage, reader.days) | reader.lost_begins())
    routes = Verified(tuple(routes_findings(storage, 0, MAX_TIME, key)))
    days = [verifier.of_day(day) for day in _without_gaps(known)]
    return _merged([routes, verifier.of_writers(), *days])


def sealed_files(storage: Storage, day: date, key: bytes) -> dict[Path, StoredDigest]:
    """Return the segments of `day` where they lie now, each as a seal of `key` states it.

    No segment is opened.

    Raises:
        ArchiveError: no seal of `key` names a file of the date.
        OSError: the archive cannot be read.
    """
    period = Period(day_start(day), day_start(day + _DAY), day_start(current_date()))
    files = files_of(storage, day)
    verifier = _Verifier(storage, EvidenceReader(storage, key), None, current_date())
    _, claims = verifier.claims(day, period, files)
    doubted = [path for path, claim in claims.present.items() if not claim.trusted]
    if unproven := [*map(str, strangers(files, claims)), *doubted]:
        raise ArchiveError(
            f"{unproven[0]}: no seal of this key names it; run gateway archive verify"
        )
    entries = [claim.entry for claim in claims.present.values()]
    return {place_of(files, entry): entry.file for entry in entries}


@dataclass(frozen=True, slots=True)
class _Verifier:
    storage: Storage
    reader: EvidenceReader
    folder: Path | None  # of the journals
    today: date
    hash_files: HashFiles | None = None

    def of_writers(self) -> Verified:
        """Verify what the writers state now: an archive may have lost all its dates."""
        begin = day_start(self.today)
        writers = known_writers(self.storage, self.folder, self.reader.key)
        facts = self._facts([], writers)
        period = Period(begin, day_start(self.today + _DAY), begin)
        findings = (*self.reader.removed.findings, *writer_findings(period, facts))
        return Verified(findings, journals=tuple(facts.waiting))

    def of_day(self, day: date) -> Verified:
        period = Period(day_start(day), day_start(day + _DAY), day_start(self.today))
        # Before seals and journals: what a head names is there when these are read.
        writers = known_writers(self.storage, self.folder, self.reader.key)
        files = files_of(self.storage, day)
        evidence, claims = self.claims(day, period, files, writers.expected)
        hash_files = self.hash_files or partial(digests_of, self.storage)
        found, segments, unproven = check_files(files, claims, hash_files)
        seals = [each.seal for each in evidence if isinstance(each.seal, Seal)]
        facts = self._facts(seals, writers)
        chained, pauses = chain_findings(period, facts)
        chained += writer_findings(period, facts)
        if not claims.present:
            found = [*_nothing_known(seals, period, len(files), facts.waiting)] or found
        sealed = self._seal_findings(evidence, period, day)
        return Verified(
            findings=(*sealed, *chained, *claims.findings, *found),
            segments=tuple(segments),
            pauses=tuple(pauses),
            journals=tuple(facts.waiting),
            seals=sum(each.path.parent.name == f"date={day}" for each in evidence),
            unproven=unproven,
            holders=tuple(holders(seals, period.begin, period.end)),
            writers=writers,
        )

    def claims(
        self,
        day: date,
        period: Period,
        files: Collection[Path],
        heads: Mapping[str, WriterHead] = NO_HEADS,
    ) -> tuple[list[Evidence], DayClaims]:
        """Return the seals that can name `files` of the period, and what they say about `day`."""
        evidence = self.reader.around(day, period, heads)
        claims = claims_of(evidence, day)
        if stems := {journal_of(path) for path in strangers(files, claims)}:
            known = {each.path for each in evidence}
            more = self.reader.of_names(stems, self.reader.days)
            evidence += [each for each in more if each.path not in known]
            claims = claims_of(evidence, day)
        return evidence, claims

    def _seal_findings(
        self, evidence: Sequence[Evidence], period: Period, day: date
    ) -> Iterator[Finding]:
        """Yield the findings about seals that can have rows of the period."""
        for each in evidence:
            if each.finding is not None and _matters(each, period, day):
                yield each.finding
        if self.reader.key is None and any(each.seal and each.seal.keyed for each in evidence):
            yield warning("unchecked-seals", SEALS, _UNCHECKED)

    def _facts(self, seals: Sequence[Seal], writers: KnownWriters) -> Facts:
        waiting = [] if self.folder is None else waiting_journals(self.folder)
        buffered = not isinstance(self.storage, LocalStorage)
        return Facts(self.reader, writers, seals, waiting, self._moved, buffered)

    def _moved(self, writer: str, head: WriterHead | None) -> bool:
        """Return whether the head of `writer` is another one by now."""
        root = self.storage if self.folder is None else LocalStorage(self.folder)
        path = head_path(writer)
        content = root.read(path)
        if content is None:
            content = self.storage.read(path)
        return (None if content is None else parsed(path, content).head) != head


def _nothing_known(
    seals: Sequence[Seal], period: Period, files: int, waiting: Sequence[WaitingJournal]
) -> Iterator[Finding]:
    """Yield the finding about a date without a segment in a seal, where one is expected."""
    place = f"date={day_of(period.begin)}"
    if files:
        text = f"no seal names one of its {counted(files, 'file')}: nothing proves its rows"
        yield error("no-seals", place, text)
    elif any(min(seal.opened, seal.closed) < period.end for seal in seals):
        return  # the chains tell whether a gateway ran; a clock may be set back
    elif first := next((each for each in waiting if _is_first(each, period)), None):
        yield warning("open-journal", first.path.name, _FIRST_JOURNAL)
    else:
        yield error("no-seals", place, "the archive has no seal of this date or before")


def _is_first(each: WaitingJournal, period: Period) -> bool:
    """Return whether a running process writes the first journal of its writer since then."""
    return each.live and each.previous is None and each.opened < period.end


def _matters(each: Evidence, period: Period, day: date) -> bool:
    """Return whether a seal can have rows of the period."""
    if isinstance(each.seal, Seal):
        named = any(entry.path.startswith(f"date={day}/") for entry in each.seal.segments)
        return named or period.has(each.seal.opened, each.seal.closed)
    sealed = parse_day(each.path.parent.name)
    return sealed == day or (each.seal is None and sealed is not None and sealed > day)


def _without_gaps(days: Sequence[date]) -> list[date]:
    """Return `days` with those between them: a date may be missing with all its files."""
    found: set[date] = set(days)
    for earlier, later in pairwise(days):
        if later - earlier <= _LONGEST_GAP:
            found |= {earlier + number * _DAY for number in range((later - earlier).days)}
    return sorted(found)


def _merged(verified: Sequence[Verified]) -> Verified:
    """Return one result, with each finding once and at most `_MAX_PER_RULE` of a rule."""
    kept = defaultdict[str, list[Finding]](list)
    for found in dict.fromkeys(found for each in verified for found in each.findings):
        kept[found.rule].append(found)
    shown: list[Finding] = []
    for same in kept.values():
        shown += same[:_MAX_PER_RULE]
        if (more := len(same) - _MAX_PER_RULE) > 0:
            last = same[_MAX_PER_RULE]
            shown.append(replace(last, text=f"{last.text} (and {more - 1} more of this kind)"))
    return Verified(
        findings=tuple(shown),
        segments=tuple(segment for each in verified for segment in each.segments),
        pauses=tuple(pause for each in verified for pause in each.pauses),
        journals=verified[-1].journals,
        seals=sum(each.seals for each in verified),
        unproven=sum(each.unproven for each in verified),
        holders=tuple(holder for each in verified for holder in each.holders),
        writers=verified[-1].writers,
    )
