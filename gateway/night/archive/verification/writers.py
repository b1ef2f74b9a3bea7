"""The writers of an archive by their heads, and the findings about those that lack a part of it.

Every file that names a writer is a witness for it: its head, its seals and its archived routes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, error, warning
from gateway.archive.heads import StoredHead, WriterHead, head_path, newest_head, read_heads
from gateway.archive.layout import JournalName, is_replay
from gateway.archive.routes import routes_files
from gateway.archive.signed_json import Previous, Term
from gateway.archive.storage import LocalStorage, Storage
from gateway.night.archive.retired import Retirement, retirements
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import link_path
from gateway.night.archive.verification.holders import away, taken_over
from gateway.night.archive.verification.seal_evidence import SLACK, EvidenceReader, Period
from gateway.night.archive.verification.waiting import WaitingJournal

FOREVER: Final = 1 << 62  # microseconds


@dataclass(frozen=True)  # no slots, for the cached property
class KnownWriters:
    """The writers that files name; times are microseconds since 1970-01-01 UTC.

    `routes` has the first and the newest time at which rules of a writer came into force. The
    journals of those `in_reach` are in the local folder. The `retired` will not return: what they
    lack is a finding of the dates up to their last sign, and of no later one. Heads that were set
    aside are witnesses for their journals, and for nothing else.
    """

    heads: Sequence[StoredHead]
    routes: Mapping[str, tuple[int, int]]
    in_reach: frozenset[str]
    retired: Mapping[str, Retirement]

    @cached_property
    def expected(self) -> dict[str, WriterHead]:
        """The heads that their writers signed, and that nobody retired, by writer."""
        return {w: head for w, head in self.sound.items() if w not in self.retired}

    @cached_property
    def sound(self) -> dict[str, WriterHead]:
        """The heads that their writers signed, by writer."""
        faulty = {each.writer for each in self.heads if each.current and each.fault}
        present = {each.writer: each.head for each in self.heads if each.current and each.head}
        return {w: head for w, head in present.items() if w not in faulty}

    def note(self, writer: str, since: int, period: Period) -> str | None:
        """Return what a finding adds about a retired writer; None when the period has none.

        `since` is the time after which its rows are not known; it was seen until its head.
        """
        if (retirement := self.retired.get(writer)) is None:
            return ""
        head = self.sound.get(writer)
        seen = max(since, head.at if head else 0)
        return f" (retired: {retirement.why})" if seen >= period.begin else None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that prove journals: the seals around a date, and what the archive has beside them.

    `seals` are those that were read, and `waiting` the journals without one, where their folder is
    readable. `moved` tells whether a writer has another head by now: a gateway that runs goes on
    while its archive is read, and what was missing then may be there. The writers of a `buffered`
    archive keep their heads elsewhere: a new buffer begins a new chain.
    """

    reader: EvidenceReader
    writers: KnownWriters
    seals: Sequence[Seal]
    waiting: Sequence[WaitingJournal]
    moved: Callable[[str, WriterHead | None], bool]
    buffered: bool

    @property
    def known(self) -> set[str]:
        """The stems of the journals that are here."""
        return {*(seal.journal for seal in self.seals), *(str(each.name) for each in self.waiting)}

    def begin_of(self, link: Previous) -> int:
        """Return from when on rows are missing without the journal that `link` names.

        That is the start of its process, unless the chain of another journal of it tells so.
        Units: microseconds.
        """
        name = link.name
        known = name is None or any((seal.writer, seal.start) == name[:2] for seal in self.seals)
        return link.closed if name is None or known else name.start

    def next_start(self, name: JournalName) -> int:
        """Return when the next process of a writer began after that of a journal.

        A seal names its predecessor, also one that was removed with its date.
        Units: microseconds.
        """
        links = [each.previous for each in self.seals if each.writer == name.writer]
        named = (link.name for link in links if link is not None)
        starts = self.reader.starts_of(name.writer) | {each.start for each in named if each}
        return min((each for each in starts if each > name.start), default=FOREVER)

    def leases(self, gateway: str) -> set[Term]:
        """Return the known leases of the instances of a gateway, also of retired ones."""
        found = {each.lease for each in self.seals if each.gateway == gateway}
        heads = self.writers.sound.values()
        return found | {each.lease for each in heads if each.gateway == gateway}

    def followed(self, name: JournalName, gateway: str, lease: Term) -> int:
        """Return when the lease of the process that wrote the journal `name` was over.

        Another process took one then: a process has one lease, from its start on. The `lease` of
        another process of the writer tells whether it had one. The clocks of hosts may differ.
        Units: microseconds.
        """
        if not lease.number or is_replay(name.writer):
            return FOREVER
        later = (each.since for each in self.leases(gateway) if each.since > name.start + SLACK)
        return min(later, default=FOREVER)

    def has_seal(self, stem: str) -> bool:
        """Return whether the journal `stem` is here, or has a seal on any date."""
        return stem in self.known or self.reader.has_name(stem)


