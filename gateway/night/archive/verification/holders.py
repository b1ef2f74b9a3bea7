"""The instances of one gateway: which was active when, by the leases and times in their seals.

The times are those of several clocks, which nothing compares: an overlap is what they state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from gateway.archive.findings import Finding, error
from gateway.archive.layout import SECOND, is_replay
from gateway.archive.signed_json import Term
from gateway.clock import moment
from gateway.night.archive.seals.seal import HandedOver, Seal
from gateway.night.archive.seals.store import seal_path


@dataclass(frozen=True, slots=True)
class Holder:
    """An instance, and a time in which it was active; `lease` is 0 without a lease.

    It is active while it writes journals, also without a message, and until another instance takes
    the next lease. `overlap` is the time for which targets took copies from another instance beside
    it, at its begin. Units: microseconds since 1970-01-01 UTC.
    """

    gateway: str
    writer: str
    lease: int
    begin: int
    end: int
    overlap: int = 0


def holders(seals: Iterable[Seal], begin: int, end: int) -> list[Holder]:
    """Return the holders of each gateway with several instances, or with a lease, by time.

    A turn is cut at `begin` and `end`.
    """
    found: list[Holder] = []
    within = (seal for seal in seals if seal.opened < end and seal.closed >= begin)
    for own in _by_gateway(within, handed=False):
        if len({seal.writer for seal in own}) > 1 or own[-1].lease.number:
            turns = _turns(sorted(own, key=lambda seal: seal.opened))
            found += (
                replace(each, begin=max(each.begin, begin), end=min(each.end, end))
                for each in turns
            )
    return found


def lease_findings(seals: Iterable[Seal]) -> Iterator[Finding]:
    """Yield the findings about leases that do not rise, and about two holders at once."""
    every = list(seals)
    for own in _by_gateway(every, handed=False):
        yield from _order_findings(own)
    for own in _by_gateway(every, handed=True):
        yield from _overlap_findings(own)


def taken_over(lease: Term, others: Iterable[Term]) -> int | None:
    """Return when the next of the `others` was taken, of one gateway; None when none was.

    Units: microseconds since 1970-01-01 UTC.
    """
    later = (each.since for each in others if each.number > lease.number > 0)
    return min(later, default=None)


def away(writer: str, begin: int, end: int) -> str:
    """Return the text about an instance whose last journal has not come back."""
    first, last = moment(begin), moment(end)
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return (
        f"{writer} holds {first:%Y-%m-%d %H:%M:%S} to {until} UTC; its disk is away: start it with"
        f" its disk, or run gateway archive retire ARCHIVE {writer} --why TEXT"
    )


def _by_gateway(seals: Iterable[Seal], *, handed: bool) -> Iterator[list[Seal]]:
    """Yield the seals of each gateway, by begin; if `handed`, of journals with deliveries alone."""
    found: dict[str, dict[str, Seal]] = defaultdict(dict)
    for seal in seals:
        if not is_replay(seal.writer) and (seal.handed is not None or not handed):
            found[seal.gateway][seal.journal] = seal
    for gateway in sorted(found):
        yield sorted(found[gateway].values(), key=lambda seal: _times(seal).first)


def _turns(own: Sequence[Seal]) -> Iterator[Holder]:
    handed: dict[str, int] = {}  # by writer: when targets took its last copy
    leases = {seal.lease for seal in own}
    for (writer, lease), group in groupby(own, key=lambda seal: (seal.writer, seal.lease.number)):
        turn = list(group)
        begin, end = turn[0].opened, max(each.closed for each in turn)
        if (taken := taken_over(turn[0].lease, leases)) is not None:
            end = max(begin, min(end, taken))
        overlap = 0
        if times := [each.handed for each in turn if each.handed]:
            first, last = min(each.first for each in times), max(each.last for each in times)
            other = max((at for each, at in handed.items() if each != writer), default=0)
            overlap = max(0, min(other, last) - first)
            handed[writer] = max(last, handed.get(writer, 0))
        yield Holder(turn[0].gateway, writer, lease, begin, end, overlap)


def _order_findings(own: Sequence[Seal]) -> Iterator[Finding]:
    """Yield an error for a number that two instances state, and for one that does not rise."""
    leases = {(seal.lease.number, seal.writer): seal for seal in reversed(own) if seal.lease.number}
    for (one, first), (other, second) in pairwise(sorted(leases)):
        earlier, later = leases[one, first], leases[other, second]
        if one == other:
            text = f"{first} and {second} both wrote under lease {one}"
        elif later.lease.since + later.lease.seconds * SECOND < earlier.lease.since:
            text = f"lease {other} of {second} began before lease {one} of {first}"
        else:
            continue
        yield error("lease-order", seal_path(later).as_posix(), f"{text}: lease numbers must rise")
    # The numbers of two chains say nothing about their order: a new machine may begin at 0.
    by_journal = {seal.journal: seal for seal in own}
    for later in own:
        before = by_journal.get(later.previous.journal) if later.previous else None
        if before and later.lease.number < before.lease.number:
            text = f"{later.writer} wrote under lease {later.lease.number} after lease"
            text += f" {before.lease.number}: lease numbers must rise"
            yield error("lease-order", seal_path(later).as_posix(), text)


def _overlap_findings(own: Sequence[Seal]) -> Iterator[Finding]:
    """Yield an error for each pair of turns whose overlap is longer than the lease.

    A frozen instance may get answers when it wakes up: they prove no overlap.
    """
    last: dict[str, Seal] = {}
    told: set[frozenset[tuple[str, int]]] = set()
    for seal in own:
        for other in (each for writer, each in last.items() if writer != seal.writer):
            pair = frozenset((each.writer, each.lease.number) for each in (seal, other))
            begin, end = _times(seal).first, min(_times(seal).last, _times(other).sure)
            if end - begin > other.lease.seconds * SECOND and pair not in told:
                told.add(pair)
                span = f"{moment(begin):%Y-%m-%d %H:%M:%S} to {moment(end):%H:%M:%S} UTC"
                text = f"{other.writer} and {seal.writer} both handed over from {span}"
                text += f" by their clocks, {_allowed(other.lease)}"
                yield error("two-holders", seal_path(seal).as_posix(), text)
        known = last.get(seal.writer, seal)
        last[seal.writer] = max(known, seal, key=lambda each: _times(each).sure)


def _allowed(lease: Term) -> str:
    if lease.number:
        return f"longer than the {lease.seconds} s of the lease"
    return "and have no lease: one instance of a gateway is active"


def _times(seal: Seal) -> HandedOver:
    """Return when targets took copies, or when a journal without deliveries was written."""
    return seal.handed or HandedOver(seal.opened, seal.closed, seal.closed)
