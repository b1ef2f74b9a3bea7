"""The record of a night: the heads and the journals that it judged, and the dates that it left.

    ARCHIVE/_nights/<n>.json

A record is canonical JSON with the `mac` of a seal, and names the `mac` of its predecessor. Times
are microseconds since 1970-01-01 UTC; dates are YYYY-MM-DD.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.findings import Finding
from gateway.archive.layout import NIGHTS, JournalName
from gateway.archive.signed_json import NO_TERM, Previous, SignedStatement, Term

if TYPE_CHECKING:  # the gateway itself never loads Arrow
    from gateway.archive.storage import Storage

_NAME: Final = re.compile(r"([1-9]\d*)\.json", re.ASCII)

_MAX_CHAINS: Final = 50  # of a writer, the newest
_NO_START: Final = 1 << 62  # microseconds: later than every process

SPOOLED_DAYS: Final = 7  # age of a spooled copy without an outcome, after which it is missing


@dataclass(frozen=True, slots=True)
class HeadSeen:
    """The head of a writer as a night saw it; `open` is None after a clean stop.

    The `gateway` is that of the writer, which may have other instances.
    """

    writer: str
    closed: Previous | None
    open: str | None
    at: int
    gateway: str = ""
    lease: Term = NO_TERM


@dataclass(frozen=True, slots=True)
class Span:
    """Numbers of journals, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A chain of a writer, and its judged journals: all up to `number` but the `missing` ones.

    `start` is that of the process that wrote the last one.
    """

    writer: str
    start: int
    number: int
    missing: tuple[Span, ...] = ()

    def has(self, start: int, number: int) -> bool:
        """Return whether a journal was judged; a later process may count from the begin again."""
        if number > self.number or (start > self.start and number <= self.number):
            return False
        return not any(span.first <= number <= span.last for span in self.missing)


@dataclass(frozen=True, slots=True)
class DateRecord:
    """A date that a night judged, or that is not settled.

    `evidence` is the digest of the seals of the journals that concern it, in the order in which
    nights read them; `journals` counts them. `status` is the exit status of its verdict, and
    `NOT_JUDGED` before the first one.
    """

    date: str
    evidence: str
    journals: int
    status: int
    in_flight: int
    settled: bool


NOT_JUDGED: Final = -1
_NO_ANSWER: Final = 2  # an exit status: the run had judged the date, and found no answer


@dataclass(frozen=True, slots=True)
class Night(SignedStatement):
    """One link of the chain; `previous` is the `mac` of night `n - 1`, empty for the first.

    All dates before `until` were judged, or are in `dates`.
    """

    n: int
    previous: str
    at: int
    until: str
    spooled_days: int
    heads: tuple[HeadSeen, ...] = ()
    seen: tuple[Seen, ...] = ()  # those of a writer by time
    dates: tuple[DateRecord, ...] = ()
    findings: tuple[Finding, ...] = ()  # that belong to no date

    @property
    def unsettled(self) -> tuple[DateRecord, ...]:
        """The dates that the next night judges again."""
        return tuple(each for each in self.dates if not each.settled)

    @property
    def interrupted(self) -> bool:
        """Whether its run ended before it had judged all dates."""
        left = (each for each in self.unsettled if not each.in_flight and each.date < self.until)
        return any(each.status != _NO_ANSWER for each in left)

    def has_judged(self, journal: JournalName) -> bool:
        """Return whether this night or an earlier one judged the journal of this name."""
        writer, start, number = journal
        chain = chain_of([each for each in self.seen if each.writer == writer], start)
        return chain is not None and chain.has(start, number)


NO_NIGHT: Final = Night(0, "", 0, "", 0)  # before the first one


def night_path(number: int) -> Path:
    """Return the path of a record in its archive."""
    return NIGHTS / f"{number}.json"


def night_numbers(storage: Storage) -> list[int]:
    """Return the numbers of the records, sorted.

    Raises:
        OSError: the archive cannot be read.
    """
    found = map(_NAME.fullmatch, storage.names(NIGHTS))
    return sorted(int(match[1]) for match in found if match)


def extended(evidence: str, macs: Iterable[str]) -> str:
    """Return the digest of `evidence` and of further seals, in any order of theirs."""
    found = evidence
    for mac in sorted(macs):
        found = hashlib.sha256(f"{found}{mac}".encode()).hexdigest()
    return found


def with_judged(
    chains: Sequence[Seen], journals: Sequence[tuple[int, int]], writer: str
) -> list[Seen]:
    """Return the `chains` of a writer with further judged journals, each a start and a number.

    A later process that counts from the begin again, as with a new buffer, begins a chain.
    """
    firsts = {number: start for start, number in sorted(journals, reverse=True)}
    again = min(
        (start for start, number in journals if _counts_again(chains, firsts, start, number)),
        default=_NO_START,
    )
    older = [each for each in journals if each[0] < again]
    found = [
        _extended(chain, [each for each in older if chain_of(chains, each[0]) is chain], writer)
        for chain in chains or (None,)
    ]
    newer = [each for each in journals if each[0] >= again]
    return [*found, *([_extended(None, newer, writer)] if newer else ())][-_MAX_CHAINS:]


def chain_of(chains: Sequence[Seen], start: int) -> Seen | None:
    """Return the chain of the journals of the process that began at `start`, by last starts."""
    return next((each for each in chains if start <= each.start), chains[-1] if chains else None)


def _counts_again(
    chains: Sequence[Seen], firsts: Mapping[int, int], start: int, number: int
) -> bool:
    """Return whether an earlier process wrote a journal of this number; `firsts` are new ones."""
    if not chains:
        return start > firsts[number]
    return start > chains[-1].start and number <= chains[-1].number


def _extended(known: Seen | None, journals: Sequence[tuple[int, int]], writer: str) -> Seen:
    """Return a chain with further journals.

    Numbers below the first one of an archive are not missing: their dates were removed.
    """
    numbers = {number for _, number in journals}
    start = max((start for start, _ in journals), default=0)
    if known is None:
        return Seen(writer, start, max(numbers), gaps(min(numbers), max(numbers), numbers))
    absent = [span for old in known.missing for span in gaps(old.first, old.last, numbers)]
    last = max(known.number, *numbers) if numbers else known.number
    absent += gaps(known.number + 1, last, numbers)
    return Seen(writer, max(known.start, start), last, tuple(absent))


def gaps(first: int, last: int, numbers: Collection[int]) -> tuple[Span, ...]:
    """Return the spans of `first` to `last` without the `numbers`."""
    found: list[Span] = []
    for number in sorted(each for each in numbers if first <= each <= last):
        if number > first:
            found.append(Span(first, number - 1))
        first = number + 1
    return (*found, Span(first, last)) if first <= last else tuple(found)


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the numbers of all `spans` as spans without overlap, in order."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda each: each.first):
        if found and span.first <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(span)
    return found
