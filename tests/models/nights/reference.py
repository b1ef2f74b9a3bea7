"""A plain specification of a night: what the next link of the chain has to judge and to name."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

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
    Seal,
)


class Order(NamedTuple):
    """How a night is run."""

    horizon: int  # the end of the last closed date
    spooled_days: int = 3
    expected: Record | None = None  # the last link, of which a copy is kept elsewhere


class Nights:
    """The rules, one method each, so that a mutation overrides one."""

    def run(self, archive: Archive, order: Order) -> Record:
        """Judge what differs from the last link, and add a link."""
        prior = archive.last_night()
        findings = self.chain_of_nights(archive, order)
        for writer in sorted(self.writers(archive, prior)):
            findings |= self.writer(archive, writer, prior, order)
        findings |= self.forgetting(archive, prior)
        dates = {}
        judged = set()
        for date in sorted(self.dates(archive, order, prior)):
            evidence = self.evidence(archive, date)
            before = prior.dates.get(date) if prior else None
            if before and not self.differs(archive, date, before, evidence):
                dates[date] = before
                continue
            said = self.judge(archive, date, evidence, order)
            absent = said.absent | self.evidence_gone(archive, before, evidence)
            dates[date] = said._replace(absent=absent)
            judged.add(date)
            findings.update(Finding("missing-segment", w) for w, _ in dates[date].absent)
        clean_before = self.clean_before(archive, prior)
        back = {date for date in judged & clean_before if not dates[date].clean}
        number = prior.number + 1 if prior else 1
        ended = frozenset(w for w, head in archive.heads.items() if head.open is None)
        record = Record(
            number,
            order.horizon,
            self.heads(archive, prior),
            dates,
            frozenset(judged),
            frozenset(findings),
            frozenset(back),
            ended,
            frozenset(archive.forgotten),
        )
        archive.results |= {date: (number, dates[date].clean) for date in judged}
        archive.nights.append(record)
        return record

    def chain_of_nights(self, archive: Archive, order: Order) -> set[Finding]:
        """Name links that are gone: by number, by the results, and by what is expected."""
        numbers = [record.number for record in archive.nights]
        newest = numbers[-1] if numbers else 0
        last_result = max((number for number, _ in archive.results.values()), default=0)
        findings = set()
        if numbers != list(range(1, newest + 1)) or last_result > newest:
            findings.add(Finding("missing-night", "archive"))
        if order.expected and order.expected not in archive.nights:
            findings.add(Finding("unexpected-chain", "archive"))
        return findings

    def writers(self, archive: Archive, prior: Record | None) -> set[str]:
        """Return all writers: every file that names one is a witness."""
        judged = set(prior.heads) if prior else set()
        return set(archive.heads) | {w for w, _ in archive.seals} | archive.routes | judged

    def heads(self, archive: Archive, prior: Record | None) -> dict[str, Head]:
        """Return the highest head of each writer that any night has seen."""
        heads = dict(prior.heads) if prior else {}
        for writer, head in archive.heads.items():
            if writer not in heads or not _went_back(head, heads[writer]):
                heads[writer] = head
        return heads

    def writer(
        self, archive: Archive, writer: str, prior: Record | None, order: Order
    ) -> set[Finding]:
        """Return what is wrong with the chain of a writer; a missing journal is for ever."""
        head = archive.heads.get(writer)
        seen = prior.heads.get(writer) if prior else None
        missing = self.missing_seals(archive, writer, head, seen)
        findings = {Finding("missing-seal", writer, number) for number in missing}
        if head is None:
            findings.add(Finding("missing-head", writer))
        elif self.silent(head, order) and not self.is_retired(archive, writer, head):
            findings.add(Finding("silent-writer", writer))
        if head and seen and self.went_back(head, seen):
            findings.add(Finding("head-went-back", writer))
        return findings

    def went_back(self, head: Head, seen: Head) -> bool:
        return _went_back(head, seen)

    def silent(self, head: Head, order: Order) -> bool:
        """Return whether nothing proves the writer's rows until the horizon."""
        return head.open is not None and head.closed_at < order.horizon

    def is_retired(self, archive: Archive, writer: str, head: Head) -> bool:
        return writer in archive.retired and archive.retired[writer] == head

    def missing_seals(
        self, archive: Archive, writer: str, head: Head | None, seen: Head | None
    ) -> set[int]:
        """Return the numbers that a head or a later seal names, without a journal."""
        sealed = {number for w, number in archive.seals if w == writer}
        gone = {n for f in archive.forgotten.values() for w, n in f.seals if w == writer}
        last = max(sealed, default=0)
        for known in (head, seen):
            last = max(last, known.closed if known else 0)
        return set(range(1, last + 1)) - sealed - gone

    def forgetting(self, archive: Archive, prior: Record | None) -> set[Finding]:
        """Name dates that were removed unresolved, and rows that came after the removal."""
        findings = set()
        for date, forgotten in archive.forgotten.items():
            untold = prior is None or date not in prior.forgotten
            if untold and forgotten.unresolved is None:
                findings.add(Finding("forgotten-unjudged", f"date {date}"))
            elif untold and forgotten.unresolved:
                findings.add(Finding("forgotten-unresolved", f"date {date}"))
        for seal in self.new_seals(archive, prior):
            findings.update(
                Finding("late-for-forgotten", f"date {date}")
                for date in seal.concerns & set(archive.forgotten)
                if seal.place not in archive.forgotten[date].seals
            )
        return findings

    def new_seals(self, archive: Archive, prior: Record | None) -> list[Seal]:
        known: set[tuple[Place, int]] = set()
        for judged in prior.dates.values() if prior else ():
            known |= judged.evidence
        return [seal for seal in archive.seals.values() if (seal.place, seal.digest) not in known]

    def dates(self, archive: Archive, order: Order, prior: Record | None) -> set[int]:
        """Return the closed dates that are kept."""
        concerned = {date for seal in archive.seals.values() for date in seal.concerns}
        judged = set(prior.dates) if prior else set()
        closed = range(order.horizon // DAY)
        known = concerned | judged | set(archive.results)
        return known & set(closed) - set(archive.forgotten)

    def evidence(self, archive: Archive, date: int) -> frozenset[tuple[Place, int]]:
        seals = archive.seals.values()
        return frozenset((seal.place, seal.digest) for seal in seals if date in seal.concerns)

    def differs(
        self,
        archive: Archive,
        date: int,
        before: Judged,
        evidence: frozenset[tuple[Place, int]],
    ) -> bool:
        """Return whether a date is judged again: new evidence, or unresolved, or no result."""
        unsettled = bool(before.waiting or before.missing or before.absent)
        return evidence != before.evidence or unsettled or date not in archive.results

    def judge(
        self,
        archive: Archive,
        date: int,
        evidence: frozenset[tuple[Place, int]],
        order: Order,
    ) -> Judged:
        """Classify every copy of `date` by the rows of its evidence."""
        rows: dict[int, list[tuple[Place, Row]]] = defaultdict(list)
        absent = set()
        for place, _ in evidence:
            for folder in archive.seals[place].dates - set(archive.forgotten):
                found = self.read(archive, place, folder)
                if found is None:
                    absent.add(place)
                for row in found or ():
                    if row.date == date:
                        rows[row.copy].append((place, row))
        classes: dict[str, set[int]] = defaultdict(set)
        for number, sightings in rows.items():
            classes[self.classify(archive, sightings, order)].add(number)
        return Judged(
            evidence,
            frozenset(classes["missing"]),
            frozenset(classes["duplicated"]),
            frozenset(classes["unexpected"]),
            frozenset(classes["waiting"]),
            frozenset(absent),
        )

    def evidence_gone(
        self,
        archive: Archive,
        before: Judged | None,
        evidence: frozenset[tuple[Place, int]],
    ) -> frozenset[Place]:
        """Return the journals that were evidence and are not: a date is not cleaner without them.

        They stay named until they come back, or are forgotten with their date.
        """
        if before is None:
            return frozenset()
        known = {place for place, _ in before.evidence} | before.absent
        forgotten = {place for f in archive.forgotten.values() for place in f.seals}
        return frozenset(known - {place for place, _ in evidence} - forgotten)

    def read(self, archive: Archive, place: Place, folder: int) -> list[Row] | None:
        return archive.rows(place, folder)

    def classify(self, archive: Archive, sightings: list[tuple[Place, Row]], order: Order) -> str:
        """Return the class of one copy."""
        legs = [row.leg for _, row in sightings]
        if "received" not in legs:
            return "unexpected"
        unmarked = sum(row.leg == "delivered" and not row.marked for _, row in sightings)
        if unmarked > 1:
            return "duplicated"
        if "delivered" in legs or "dead" in legs:
            return "resolved"
        received = sightings[0][1].received
        if "spooled" in legs:
            return "missing" if self.too_old(received, order) else "waiting"
        writer, number = sightings[0][0]
        answered = self.later_journal(archive, writer, number) or self.too_old(received, order)
        return "missing" if answered else "waiting"

    def later_journal(self, archive: Archive, writer: str, number: int) -> bool:
        """Return whether a journal was closed in which the outcome should have been."""
        return any(w == writer and n > number for w, n in archive.seals)

    def too_old(self, received: int, order: Order) -> bool:
        return order.horizon - received > order.spooled_days * DAY

    def clean_before(self, archive: Archive, prior: Record | None) -> set[int]:
        """Return the dates that the last link, or a result that outlived it, calls clean."""
        dates = {date for date, (_, clean) in archive.results.items() if clean}
        return dates | {date for date, said in (prior.dates if prior else {}).items() if said.clean}

    def forget(self, archive: Archive, order: Order, keep_days: int) -> None:
        """Remove the dates before the kept ones; unresolved ones stay for the age of spools."""
        prior = archive.last_night()
        today = order.horizon // DAY
        for date in range(today - keep_days):
            if date in archive.forgotten:
                continue
            said = prior.dates.get(date) if prior else None
            young = date >= today - 1 - order.spooled_days
            if said and said.waiting and young:
                break  # dates go in order
            seals = frozenset(p for p, s in archive.seals.items() if s.closed // DAY <= date)
            evidence = self.evidence(archive, date)
            judged = evidence == (said.evidence if said else frozenset())
            open_copies = said.missing | said.waiting if said else frozenset()
            archive.forgotten[date] = self.statement(seals, open_copies if judged else None)
            for place in seals:
                del archive.seals[place]
            for key in [key for key in archive.segments if key[1] == date]:
                del archive.segments[key]
            archive.merged.pop(date, None)

    def statement(self, seals: frozenset[Place], open_copies: frozenset[int] | None) -> Forgotten:
        return Forgotten(seals, open_copies)


def _went_back(head: Head, seen: Head) -> bool:
    """Return whether `head` is older than one that was seen."""
    return (head.closed, head.open or 0) < (seen.closed, seen.open or 0)
