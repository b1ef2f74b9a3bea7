"""The plan of a night: the dates to judge and the errors, decided from values alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.journal.head_file import number_of
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
from gateway.archive.seals.store import link_path
from gateway.archive.signed_json import Previous
from gateway.archive.verification.holders import away, taken_over

NO_ANSWER: Final = 2


@dataclass(frozen=True, slots=True)
class NewJournal:
    """A journal with a seal that no night judged; `concerns` are the dates of its rows."""

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


@dataclass(frozen=True, slots=True)
class Plan:
    """The dates to judge, oldest first, and the errors that belong to no date.

    `pending` has these dates with the evidence that the night judges them by.
    """

    dates: tuple[str, ...]
    findings: tuple[Finding, ...]
    pending: Mapping[str, DateRecord] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict of one date."""

    status: int
    in_flight: int


def is_new(previous: Night | None, writer: str, start: int, number: int) -> bool:
    """Return whether a journal was judged by no night, by its name alone."""
    known = _seen_by(previous).get(writer)
    return known is None or not known.has(start, number)


def plan_night(previous: Night | None, world: World) -> Plan:
    """Return what a night judges after `previous`; None for the first night.

    It judges a closed date that is kept and newer than the last night, that is not settled, that
    a new journal concerns, or that has no results. Dates before the oldest kept one are over.
    """
    macs = _concerned(world)
    before = {each.date: each for each in previous.dates} if previous else {}
    unsettled = {each.date for each in previous.unsettled} if previous else set()
    oldest = world.oldest
    until = previous.until if previous else ""
    today = world.today.isoformat()
    fresh = {day for day in world.kept if day >= until or day not in world.results}
    asked = fresh | (unsettled & world.there) | macs.keys()
    wanted = {day for day in asked if oldest <= day < today}
    pending = {day: _pending(day, before.get(day), macs.get(day, [])) for day in wanted}
    findings = [
        *_head_findings(previous, world),
        *_missing(previous, world),
        *_forgotten(unsettled, world),
    ]
    if previous is not None:
        findings += _late(world, oldest)
    return Plan(tuple(sorted(wanted)), tuple(findings), pending)


def next_night(  # noqa: PLR0913  # the facts of one night
    previous: Night | None,
    world: World,
    plan: Plan,
    judged: Mapping[str, Judged],
    *,
    at: int,
    spooled_days: int,
) -> Night:
    """Return the link after `previous`, unsigned, when the dates of `judged` have their results.

    A planned date without a verdict stays to be judged: an interrupted run resumes.
    """
    today = world.today.isoformat()
    carried = {each.date: each for each in previous.dates if each.date >= today} if previous else {}
    open_dates = {
        day: _pending(day, carried.get(day), macs)
        for day, macs in _concerned(world).items()
        if day >= today
    }
    done = {day: _judged(record, judged.get(day)) for day, record in plan.pending.items()}
    dates = carried | open_dates | done
    return Night(
        n=previous.n + 1 if previous else 1,
        previous=previous.mac if previous else "",
        at=at,
        until=max(today, previous.until) if previous else today,
        spooled_days=spooled_days,
        heads=_heads(previous, world),
        seen=_seen(previous, world),
        dates=tuple(dates[day] for day in sorted(dates)),
        findings=plan.findings,
    )


def _concerned(world: World) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for journal in world.journals:
        for day in journal.concerns:
            found[day].append(journal.mac)
    return dict(found)


def _pending(day: str, before: DateRecord | None, macs: Sequence[str]) -> DateRecord:
    known = before or DateRecord(day, "", 0, NOT_JUDGED, 0, settled=False)
    evidence, journals = extended(known.evidence, macs), known.journals + len(macs)
    return replace(known, evidence=evidence, journals=journals, settled=False)


def _judged(record: DateRecord, verdict: Judged | None) -> DateRecord:
    if verdict is None:
        return record
    settled = verdict.status != NO_ANSWER and not verdict.in_flight
    return replace(record, status=verdict.status, in_flight=verdict.in_flight, settled=settled)


def _heads(previous: Night | None, world: World) -> tuple[HeadSeen, ...]:
    """Return the heads to compare the next ones with: one that vanished or went back stays."""
    heads = {each.writer: each for each in previous.heads} if previous else {}
    for head in world.heads:
        if head.writer not in heads or not _went_back(heads[head.writer], head):
            heads[head.writer] = head
    return tuple(heads[writer] for writer in sorted(heads) if writer not in world.retired)


def _seen_by(night: Night | None) -> dict[str, Seen]:
    return {each.writer: each for each in night.seen} if night else {}


def _seen(previous: Night | None, world: World) -> tuple[Seen, ...]:
    found = _seen_by(previous)
    by_writer: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for journal in world.journals:
        by_writer[journal.writer].append((journal.start, journal.number))
    for writer, journals in by_writer.items():
        found[writer] = with_judged(found.get(writer), journals, writer)
    return tuple(found[writer] for writer in sorted(found))


