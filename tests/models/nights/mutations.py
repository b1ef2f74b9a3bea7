"""Each rule of a night, broken once: the model must find it (`python -m ...mutations`)."""

from __future__ import annotations

import sys
from typing import Final

from tests.models.nights.campaign import Run
from tests.models.nights.reference import Nights, Order
from tests.models.nights.store import (
    DAY,
    Archive,
    Finding,
    Forgotten,
    Head,
    Judged,
    Place,
    Record,
    Row,
)
from tests.models.nights.world import World, Writer

MAX_SEEDS: Final = 400
Evidence = frozenset[tuple[Place, int]]


class OnlyYesterday(Nights):
    def differs(self, archive: Archive, date: int, before: Judged, evidence: Evidence) -> bool:
        del archive, date, before, evidence
        return False


class LateRowsIgnored(Nights):
    def differs(self, archive: Archive, date: int, before: Judged, evidence: Evidence) -> bool:
        new = before.evidence if evidence else evidence
        return super().differs(archive, date, before, new)


class EvidenceByNewestSeal(Nights):
    def differs(self, archive: Archive, date: int, before: Judged, evidence: Evidence) -> bool:
        newest = max(before.evidence, default=None) == max(evidence, default=None)
        return super().differs(archive, date, before, before.evidence if newest else evidence)


class WaitingIsSettled(Nights):
    def differs(self, archive: Archive, date: int, before: Judged, evidence: Evidence) -> bool:
        del archive, date
        return evidence != before.evidence


class SilentWriterDropped(Nights):
    def silent(self, head: Head, order: Order) -> bool:
        return super().silent(head, order) and head.closed_at >= order.horizon - DAY


class HeadNotCompared(Nights):
    def went_back(self, head: Head, seen: Head) -> bool:
        del head, seen
        return False

    def missing_seals(
        self, archive: Archive, writer: str, head: Head | None, seen: Head | None
    ) -> set[int]:
        del seen
        return super().missing_seals(archive, writer, head, head)


class NoWitnesses(Nights):
    def writers(self, archive: Archive, prior: Record | None) -> set[str]:
        del prior
        return set(archive.heads)


class OnlySealsNameSeals(Nights):
    """The state before heads: a journal is missed when a later seal names it."""

    def missing_seals(
        self, archive: Archive, writer: str, head: Head | None, seen: Head | None
    ) -> set[int]:
        del head, seen
        return super().missing_seals(archive, writer, None, None)


class GapsForgiven(Nights):
    def missing_seals(
        self, archive: Archive, writer: str, head: Head | None, seen: Head | None
    ) -> set[int]:
        del archive, writer, head, seen
        return set()


class ForgettingNotTold(Nights):
    def statement(self, seals: frozenset[Place], open_copies: frozenset[int] | None) -> Forgotten:
        del open_copies
        return Forgotten(seals, frozenset())


class CompactionHidesLoss(Nights):
    def read(self, archive: Archive, place: Place, folder: int) -> list[Row] | None:
        return super().read(archive, place, folder) or []


class EvidenceMayShrink(Nights):
    def evidence_gone(
        self, archive: Archive, before: Judged | None, evidence: Evidence
    ) -> frozenset[Place]:
        del archive, before, evidence
        return frozenset()


class SpooledForEver(Nights):
    def too_old(self, received: int, order: Order) -> bool:
        del received, order
        return False


class TakenBackInSilence(Nights):
    def clean_before(self, archive: Archive, prior: Record | None) -> set[int]:
        del archive, prior
        return set()


class RemovedLinksUnseen(Nights):
    """A removed link makes the next night forget what was said."""

    def chain_of_nights(self, archive: Archive, order: Order) -> set[Finding]:
        findings = super().chain_of_nights(archive, order)
        return {finding for finding in findings if finding.rule != "missing-night"}

    def clean_before(self, archive: Archive, prior: Record | None) -> set[int]:
        del archive
        return {date for date, said in (prior.dates if prior else {}).items() if said.clean}


class NothingExpected(Nights):
    def chain_of_nights(self, archive: Archive, order: Order) -> set[Finding]:
        return super().chain_of_nights(archive, order._replace(expected=None))


class InFlightForEver(Nights):
    def later_journal(self, archive: Archive, writer: str, number: int) -> bool:
        del archive, writer, number
        return False


class RetiredForEver(Nights):
    def is_retired(self, archive: Archive, writer: str, head: Head) -> bool:
        del head
        return writer in archive.retired


class MarkedAreUnmarked(Nights):
    def classify(self, archive: Archive, sightings: list[tuple[Place, Row]], order: Order) -> str:
        plain = [(place, row._replace(marked=False)) for place, row in sightings]
        return super().classify(archive, plain, order)


class ClocksGoBack(World):
    def opening(self, writer: Writer) -> int:
        return self.now + writer.skew


class NoHeadBeforeRows(World):
    """The head names the open journal when it is closed, not before its rows."""

    def _open(self, writer: Writer) -> None:
        super()._open(writer)
        writer.head = Head(writer.head.closed, writer.head.closed_at, None)


MUTATIONS: Final[dict[str, tuple[type[Nights], type[World]]]] = {
    each.__name__: (each, World)
    for each in (
        OnlyYesterday,
        LateRowsIgnored,
        EvidenceByNewestSeal,
        WaitingIsSettled,
        SilentWriterDropped,
        HeadNotCompared,
        NoWitnesses,
        OnlySealsNameSeals,
        GapsForgiven,
        ForgettingNotTold,
        CompactionHidesLoss,
        EvidenceMayShrink,
        SpooledForEver,
        TakenBackInSilence,
        RemovedLinksUnseen,
        NothingExpected,
        InFlightForEver,
        RetiredForEver,
        MarkedAreUnmarked,
    )
} | {each.__name__: (Nights, each) for each in (ClocksGoBack, NoHeadBeforeRows)}


def seeds_until_found(name: str, maximum: int = MAX_SEEDS) -> tuple[int, str] | None:
    """Return the number of seeds until the broken rule is found, and the contradiction."""
    nights, world = MUTATIONS[name]
    for seed in range(maximum):
        if found := Run(seed, nights(), world).run():
            return seed + 1, found[0]
    return None


if __name__ == "__main__":
    for mutation in MUTATIONS:
        sys.stdout.write(f"{mutation}: {seeds_until_found(mutation)}\n")
