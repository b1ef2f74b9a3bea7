"""The record of a night: the heads and the journals that it judged, and the dates that it left.

    ARCHIVE/_nights/<n>.json

A record is canonical JSON with the `mac` of a seal, and names the `mac` of its predecessor. Times
are microseconds since 1970-01-01 UTC; dates are YYYY-MM-DD.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.findings import Finding
from gateway.archive.judged_journals import Seen, has_judged
from gateway.archive.layout import NIGHTS, JournalName, parse_journal_name
from gateway.archive.signed_json import NO_TERM, Previous, SignedStatement, Term

if TYPE_CHECKING:  # the gateway itself never loads Arrow
    from gateway.archive.storage import Storage

_NAME: Final = re.compile(r"([1-9]\d*)\.json", re.ASCII)


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

    def went_back(self, before: HeadSeen) -> bool:
        """Return whether it states an earlier journal than `before`, an older head, did.

        A new process may count from the begin.
        """
        (old_start, old_number), (start, number) = before._last, self._last
        return number < old_number and start <= old_start

    @property
    def _last(self) -> tuple[int, int]:
        """The start and the number of the last journal that it names."""
        stem = self.open or (self.closed.journal if self.closed else "")
        name = parse_journal_name(stem)
        return (name.start, name.number) if name else (0, -1)


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
    seen: tuple[Seen, ...] = ()  # the processes of a writer by time
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
        return has_judged(self.seen, journal)


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