def _head_findings(previous: Night | None, world: World) -> list[Finding]:
    """Return the errors about writers that fell silent, and heads that are absent or went back."""
    found: list[Finding] = []
    before = {each.writer: each for each in previous.heads} if previous else {}
    now = {each.writer: each for each in world.heads}
    seen = {each.writer: each for each in _seen(previous, world)}
    for writer in sorted((before.keys() | now.keys() | seen.keys() | world.named) - world.retired):
        place = f"_heads/{writer}.json"
        old, head = before.get(writer), now.get(writer)
        if head is None:
            text = (
                f"{writer} wrote to this archive and has no head: nothing says what it wrote last"
            )
            found.append(error("missing-head", place, text))
        elif old is not None and _went_back(old, head):
            text = f"the head of {writer} states an earlier journal than at the last night"
            found.append(error("old-head", place, text))
        elif _is_silent(previous, old, head, world):
            found.append(error("silent-writer", place, _silence(head, world)))
    return found


def _lost(head: HeadSeen, seen: Seen | None, world: World) -> Previous | None:
    """Return the closed journal of a head if it ended before today and no night saw its seal."""
    link = head.closed
    name = None if link is None else _name_if_due(link, world)
    if name is None or (seen is not None and seen.has(name.start, name.number)):
        return None
    return link


def _silence(head: HeadSeen, world: World) -> str:
    """Return the text about a writer that did not stop, and may hold rows."""
    if (until := _taken_over(head, world)) is not None:
        return away(head.writer, head.closed.closed if head.closed else head.lease.since, until)
    return (
        f"{head.writer} wrote nothing since its last head, and did not stop: start it, or run"
        f" gateway archive retire ARCHIVE {head.writer} --why TEXT"
    )


def _taken_over(head: HeadSeen, world: World) -> int | None:
    """Return when another instance of the gateway of `head` took the lease after it, in us."""
    others = [each.lease for each in world.heads if each.gateway == head.gateway]
    return taken_over(head.lease, others)


def _is_silent(previous: Night | None, old: HeadSeen | None, head: HeadSeen, world: World) -> bool:
    if head.open is None or head.writer in world.live:
        return False
    if head.closed and head.closed.journal == head.open and _taken_over(head, world) is not None:
        return False  # its process was killed, its last journal is here, and another went on
    midnight = day_start(world.today)
    unmoved = old is not None and (old.closed, old.open) == (head.closed, head.open)
    return head.at < midnight or (unmoved and previous is not None and previous.at < midnight)


def _went_back(old: HeadSeen, head: HeadSeen) -> bool:
    """Return whether a head states an earlier journal; a new process may count from the begin."""
    before, after = _last(old), _last(head)
    return after[1] < before[1] and after[0] <= before[0]


def _last(head: HeadSeen) -> tuple[int, int]:
    """Return the start and the number of the last journal that a head names."""
    stem = head.open or (head.closed.journal if head.closed else "")
    name = parse_journal_name(stem)
    return (name.start, name.number) if name else (0, -1)


def _missing(previous: Night | None, world: World) -> list[Finding]:
    """Return an error for the journals of each writer that others follow, or that its head names.

    They reached no night, or their seals are gone although no date was removed with them.
    """
    heads = {each.writer: each for each in world.heads}
    seen = {each.writer: each for each in _seen(previous, world)}
    found: list[Finding] = []
    for writer in sorted(heads.keys() | seen.keys()):
        known, head = seen.get(writer), heads.get(writer)
        numbers = world.numbers.get(writer, ())
        first = head.closed if head else None
        if numbers:
            first = world.before.get(writer)
        if first is not None and world.there and (name := _name_if_due(first, world)):
            text = f"up to {name.number:06} that were closed since {world.oldest}, have no seal"
            found.append(_without_seal(name, text))
        last = known.number if known else -1
        if head is not None and (lost := _lost(head, known, world)):
            text = f"{writer} closed {lost.journal}, which has no seal; its rows are missing"
            found.append(error("missing-seal", link_path(lost).as_posix(), text))
            last = max(last, number_of(lost) - 1)
        gone = gaps(min(numbers), last, numbers) if numbers else ()
        for span in joined([*(known.missing if known else ()), *gone]):
            rest = f" to {span.last:06}" if span.last > span.first else ""
            name = JournalName(writer, known.start if known else 0, span.first)
            found.append(_without_seal(name, f"{span.first:06}{rest}, have no seal"))
    return found


def _without_seal(name: JournalName, which: str) -> Finding:
    text = f"journals of {name.writer}, {which}: rows are missing"
    return error("missing-journal", f"_seals/{name}.json", text)


def _name_if_due(link: Previous, world: World) -> JournalName | None:
    """Return the name of a closed journal whose seal should be there: no date took it along."""
    due = world.oldest <= str(day_of(link.closed)) < str(world.today)
    return parse_journal_name(link.journal) if due else None


def _forgotten(unsettled: set[str], world: World) -> list[Finding]:
    """Return an error for each date that was removed before its copies were resolved."""
    today = world.today.isoformat()
    unresolved = "it was removed with unresolved copies"
    unjudged = "it was removed with rows that no night judged"
    removed = [day for day in sorted(unsettled - world.there) if day < today]
    return [
        *(error("forgotten-unresolved", f"date={day}", unresolved) for day in removed),
        *(error("forgotten-unjudged", f"date={day}", unjudged) for day in sorted(world.forgotten)),
    ]


def _late(world: World, oldest: str) -> list[Finding]:
    """Return an error for each new journal and removed date of which it has rows."""
    return [
        error(
            "late-for-forgotten",
            f"date={day}",
            f"{JournalName(each.writer, each.start, each.number)} has rows of its messages, and its"
            " own rows were removed",
        )
        for each in world.journals
        for day in each.concerns
        if day < oldest
    ]
