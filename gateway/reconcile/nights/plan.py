"""The link of a night: the dates to judge and the errors, decided from values alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.layout import JournalName, day_of, day_start, parse_journal_name
from gateway.archive.night_record import (
    NOT_JUDGED,
    DateRecord,
    HeadSeen,
    Night,
    Seen,
    extended,
    gaps,
    joined,
    with_judged,
)
from gateway.archive.signed_json import Previous
from gateway.archive.verification.holders import away, taken_over
from gateway.archive.verification.writers import missing_head, missing_seal
from gateway.reconcile.by_key import by_key
from gateway.reconcile.report.report import NO_ANSWER

_TOLD_ONCE: Final = ("forgotten-unresolved", "forgotten-unjudged", "late-for-forgotten")


@dataclass(frozen=True, slots=True)
class NewJournal:
    """A journal with a seal that no night judged.

    `concerns` are the dates of its rows, and those kept ones that it proves.
    """

    writer: str
    start: int
    number: int
    mac: str
    concerns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """The archive as a night finds it.

    `kept` are the dates with rows, `results` those with published results, and `live` the writers
    whose process is known to run. `heads` are those that their writers signed. `forgotten` are
    dates that were removed since the last night with rows that no night judged. `named` are the
    writers whose routes are archived. `sealed` are the dates with seals. By writer, `numbers` are
    those of its sealed journals, and `before` is the predecessor of the first of them.
    """

    today: date
    heads: Sequence[HeadSeen]
    journals: Sequence[NewJournal]
    kept: frozenset[str]
    results: frozenset[str]
    retired: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    forgotten: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    sealed: frozenset[str] = frozenset()
    numbers: Mapping[str, Collection[int]] = field(default_factory=dict)
    before: Mapping[str, Previous] = field(default_factory=dict)

    @property
    def there(self) -> frozenset[str]:
        """The dates that were not removed."""
        return self.kept | self.sealed

    @property
    def oldest(self) -> str:
        """The first of them."""
        return min(self.there, default="")


def plan_night(previous: Night, world: World, *, at: int, spooled_days: int) -> Night:
    """Return the link after `previous`, unsigned, in which no date has its verdict yet.

    Its dates before today are to judge: a closed date that is kept and newer than the last night,
    that is not settled, that a new journal concerns, or that has no results. Dates before the
    oldest kept one are over. A date without a verdict stays to be judged: an interrupted run
    resumes. The next run of its day, and the one that resumes, keep the verdicts of a run: its
    process may have died before anybody got them.
    """
    macs = by_key((day, each.mac) for each in world.journals for day in each.concerns)
    unsettled = {each.date for each in previous.unsettled}
    today, oldest = world.today.isoformat(), world.oldest
    fresh = {day for day in world.kept if day >= previous.until or day not in world.results}
    asked = fresh | (unsettled & world.there) | macs.keys()
    wanted = {day for day in asked if oldest <= day < today or (day >= today and day in macs)}
    before = {each.date: each for each in previous.dates}
    repeated = previous.until >= today or previous.interrupted
    dates = {
        day: each for day, each in before.items() if day >= today or (repeated and each.settled)
    }
    dates |= {day: _pending(day, before.get(day), macs.get(day, ())) for day in wanted}
    chains = _seen(previous, world)
    seen = {writer: own[-1] for writer, own in chains.items()}
    findings = [
        *_writer_errors(previous, seen, world),
        *_missing_journals(seen, world),
        *_removed_dates(unsettled, world),
    ]
    if previous.n:
        findings += _late_for_removed(world)
    if repeated:  # no night finds them twice
        told = (each for each in previous.findings if each.rule in _TOLD_ONCE)
        findings += (each for each in told if each not in findings)
    return Night(
        n=previous.n + 1,
        previous=previous.mac,
        at=at,
        until=max(today, previous.until),
        spooled_days=spooled_days,
        heads=_heads(previous, world),
        seen=tuple(each for writer in sorted(chains) for each in chains[writer]),
        dates=tuple(dates[day] for day in sorted(dates)),
        findings=tuple(findings),
    )


def with_verdict(night: Night, day: str, status: int, in_flight: int) -> Night:
    """Return the link with the verdict of one of its dates."""
    settled = status != NO_ANSWER and not in_flight
    records = {each.date: each for each in night.dates}
    judged = replace(records[day], status=status, in_flight=in_flight, settled=settled)
    return replace(night, dates=tuple((records | {day: judged}).values()))


def _pending(day: str, before: DateRecord | None, macs: Sequence[str]) -> DateRecord:
    known = before or DateRecord(day, "", 0, NOT_JUDGED, 0, settled=False)
    evidence, journals = extended(known.evidence, macs), known.journals + len(macs)
    return replace(known, evidence=evidence, journals=journals, settled=False)


def _heads(previous: Night, world: World) -> tuple[HeadSeen, ...]:
    """Return the heads to compare the next ones with: one that vanished or went back stays."""
    heads = {each.writer: each for each in previous.heads}
    for head in world.heads:
        if head.writer not in heads or not _went_back(heads[head.writer], head):
            heads[head.writer] = head
    return tuple(heads[writer] for writer in sorted(heads) if writer not in world.retired)


def _seen(previous: Night, world: World) -> dict[str, list[Seen]]:
    """Return the chains of each writer, the one that goes on last."""
    found = by_key((each.writer, each) for each in previous.seen)
    new = by_key((each.writer, (each.start, each.number)) for each in world.journals)
    for writer, journals in new.items():
        found[writer] = with_judged(found.get(writer, ()), journals, writer)
    return found


def _writer_errors(previous: Night, seen: Mapping[str, Seen], world: World) -> Iterator[Finding]:
    """Yield the errors about writers that fell silent, and heads that are absent or went back."""
    before = {each.writer: each for each in previous.heads}
    now = {each.writer: each for each in world.heads}
    for writer in sorted((before.keys() | now.keys() | seen.keys() | world.named) - world.retired):
        place = f"_heads/{writer}.json"
        old, head = before.get(writer), now.get(writer)
        if head is None:
            yield missing_head(writer)
        elif old is not None and _went_back(old, head):
            text = f"the head of {writer} states an earlier journal than at the last night"
            yield error("old-head", place, text)
        elif text := _silence(previous.at, old, head, world):
            yield error("silent-writer", place, text)


def _silence(before: int, old: HeadSeen | None, head: HeadSeen, world: World) -> str:
    """Return the text about a writer that did not stop, and may hold rows; empty for another.

    The last night was at `before`, and found the head `old`.
    """
    if head.open is None or head.writer in world.live:
        return ""
    others = [each.lease for each in world.heads if each.gateway == head.gateway]
    until = taken_over(head.lease, others)  # by another instance
    if head.closed and head.closed.journal == head.open and until is not None:
        return ""  # its process was killed, its last journal is here, and another went on
    midnight = day_start(world.today)
    unmoved = old is not None and (old.closed, old.open) == (head.closed, head.open)
    if head.at >= midnight and not (unmoved and before < midnight):
        return ""
    if until is not None:
        return away(head.writer, head.closed.closed if head.closed else head.lease.since, until)
    return (
        f"{head.writer} wrote nothing since its last head, and did not stop: start it, or run"
        f" gateway archive retire ARCHIVE {head.writer} --why TEXT"
    )


def _went_back(old: HeadSeen, head: HeadSeen) -> bool:
    """Return whether a head states an earlier journal; a new process may count from the begin."""
    before, after = _last(old), _last(head)
    return after[1] < before[1] and after[0] <= before[0]


def _last(head: HeadSeen) -> tuple[int, int]:
    """Return the start and the number of the last journal that a head names."""
    stem = head.open or (head.closed.journal if head.closed else "")
    name = parse_journal_name(stem)
    return (name.start, name.number) if name else (0, -1)


def _missing_journals(seen: Mapping[str, Seen], world: World) -> Iterator[Finding]:
    """Yield an error for the journals of each writer that others follow, or that its head names.

    They reached no night, or their seals are gone although no date was removed with them.
    """
    closed = {each.writer: each.closed for each in world.heads}
    for writer in sorted(closed.keys() | seen.keys()):
        known, link = seen.get(writer, Seen(writer, 0, -1)), closed.get(writer)
        numbers = world.numbers.get(writer, ())
        first = world.before.get(writer) if numbers else link
        if world.there and (name := _name_if_due(first, world)):
            text = f"up to {name.number:06} that were closed since {world.oldest}, have no seal"
            yield _without_seal(name, text)
        last, name = known.number, _name_if_due(link, world)
        if link and name and not known.has(name.start, name.number):
            yield missing_seal(writer, link)
            last = max(last, name.number - 1)
        gone = gaps(min(numbers), last, numbers) if numbers else ()
        for span in joined([*known.missing, *gone]):
            rest = f" to {span.last:06}" if span.last > span.first else ""
            name = JournalName(writer, known.start, span.first)
            yield _without_seal(name, f"{span.first:06}{rest}, have no seal")


def _without_seal(name: JournalName, which: str) -> Finding:
    text = f"journals of {name.writer}, {which}: rows are missing"
    return error("missing-journal", f"_seals/{name}.json", text)


def _name_if_due(link: Previous | None, world: World) -> JournalName | None:
    """Return the name of a closed journal whose seal should be there: no date took it along."""
    if link is None or not world.oldest <= str(day_of(link.closed)) < str(world.today):
        return None
    return parse_journal_name(link.journal)


def _removed_dates(unsettled: set[str], world: World) -> Iterator[Finding]:
    """Yield an error for each date that was removed before its copies were resolved."""
    for day in sorted(unsettled - world.there):
        if day < str(world.today):
            text = "it was removed with unresolved copies"
            yield error("forgotten-unresolved", f"date={day}", text)
    for day in sorted(world.forgotten):
        text = "it was removed with rows that no night judged"
        yield error("forgotten-unjudged", f"date={day}", text)


def _late_for_removed(world: World) -> Iterator[Finding]:
    """Yield an error for each new journal and removed date of which it has rows."""
    oldest = world.oldest
    for each in world.journals:
        name = JournalName(each.writer, each.start, each.number)
        text = f"{name} has rows of its messages, and its own rows were removed"
        removed = (day for day in each.concerns if day < oldest)
        yield from (error("late-for-forgotten", f"date={day}", text) for day in removed)
