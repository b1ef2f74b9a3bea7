"""The link of a night: the dates to judge and the errors, decided only from values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from gateway.archive.judged_journals import Seen, with_judged
from gateway.archive.layout import JournalName, day_of
from gateway.night.archive.night_record import NOT_JUDGED, DateRecord, HeadSeen, Night, extended
from gateway.night.archive.verification.seal_evidence import reach
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.nights.archive_state import ArchiveState
from gateway.night.reconcile.nights.known import Known
from gateway.night.reconcile.nights.writer_findings import (
    TOLD_ONCE,
    night_findings,
)
from gateway.night.reconcile.report.report import NO_ANSWER


@dataclass(frozen=True, slots=True)
class PlannedNight:
    """The link of a night before its verdicts; `today` is the date on which it runs."""

    link: Night
    today: date

    @property
    def closed(self) -> list[DateRecord]:
        """The dates of the link that have ended."""
        return [each for each in self.link.dates if each.date < str(self.today)]

    @property
    def days(self) -> list[date]:
        """The dates to judge."""
        return [date.fromisoformat(each.date) for each in self.closed if not each.settled]


def planned_night(known: Known, spooled_days: int) -> PlannedNight:
    """Return the night after the last known one, with all that was found before its dates.

    Its link has the number and the `mac` of that one: the first link that is written follows it.
    """
    chain = known.chain
    link = plan_night(chain.newest, known.state, at=known.at, spooled_days=spooled_days)
    findings = (*chain.findings, *known.forged, *link.findings)
    link = replace(link, n=chain.last, mac=chain.newest.mac, findings=findings)
    return PlannedNight(link, known.state.today)


def plan_night(previous: Night, state: ArchiveState, *, at: int, spooled_days: int) -> Night:
    """Return the link after `previous`, unsigned, in which no date has its verdict yet.

    Its dates before today are to judge: a closed date that is kept and newer than the last night,
    that is not settled, that a new journal or a new retirement concerns, or that has no results.
    A date that a removal took is over. A date without a verdict stays to be judged: an
    interrupted run resumes. The next run of its day, and the one that resumes, keep the verdicts of
    a run: its process may have died before anybody got them.
    """
    macs = by_key((day, each.mac) for each in state.journals for day in each.concerns)
    unsettled = {each.date for each in previous.unsettled}
    today = state.today.isoformat()
    fresh = {day for day in state.kept if day >= previous.until or day not in state.results}
    asked = fresh | unsettled | macs.keys() | _excused(previous, state)
    closed = {day for day in asked if day < today and not state.was_removed(day)}
    wanted = closed | {day for day in macs if day >= today}
    before = {each.date: each for each in previous.dates}
    repeated = previous.until >= today or previous.interrupted
    dates = {
        day: each for day, each in before.items() if day >= today or (repeated and each.settled)
    }
    dates |= {day: _pending(day, before.get(day), macs.get(day, ())) for day in wanted}
    seen = _seen(previous, state)
    findings = night_findings(previous, seen, state)
    if repeated:  # no night finds them twice
        told = (each for each in previous.findings if each.rule in TOLD_ONCE)
        findings += (each for each in told if each not in findings)
    return Night(
        n=previous.n + 1,
        previous=previous.mac,
        at=at,
        until=max(today, previous.until),
        spooled_days=spooled_days,
        heads=_heads(previous, state),
        seen=tuple(each for writer in sorted(seen) for each in seen[writer]),
        dates=tuple(dates[day] for day in sorted(dates)),
        findings=tuple(findings),
    )


def with_verdict(night: Night, day: str, status: int, in_flight: int) -> Night:
    """Return the link with the verdict of one of its dates."""
    settled = status != NO_ANSWER and not in_flight
    records = {each.date: each for each in night.dates}
    judged = replace(records[day], status=status, in_flight=in_flight, settled=settled)
    return replace(night, dates=tuple((records | {day: judged}).values()))


def _excused(previous: Night, state: ArchiveState) -> set[str]:
    """Return the kept dates since the last sign of a writer that was retired after `previous`.

    Its silence was an error of theirs, and is none any more.
    """
    retired = state.retired.intersection(each.writer for each in previous.heads)
    heads = (each for each in (*previous.heads, *state.heads) if each.writer in retired)
    signs = [reach(each.at, each.at)[0] for each in heads]
    since = str(day_of(min(signs))) if signs else str(state.today)
    return {day for day in state.kept if day >= since}


def _pending(day: str, before: DateRecord | None, macs: Sequence[str]) -> DateRecord:
    known = before or DateRecord(day, "", 0, NOT_JUDGED, 0, settled=False)
    evidence, journals = extended(known.evidence, macs), known.journals + len(macs)
    return replace(known, evidence=evidence, journals=journals, settled=False)


def _heads(previous: Night, state: ArchiveState) -> tuple[HeadSeen, ...]:
    """Return the heads to compare the next ones with: one that vanished or went back stays."""
    heads = {each.writer: each for each in previous.heads}
    for head in state.heads:
        if head.writer not in heads or not head.went_back(heads[head.writer]):
            heads[head.writer] = head
    return tuple(heads[writer] for writer in sorted(heads) if writer not in state.retired)


def _seen(previous: Night, state: ArchiveState) -> dict[str, list[Seen]]:
    """Return the processes of each writer, but those whose journals were removed with their dates.

    The last process of a writer stays.
    """
    found = by_key((each.writer, each) for each in previous.seen)
    new = by_key((each.writer, each) for each in state.journals)
    for writer, journals in new.items():
        names = (JournalName(each.writer, each.start, each.number) for each in journals)
        found[writer] = with_judged(found.get(writer, ()), names)
    for own in found.values():
        own[:-1] = [
            each
            for each in own[:-1]
            if not state.removed.has(JournalName(each.writer, each.start, each.number))
            or (each.writer, each.start) in state.numbers
        ]
    return found
