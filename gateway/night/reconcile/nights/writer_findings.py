"""The findings of a night beside its dates: silent writers, missing journals, removed dates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.judged_journals import (
    Seen,
    Span,
    as_one,
    gaps,
    has_judged,
    joined,
    newest_chain,
)
from gateway.archive.layout import JournalName, day_of, day_start
from gateway.archive.signed_json import Previous
from gateway.night.archive.night_record import HeadSeen, Night
from gateway.night.archive.removed import Removed
from gateway.night.archive.verification.holders import away, taken_over
from gateway.night.archive.verification.writers import missing_head, missing_seal
from gateway.night.reconcile.by_key import by_key
from gateway.night.reconcile.nights.archive_state import ArchiveState

TOLD_ONCE: Final = ("forgotten-unresolved", "forgotten-unjudged", "late-for-forgotten")


def night_findings(
    previous: Night, seen: Mapping[str, Sequence[Seen]], state: ArchiveState
) -> list[Finding]:
    """Return the errors that belong to no date; `seen` are the processes of each writer."""
    found = [
        *state.removed.findings,
        *writer_errors(previous, seen, state),
        *missing_journals(seen, state),
        *removed_dates({each.date for each in previous.unsettled}, state),
    ]
    return [*found, *late_for_removed(state)] if previous.n else found


def writer_errors(previous: Night, seen: Collection[str], state: ArchiveState) -> Iterator[Finding]:
    """Yield the errors about writers that fell silent, and heads that are absent or went back."""
    before = {each.writer: each for each in previous.heads}
    now = {each.writer: each for each in state.heads}
    for writer in sorted((before.keys() | now.keys() | {*seen} | state.named) - state.retired):
        place = f"_heads/{writer}.json"
        old, head = before.get(writer), now.get(writer)
        if head is None:
            yield missing_head(writer)
        elif old is not None and head.went_back(old):
            text = f"the head of {writer} states an earlier journal than at the last night"
            yield error("old-head", place, text)
        elif text := _silence(previous.at, old, head, state):
            yield error("silent-writer", place, text)


def _silence(before: int, old: HeadSeen | None, head: HeadSeen, state: ArchiveState) -> str:
    """Return the text about a writer that did not stop, and may hold rows; empty for another.

    The last night was at `before`, and found the head `old`.
    """
    if head.open is None or head.writer in state.live:
        return ""
    others = [each.lease for each in state.heads if each.gateway == head.gateway]
    until = taken_over(head.lease, others)  # by another instance
    if head.closed and head.closed.journal == head.open and until is not None:
        return ""  # its process was killed, its last journal is here, and another went on
    midnight = day_start(state.today)
    unmoved = old is not None and (old.closed, old.open) == (head.closed, head.open)
    if head.at >= midnight and not (unmoved and before < midnight):
        return ""
    if until is not None:
        return away(head.writer, head.closed.closed if head.closed else head.lease.since, until)
    return (
        f"{head.writer} wrote nothing since its last head, and did not stop: start it, or run"
        f" gateway archive retire ARCHIVE {head.writer} --why TEXT"
    )


def missing_journals(seen: Mapping[str, Sequence[Seen]], state: ArchiveState) -> Iterator[Finding]:
    """Yield an error for the journals of each writer that others follow, or that its head names.

    They reached no night, or their seals are gone although no removal took them.
    """
    closed = {each.writer: each.closed for each in state.heads}
    sealed = {writer for writer, _ in state.numbers}
    for writer in sorted(closed.keys() | seen.keys()):
        own, link = seen.get(writer, ()), closed.get(writer)
        first = state.before.get(writer) if writer in sealed else link
        if (name := _name_if_due(first, state)) and not has_judged(own, name):
            yield _without_seal(name, f"up to {name.number:06}, have no seal")
        gone, name = _gone(own, state), _name_if_due(link, state)
        if link and name and not has_judged(own, name):
            yield missing_seal(writer, link)
            numbers = {n for (w, _), found in state.numbers.items() for n in found if w == writer}
            known = as_one(newest_chain(own)).number if own else min(numbers, default=name.number)
            gone += [(name.start, each) for each in gaps(known + 1, name.number - 1, numbers)]
        for start, span in gone:
            rest = f" to {span.last:06}" if span.last > span.first else ""
            journal = JournalName(writer, start, span.first)
            yield _without_seal(journal, f"{span.first:06}{rest}, have no seal")


def _gone(own: Sequence[Seen], state: ArchiveState) -> list[tuple[int, Span]]:
    """Return the numbers that have no seal, each with the start of a process.

    They are missing in the newest chain, or the seal of a judged journal has vanished that no
    removal took.
    """
    if not own:
        return []
    newest = newest_chain(own)
    chain, last = as_one(newest), state.removed.last.get(own[0].writer)
    first = last.number + 1 if last and last.start >= newest[0].start else 0
    spans = by_key([(chain.start, each) for each in _from(first, chain.missing)])
    for each in own:
        sealed = state.numbers.get((each.writer, each.start), ())
        first = _first_kept(each, state.removed)
        vanished = [*_from(first, each.missing), *gaps(first, each.number, sealed)]
        spans.setdefault(each.start, []).extend(vanished)
    return [(start, each) for start in sorted(spans) for each in joined(spans[start])]


def _from(first: int, spans: Iterable[Span]) -> list[Span]:
    """Return the numbers of `spans` from `first` on."""
    return [Span(max(each.first, first), each.last) for each in spans if each.last >= first]


def _first_kept(own: Seen, removed: Removed) -> int:
    """Return the first number of a process that no removal took."""
    last = removed.last.get(own.writer)
    if last is None or own.start > last.start:
        return own.first
    return own.number + 1 if own.start < last.start else max(own.first, last.number + 1)


def _without_seal(name: JournalName, which: str) -> Finding:
    text = f"journals of {name.writer}, {which}: rows are missing"
    return error("missing-journal", f"_seals/{name}.json", text)


def _name_if_due(link: Previous | None, state: ArchiveState) -> JournalName | None:
    """Return the name of a closed journal whose seal should be there: no removal took it."""
    if link is None or state.removed.has_closed(link) or day_of(link.closed) >= state.today:
        return None
    return link.name


def removed_dates(unsettled: set[str], state: ArchiveState) -> Iterator[Finding]:
    """Yield an error for each date that was removed before its copies were resolved."""
    for day in sorted(unsettled - state.there):
        if day < str(state.today):
            text = "it was removed with unresolved copies"
            yield error("forgotten-unresolved", f"date={day}", text)
    for day in sorted(state.forgotten):
        text = "it was removed with rows that no night judged"
        yield error("forgotten-unjudged", f"date={day}", text)


def late_for_removed(state: ArchiveState) -> Iterator[Finding]:
    """Yield an error for each new journal and removed date of which it has rows."""
    for each in state.journals:
        name = JournalName(each.writer, each.start, each.number)
        text = f"{name} has rows of its messages, and its own rows were removed"
        removed = filter(state.was_removed, each.concerns)
        yield from (error("late-for-forgotten", f"date={day}", text) for day in removed)
