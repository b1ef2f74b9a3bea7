"""The findings of a night beside its dates: silent writers, missing journals, removed dates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.judged_journals import Seen, gaps, joined
from gateway.archive.layout import JournalName, day_of, day_start, parse_journal_name
from gateway.archive.signed_json import Previous
from gateway.night.archive.night_record import HeadSeen, Night
from gateway.night.archive.verification.holders import away, taken_over
from gateway.night.archive.verification.writers import missing_head, missing_seal
from gateway.night.reconcile.nights.world import World

TOLD_ONCE: Final = ("forgotten-unresolved", "forgotten-unjudged", "late-for-forgotten")


def writer_errors(previous: Night, seen: Mapping[str, Seen], world: World) -> Iterator[Finding]:
    """Yield the errors about writers that fell silent, and heads that are absent or went back."""
    before = {each.writer: each for each in previous.heads}
    now = {each.writer: each for each in world.heads}
    for writer in sorted((before.keys() | now.keys() | seen.keys() | world.named) - world.retired):
        place = f"_heads/{writer}.json"
        old, head = before.get(writer), now.get(writer)
        if head is None:
            yield missing_head(writer)
        elif old is not None and went_back(old, head):
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


def went_back(old: HeadSeen, head: HeadSeen) -> bool:
    """Return whether a head states an earlier journal; a new process may count from the begin."""
    before, after = _last(old), _last(head)
    return after[1] < before[1] and after[0] <= before[0]


def _last(head: HeadSeen) -> tuple[int, int]:
    """Return the start and the number of the last journal that a head names."""
    stem = head.open or (head.closed.journal if head.closed else "")
    name = parse_journal_name(stem)
    return (name.start, name.number) if name else (0, -1)


def missing_journals(seen: Mapping[str, Seen], world: World) -> Iterator[Finding]:
    """Yield an error for the journals of each writer that others follow, or that its head names.

    They reached no night, or their seals are gone although no date was removed with them.
    """
    closed = {each.writer: each.closed for each in world.heads}
    for writer in sorted(closed.keys() | seen.keys()):
        known, link = seen.get(writer, Seen(writer, 0, -1)), closed.get(writer)
        numbers = world.numbers.get(writer, ())
        first = world.before.get(writer) if numbers else link
        if world.there and (name := _name_if_due(first, world)):
            yield _without_seal(name, f"up to {name.number:06}, have no seal")
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


def removed_dates(unsettled: set[str], world: World) -> Iterator[Finding]:
    """Yield an error for each date that was removed before its copies were resolved."""
    for day in sorted(unsettled - world.there):
        if day < str(world.today):
            text = "it was removed with unresolved copies"
            yield error("forgotten-unresolved", f"date={day}", text)
    for day in sorted(world.forgotten):
        text = "it was removed with rows that no night judged"
        yield error("forgotten-unjudged", f"date={day}", text)


def late_for_removed(world: World) -> Iterator[Finding]:
    """Yield an error for each new journal and removed date of which it has rows."""
    oldest = world.oldest
    for each in world.journals:
        name = JournalName(each.writer, each.start, each.number)
        text = f"{name} has rows of its messages, and its own rows were removed"
        removed = (day for day in each.concerns if day < oldest)
        yield from (error("late-for-forgotten", f"date={day}", text) for day in removed)