NO_WRITERS: Final = KnownWriters((), {}, frozenset(), {})


def known_writers(storage: Storage, folder: Path | None, key: bytes | None) -> KnownWriters:
    """Read all files that name a writer; in the local `folder` of the journals, heads are newer.

    Raises:
        OSError: the archive cannot be read.
    """
    local = read_heads(LocalStorage(folder), key) if folder is not None else []
    paths = {each.path for each in local}
    heads = local + [each for each in read_heads(storage, key) if each.path not in paths]
    routes: dict[str, tuple[int, int]] = {}
    for each in routes_files(storage):
        first, _ = routes.get(each.writer, (each.since, 0))
        routes[each.writer] = (first, each.since)
    retired = retirements(storage, key)
    current = {each.writer: each for each in heads if each.current and each.head}
    # A machine that comes back sets the newest head aside.
    newest = {writer: newest_head(heads, writer) or each for writer, each in current.items()}
    lasts = {writer: each.head.last for writer, each in newest.items() if each.head}
    return KnownWriters(
        heads,
        routes,
        frozenset(each.writer for each in local if each.current),
        {w: each for w, each in retired.items() if w in lasts and lasts[w] == each.journal},
    )


def writer_findings(period: Period, facts: Facts) -> Iterator[Finding]:
    """Yield the findings about all writers in `period`, but those about chains of seals."""
    writers = facts.writers
    for stored in writers.heads:
        if stored.fault:
            yield error("forged-head", stored.path.as_posix(), f"the head {stored.fault}")
    yield from _without_head(period, facts)
    for writer, head in sorted(writers.sound.items()):
        note = writers.note(writer, 0, period)
        found: list[Finding] = []
        if note is not None:
            absent = _absent_journals if writer in writers.in_reach else _absent_seals
            found += absent(writer, head, period, facts)
        newest = newest_head(writers.heads, writer)
        if newest and newest.head and period.has(newest.head.at, FOREVER):  # also when retired
            found += _older_head(writer, newest.head, facts)
        if found and not facts.moved(writer, head):
            yield from (replace(each, text=f"{each.text}{note or ''}") for each in found)
    for stored in writers.heads:
        if stored.head and not stored.current and not stored.fault:
            yield from _lost_machine(stored.path, stored.head, period, facts)


def _lost_machine(path: Path, head: WriterHead, period: Period, facts: Facts) -> Iterator[Finding]:
    """Yield an error where the last journal of a head that was set aside has no seal.

    A machine that comes back may state one that a removal took since. The error belongs to the
    dates from that journal on until a later process began.
    """
    name, link = head.last_name, head.closed
    if head.last is None or facts.reader.removed.has(name):
        return
    begin = name.start
    if link is not None:  # one that is lost may have been the first of its process
        there = facts.reader.exists(link)
        begin = max(begin, link.closed) if there else facts.begin_of(link)
    end = min(facts.next_start(name), facts.followed(name, head.gateway, head.lease))
    note = facts.writers.note(head.writer, head.at, period)
    if note is not None and period.has(begin, end) and not facts.has_seal(str(name)):
        text = f"{head.writer} opened {name}, and went on from another machine without its seal"
        yield error("missing-journal", path.as_posix(), f"{text}; its rows are missing{note}")


def missing_head(writer: str) -> Finding:
    """Return the error about a writer without a head."""
    text = f"{writer} wrote to this archive and has no head: nothing says what it wrote last"
    return error("missing-head", head_path(writer).as_posix(), text)


