"""The truth about each date of a world, and the verdicts that the documents allow.

A date *must* be named when rows are absent that somebody's evidence names: docs/reconciliation.md,
"Assumed and proven". It *may* be named while something is open that the documents call a finding
(docs/archive.md, "Verification"). Any other alarm is a false one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gateway.archive.layout import SEALS, SECOND
from tests.nights.model_of_dates.machines import Disk, WrittenJournal, date_text
from tests.nights.model_of_dates.worlds import World, Writer

END = "9999-12-31"
# A journal may have rows of messages that came before it was opened, and waited for their answers.
REACH = 120 * SECOND


@dataclass(frozen=True, slots=True)
class Doubt:
    """The dates `first` to `last` may be named, for a reason."""

    first: str
    last: str
    why: str


@dataclass(frozen=True, slots=True)
class Loss:
    """Rows of a date that are absent, and that evidence names."""

    date: str
    why: str


def losses(world: World) -> Iterator[Loss]:
    for writer in world.writers:
        yield from _absent_rows(world, writer)
        for each in open_and_unreachable(world, writer):
            for day in _dates(each):
                yield Loss(day, f"rows of {each.stem} are on a machine that is not heard")
    for tampering in world.tampered:
        if not tampering.undone:
            for day in sorted(tampering.rows):
                yield Loss(day, tampering.kind)


def _absent_rows(world: World, writer: Writer) -> Iterator[Loss]:
    for each in writer.books:
        if each.archived or each.end == "open" or not witnessed(world, writer, each):
            continue
        seen = date_text(named_open(writer, each).opened)
        for day in _dates(each):
            if writer.retired is None or day <= seen:
                yield Loss(day, f"rows of {each.stem} are absent")


def _dates(journal: WrittenJournal) -> list[str]:
    return sorted({date_text(row) for row in journal.rows})


def open_and_unreachable(world: World, writer: Writer) -> Iterator[WrittenJournal]:
    """The open journal of a living process whose bucket does not answer cannot be read."""
    if world.url and writer.process is not None and writer.process.frozen_since is None:
        journal = writer.process.journal
        if witnessed(world, writer, journal) and date_text(journal.opened) < str(world.today):
            yield journal


def witnessed(world: World, writer: Writer, journal: WrittenJournal) -> bool:
    """Whether the archive has a statement that names the journal, or one before it as open.

    A local head names each journal. The head in a bucket is that of the last upload: it says
    nothing of a process after another instance took the lease. Where a later journal of the chain
    is in the archive, that names its predecessor.
    """
    if not world.url:
        return True
    named = journal.disk.named.get(writer.name)
    if named is not None and named <= journal.index:
        since = writer.books[named]
        if since.run == journal.run or not _taken_between(world, writer, since, journal):
            return True
    later = (each for each in writer.books if each.index > journal.index)
    return any(each.archived and each.disk is journal.disk for each in later)


def _taken_between(
    world: World, writer: Writer, first: WrittenJournal, last: WrittenJournal
) -> bool:
    """Whether another instance had the lease between the processes of two journals."""
    return any(
        first.lease < each.lease < last.lease
        for other in world.writers_by_gateway[writer.gateway]
        for each in other.books
        if other is not writer
    )


def named_open(writer: Writer, journal: WrittenJournal) -> WrittenJournal:
    """The journal that the archive last knew to be open on the disk of `journal`."""
    named = journal.disk.named.get(writer.name)
    return journal if named is None else writer.books[min(named, journal.index)]


def doubts(world: World) -> Iterator[Doubt]:
    for writer in world.writers:
        yield from _absent_journals(world, writer)
        yield from _silence(world, writer)
        yield from _broken_chains(writer)
    if world.removed_up_to > min(stored_dates(world), default=END):
        yield Doubt("", _seen_after_removal(world), "rows came after their dates were removed")
    for each in world.tampered:
        if not each.undone:
            yield Doubt(each.first, each.last, each.kind)


def _seen_after_removal(world: World) -> str:
    """The date on which each writer was seen after the removed dates: chains lead from there."""
    found = [world.removed_up_to]
    for writer in world.writers:
        own = (each for each in writer.books if each.archived)
        later = (each for each in own if date_text(each.last) >= world.removed_up_to)
        found += [date_text(each.opened) for each in list(later)[:1]]
    return max(found)


def stored_dates(world: World) -> Iterator[str]:
    """The dates of which the archive has rows or seals."""
    for folder in (world.bucket, world.bucket / SEALS):
        for path in folder.glob("date=*"):
            yield path.name.removeprefix("date=")


def _absent_journals(world: World, writer: Writer) -> Iterator[Doubt]:
    """From the opening of an absent journal to that of the next one which is there."""
    frozen = writer.process is not None and writer.process.frozen_since is not None
    for each in writer.books:
        here = each.archived or (each.end == "open" and not world.url and not frozen)
        if here:
            continue
        begin = max((own.last for own in writer.books[: each.index] if own.archived), default=0)
        begin = min(begin, each.opened) or each.opened
        if each.end == "open" and writer.process is not None and not frozen:
            begin = each.opened  # a living process: the dates since it opened the journal
        end = min(next_seen(writer, each), _followed(world, writer, each))
        if writer.retired is not None:
            end = min(end, date_text(last_seen(writer)))
        yield Doubt(date_text(begin - REACH), end, f"{each.stem} is absent")


def _followed(world: World, writer: Writer, journal: WrittenJournal) -> str:
    """The date on which another instance took the lease after the process of a journal had it."""
    begins = [
        each.opened
        for other in world.writers_by_gateway[writer.gateway]
        for each in other.books
        if other is not writer and each.lease > journal.lease
    ]
    return date_text(min(begins) + REACH) if begins else END


def next_seen(writer: Writer, journal: WrittenJournal) -> str:
    """The date on which the writer, or another instance, was seen next."""
    own = [each.opened for each in writer.books[journal.index + 1 :] if each.archived]
    return date_text(own[0]) if own else END


def _silence(world: World, writer: Writer) -> Iterator[Doubt]:
    """A writer that ended without a stop, and that no other instance followed."""
    if not writer.dead:
        return
    last = last_seen(writer)
    if writer.books[-1].archived:
        others = [
            each.opened
            for other in world.writers_by_gateway[writer.gateway]
            for each in other.books
            if other is not writer and each.lease > writer.books[-1].lease
        ]
        end = date_text(min(others)) if others else END
    else:
        end = END
    if writer.retired is not None:
        end = min(end, date_text(last))
    first = [each for each in writer.books if each.archived]
    begin = first[-1].opened if first else writer.books[-1].opened
    yield Doubt(date_text(begin - REACH), end, f"{writer.name} is silent")


def last_seen(writer: Writer) -> int:
    """The last time at which the archive has seen the writer."""
    last = writer.books[-1]
    seen = [each.last for each in writer.books if each.archived]
    return max([named_open(writer, last).opened, *seen])


def _broken_chains(writer: Writer) -> Iterator[Doubt]:
    """A start that could not read the head before it, where that one had not stopped."""
    by_disk: dict[Disk, list[WrittenJournal]] = defaultdict(list)
    for each in writer.books:
        by_disk[each.disk].append(each)
    for before, after in pairwise(by_disk.values()):
        last = before[-1]
        whole = last.end == "stopped" and all(each.archived for each in before)
        if not whole:
            yield Doubt(
                date_text(last.opened - REACH), date_text(after[0].opened), "another machine"
            )
