"""The findings about the chains of all writers in a period, and when they did not run.

A finding belongs to a period when the journals that it is about can have rows of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from gateway.archive.findings import Finding, error, warning
from gateway.archive.layout import is_replay
from gateway.archive.signed_json import Previous, Term
from gateway.clock import moment
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import link_path, seal_path
from gateway.night.archive.segments.journal_facts import CUT
from gateway.night.archive.verification.holders import away, lease_findings, taken_over
from gateway.night.archive.verification.lineage import contradictions, is_stopped, lineages
from gateway.night.archive.verification.seal_evidence import Period
from gateway.night.archive.verification.writers import FOREVER, Facts
from gateway.terminal.units import counted


@dataclass(frozen=True, slots=True)
class NotRunning:
    """A time in which no process of a gateway ran, in microseconds since 1970-01-01 UTC."""

    gateway: str
    begin: int
    end: int


def chain_findings(period: Period, facts: Facts) -> tuple[list[Finding], list[NotRunning]]:
    """Return the findings about all chains in `period`, and the times without a process."""
    seals = facts.seals
    by_writer: dict[str, list[Seal]] = defaultdict(list)
    for seal in seals:
        by_writer[seal.writer].append(seal)
    findings = list(_waiting_findings(period, facts))
    running: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for writer, own in sorted(by_writer.items()):
        chain = _Chain(writer, lineages(own), period, facts, facts.leases(own[0].gateway))
        findings += chain.findings()
        if not is_replay(writer):
            running[own[0].gateway] += [*chain.running(), *chain.unread()]
    for each in facts.waiting:
        if not is_replay(each.name.writer):
            running[each.gateway].append((each.opened, FOREVER))
    for gateway, begin, end in _unread_heads(facts):
        running[gateway].append((begin, end))
    findings += lease_findings(seal for seal in seals if period.has(seal.opened, seal.closed))
    return findings, [each for name in running for each in _pauses(name, running[name], period)]


def _unread_heads(facts: Facts) -> Iterator[tuple[str, int, int]]:
    """Yield gateway, begin and end of each last journal that a head names and that was not read."""
    heads = [(each.head, each.current) for each in facts.writers.heads if each.head]
    for head, is_current in heads:
        name, link = head.last_name, head.closed
        if head.last is None or is_replay(head.writer) or facts.has_seal(str(name)):
            continue
        others = (each.lease for each, _ in heads if each.gateway == head.gateway)
        end = link.closed if link and head.open is None else taken_over(head.lease, others)
        if end is None:
            end = FOREVER if is_current else facts.next_start(name)
        begin = link.closed if link and facts.reader.has_process(name) else name.start
        yield head.gateway, min(begin, end), end


def _pauses(
    gateway: str, running: Sequence[tuple[int, int]], period: Period
) -> Iterator[NotRunning]:
    """Yield the times in the period in which no instance ran, after the first that did.

    An instance may have run while its journal is not read.
    """
    ordered = sorted(running)
    end = ordered[0][1]
    for begin, last in [*ordered[1:], (FOREVER, FOREVER)]:
        first, until = max(end, period.begin), min(begin, period.end)
        if first < until:
            yield NotRunning(gateway, first, until)
        end = max(end, last)


@dataclass(frozen=True, slots=True)
class _Chain:
    writer: str
    lineages: Sequence[Sequence[Seal]]
    period: Period
    facts: Facts
    leases: Collection[Term]  # of all instances of its gateway

    def findings(self) -> Iterator[Finding]:
        yield from self._begin(self.lineages[0][0])
        for number in range(1, len(self.lineages)):
            yield from self._break(self._before(number), self.lineages[number])
        for lineage in self.lineages:
            for earlier, later, fault in contradictions(lineage):
                if self.period.has(earlier.opened, later.closed):
                    yield error("forked-chain", _place(later), f"{later.journal} {fault}")
            yield from self._taken(lineage)
            for seal in lineage:
                if self.period.has(seal.opened, seal.closed):
                    yield from _own_findings(seal)
        lasts = (each[-1] for each in self.lineages)
        yield from self._end(max(lasts, key=lambda seal: seal.closed))

    def running(self) -> Iterator[tuple[int, int]]:
        """Yield the begin and the end of each process; one that did not stop runs on."""
        seals = [seal for lineage in self.lineages for seal in lineage]
        for _, group in groupby(seals, key=lambda seal: seal.start):
            own = list(group)
            goes_on = own[-1] is seals[-1] and not is_stopped(own[-1])
            end, over = own[-1].closed, taken_over(own[-1].lease, self.leases)
            if goes_on and over is None:
                end = FOREVER
            elif goes_on and own[-1].end is End.CLOSED:
                end = max(end, over or 0)  # the journal that it opened then was not read
            yield own[0].opened, end

    def unread(self) -> Iterator[tuple[int, int]]:
        """Yield the times of journals between two seals that were not read."""
        for earlier, later in pairwise(seal for lineage in self.lineages for seal in lineage):
            link = later.previous
            if link is not None and link.journal == earlier.journal and not link.taken:
                continue
            if earlier.end is End.CLOSED:  # its process went on
                yield earlier.closed, later.opened
            elif link is not None and not self.facts.has_seal(link.journal):
                end = link.closed if link.digest and not link.taken else later.opened
                yield min(self.facts.begin_of(link), end), end

    def _begin(self, first: Seal) -> Iterator[Finding]:
        """Check the predecessor of the first seal that was read."""
        link = first.previous
        if link is None or self.facts.reader.exists(link):
            return
        if self.facts.reader.removed.has_closed(link):
            if self.period.has(link.closed, first.closed):
                text = "the chain begins with it: the retention removed the journals before it"
                yield warning("chain-begins", _place(first), f"{first.journal}: {text}")
        elif self.period.has(self._lost_from(link, first), self._end_of(link, first)):
            yield self._missing(link, first)

    def _lost_from(self, link: Previous, first: Seal) -> int:
        """Return from when on rows are missing before the first seal that was read.

        All journals of the process that `link` names are, where no earlier seal is there, but those
        that a removal took. With a number that is missing between these and that journal, nobody
        knows when an earlier process began.
        """
        name, reader = link.name, self.facts.reader
        if name is None or reader.first_name(self.writer) != first.link.name:
            return link.closed
        begin, last, kept = name.start, reader.removed.last.get(self.writer), reader.removed.begin
        if last is not None and last.start == name.start:
            begin = max(begin, kept)
        elif name.number > 0 and (last is None or last.number != name.number - 1):
            begin = kept
        return min(begin, link.closed)

    def _before(self, number: int) -> Sequence[Seal]:
        """Return the lineage that one of this number goes on from: by its link, or by time."""
        link, earlier = self.lineages[number][0].previous, self.lineages[:number]
        name = link.name if link is not None else None
        of_process = (
            lineage
            for lineage in reversed(earlier)
            if name is not None and any(seal.start == name.start for seal in lineage)
        )
        return next(of_process, earlier[-1])

    def _break(self, earlier: Sequence[Seal], later: Sequence[Seal]) -> Iterator[Finding]:
        """Return the finding about the begin of a second lineage."""
        last, first = max(earlier, key=lambda seal: (seal.closed, seal.sequence)), later[0]
        known = {seal.journal for lineage in self.lineages for seal in lineage}
        link, begin, end = first.previous, last.closed, first.opened
        is_back = link and link.taken and link.journal in {seal.journal for seal in earlier}
        if is_back and last.closed <= first.opened:  # with what its machine wrote after that head
            yield from self._after_taken(last, first)
            return
        name = link.name if link is not None else None
        if link and name and is_stopped(last) and name.number == last.sequence + 1:
            begin = max(begin, self.facts.begin_of(link))  # nothing was written between
        if link and link.digest and not link.taken:
            end = link.closed  # nor after it
        elif link and link.journal not in known:
            end = self._end_of(link, first)
            if end < begin:  # it was over before that lineage, of another machine
                begin = min(self.facts.begin_of(link), end)
        if not self.period.has(begin, end):
            return
        if first.opened < last.closed or (link is not None and link.journal in known):
            text = f"{first.journal} and {last.journal} were written beside each other"
            hint = f"two processes use the name {self.writer}; give each gateway its own name"
            yield error("forked-chain", _place(first), f"{text}: {hint}")
        elif link is not None and not self.facts.reader.exists(link):
            yield self._missing(link, first)
        else:
            text = f"{first.journal} begins a new chain after {last.journal}"
            if is_stopped(last) and self.facts.buffered:
                yield warning("new-chain", _place(first), f"{text}, which ended with a stop")
            else:
                lost = f"nothing proves that no rows are missing since {_clock(last.closed)}"
                yield error("new-chain", _place(first), f"{text}: {lost}")

    def _taken(self, lineage: Sequence[Seal]) -> Iterator[Finding]:
        """Yield the errors about journals after which another machine may have lost others."""
        for earlier, later in pairwise(lineage):
            if later.previous is not None and later.previous.taken:
                yield from self._after_taken(earlier, later)

    def _after_taken(self, last: Seal, first: Seal) -> Iterator[Finding]:
        if last.end is End.CLOSED and self.period.has(last.closed, first.opened):
            since = f"nothing proves the rows of {self.writer} after {_clock(last.closed)}"
            text = f"{since}: another machine began with {first.journal}"
            yield error("open-chain", _place(first), f"{text}, and that one did not stop")

    def _end(self, last: Seal) -> Iterator[Finding]:
        """Check that the chain reaches the end of the period."""
        begin = self._unproven_from(last)
        if is_stopped(last) or begin >= self.period.end:
            return
        since = f"nothing proves the rows of {self.writer} after {_clock(begin)}"
        if self.writer in self.facts.writers.retired:
            note = self.facts.writers.note(self.writer, begin, self.period)
            if note is not None:
                yield error("open-chain", _place(last), f"{since}{note}")
            return
        if last.end is End.KILLED and is_replay(self.writer):
            return  # a command need not run again; its journal has what it acknowledged
        if (until := taken_over(last.lease, self.leases)) is not None:
            head = self.facts.writers.expected.get(self.writer)
            known = begin > last.closed or (head is not None and head.last == last.journal)
            if not known and self.period.has(last.closed, until):
                yield error("open-chain", _place(last), away(self.writer, last.closed, until))
            return
        if self._continues(last):
            yield warning("open-journal", _place(last), f"{since}: the gateway writes its journal")
        elif self.writer not in self.facts.writers.in_reach and last.closed >= self.period.now:
            yield warning("open-chain", _place(last), f"{since}: the date has not ended")
        else:
            hint = "no seal follows, and no stop; start the gateway, and wait for its seal"
            yield error("open-chain", _place(last), f"{since}: {hint}")

    def _unproven_from(self, last: Seal) -> int:
        """Return when the writer may have written after its last seal: a process ends with it.

        The head tells when the next process began, where that follows this journal.
        """
        head = self.facts.writers.sound.get(self.writer)
        opened = head.open_name if head else None
        if head and head.closed and opened and head.closed.journal == last.journal:
            return last.closed if opened.start == last.start else max(opened.start, last.closed)
        return last.closed

    def _continues(self, last: Seal) -> bool:
        """Return whether a live journal continues the chain, or one that waits before it."""
        own = [each for each in self.facts.waiting if each.name.writer == self.writer]
        stems = {last.journal}
        for each in own:
            if each.previous is not None and each.previous.journal in stems:
                if each.live:
                    return True
                stems.add(str(each.name))
        return False

    def _end_of(self, link: Previous, successor: Seal) -> int:
        """Return when a missing journal had ended: another journal was opened, or a lease taken."""
        name = link.name
        if name is None:
            return successor.opened
        followed = self.facts.followed(name, successor.gateway, successor.lease)
        return min(successor.opened, followed)

    def _missing(self, link: Previous, successor: Seal) -> Finding:
        text = f"{successor.journal} follows {link.journal}, which has no seal"
        return error("missing-seal", link_path(link).as_posix(), f"{text}; its rows are missing")


def _own_findings(seal: Seal) -> Iterator[Finding]:
    """Yield the findings about what the seal states of its journal."""
    for damage in seal.damages:
        rule = "torn-journal" if damage.text == CUT else "damaged-journal"
        yield error(rule, _place(seal), f"{seal.journal}: {damage}: rows are lost")
    if seal.end is End.KILLED and not seal.damages:
        text = f"the process of {seal.journal} was killed; all acknowledged rows are here"
        yield warning("killed-journal", _place(seal), text)
    if seal.lost_values:
        text = f"{seal.journal}: null, as no column fits: {counted(seal.lost_values, 'value')}"
        yield warning("lost-values", _place(seal), text)


def _waiting_findings(period: Period, facts: Facts) -> Iterator[Finding]:
    for each in facts.waiting:
        if not each.live and period.has(each.opened, FOREVER):
            text = (
                "no process holds it, and its rows are in no segment; the start of its gateway"
                " converts it, and so does gateway reconcile"
            )
            yield error("unconverted-journal", f".journal/{each.path.name}", text)


def _place(seal: Seal) -> str:
    return seal_path(seal).as_posix()


def _clock(time: int) -> str:
    return f"{moment(time):%Y-%m-%d %H:%M:%S} UTC"