def missing_seal(writer: str, closed: Previous) -> Finding:
    """Return the error about the journal that the head of a writer names as `closed`."""
    text = f"{writer} closed {closed.journal}, which has no seal; its rows are missing"
    return error("missing-seal", link_path(closed).as_posix(), text)


def _without_head(period: Period, facts: Facts) -> Iterator[Finding]:
    writers = facts.writers
    seen = {seal.writer for seal in facts.seals if period.has(seal.opened, seal.closed)}
    seen |= {writer for writer, (since, _) in writers.routes.items() if since < period.end}
    for writer in sorted(
        seen - {each.writer for each in writers.heads if each.current} - writers.retired.keys()
    ):
        if not facts.moved(writer, None):
            yield missing_head(writer)


def _absent_journals(
    writer: str, head: WriterHead, period: Period, facts: Facts
) -> Iterator[Finding]:
    """Yield a finding for each journal that the head names and that is nowhere."""
    link, opened = head.closed, head.open_name
    yield from _absent_closed(writer, head, period, facts)
    if opened is None or (link is not None and link.journal == head.open):
        return
    begin = opened.start if link is None else max(opened.start, link.closed)
    end = facts.followed(opened, head.gateway, head.lease)
    if period.has(begin, end) and not facts.has_seal(str(head.open)):
        text = f"{writer} opened {head.open}, which is nowhere; its rows are missing"
        yield error("missing-journal", f".journal/{head.open}.open", text)


def _absent_closed(
    writer: str, head: WriterHead, period: Period, facts: Facts
) -> Iterator[Finding]:
    """Yield a finding about the journal that the head names as closed, and that is nowhere."""
    link, opened = head.closed, head.open_name
    if link is None or link.journal in facts.known or facts.reader.exists(link):
        return
    end, name = link.closed, link.name
    unknown = link.digest is None or link.taken
    if unknown and name and opened and opened != name:  # nobody knows its end
        end = min(opened.start, facts.followed(name, head.gateway, head.lease))
    begin, own = facts.begin_of(link), [each for each in facts.seals if each.writer == writer]
    last = max(own, key=lambda seal: seal.closed, default=None)
    stopped = last is not None and last.end is End.STOPPED  # else its chain tells what follows
    if last and name and stopped and last.sequence < name.number - 1:
        begin = min(begin, last.closed)
    if period.has(begin, end):
        yield missing_seal(writer, link)


def _absent_seals(writer: str, head: WriterHead, period: Period, facts: Facts) -> Iterator[Finding]:
    """Yield a finding about a process of which, by the head, a journal should have a seal.

    Its journals are out of reach, and the chain before it may end with a stop.
    """
    name, link = head.open_name, head.closed
    kept = link is not None and not facts.reader.removed.has_closed(link)
    before = link.name if link and kept else None
    if before and (name is None or name == before or name.start != before.start):
        yield from _absent_closed(writer, head, period, facts)  # no chain needs to lead there
    if name is None or name == before or is_replay(writer):
        return
    until = taken_over(head.lease, facts.leases(head.gateway))
    begin, end = name.start, FOREVER if until is None else until
    if not period.has(begin, end) or facts.reader.has_process(name):
        return
    if until is not None:
        text = away(writer, begin, until)
    else:
        text = f"{writer} opened {head.open}, and no journal of that process has a seal"
    weighted = error if begin < period.now else warning
    yield weighted("open-chain", head_path(writer).as_posix(), text)


def _older_head(writer: str, head: WriterHead, facts: Facts) -> Iterator[Finding]:
    """Yield a finding about a head that states less than the archive has."""
    place = head_path(writer).as_posix()
    newest = facts.reader.newest_name(writer)
    if head.last and newest and newest > head.last_name:
        text = f"states {head.last} as the last journal of {writer}"
        yield error("old-head", place, f"{text}, and {newest} has a seal")
    _, since = facts.writers.routes.get(writer, (0, 0))
    if head.open is None and since > head.at:
        text = f"states that {writer} stopped, and {writer} started again after that"
        yield error("old-head", place, f"{text}: rows since then may be missing")
