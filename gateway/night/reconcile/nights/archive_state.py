"""The archive as a night finds it: heads, seals, journals and dates, read before the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from gateway.archive.layout import RECONCILED, JournalName, day_of, days_in
from gateway.archive.signed_json import Previous
from gateway.archive.threads import in_threads
from gateway.night.archive.night_record import HeadSeen, Night
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.removed import NOTHING_REMOVED, Removed, removed
from gateway.night.archive.seals.evidence import ReadEvidence
from gateway.night.archive.seals.seal import End, Seal
from gateway.night.archive.seals.store import seal_days, sealed_journals
from gateway.night.archive.verification.seal_evidence import reach
from gateway.night.archive.verification.waiting import waiting_journals
from gateway.night.archive.verification.writers import known_writers
from gateway.night.reconcile.by_key import by_key


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
class ArchiveState:
    """The archive as a night finds it.

    `kept` are the dates with rows, `results` those with published results, and `live` the writers
    whose process is known to run. `heads` are those that their writers signed. `forgotten` are
    dates that were removed since the last night with rows that no night judged. `named` are the
    writers whose routes are archived. `sealed` are the dates with seals. By writer and start of a
    process, `numbers` are those of its sealed journals. By writer, `before` is the predecessor of
    its first sealed journal. `removed` are the journals that removals took.
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
    numbers: Mapping[tuple[str, int], Collection[int]] = field(default_factory=dict)
    before: Mapping[str, Previous] = field(default_factory=dict)
    removed: Removed = NOTHING_REMOVED

    @property
    def there(self) -> frozenset[str]:
        """The dates that were not removed."""
        return self.kept | self.sealed

    def was_removed(self, day: str) -> bool:
        """Return whether a removal took a date, by its statement."""
        return day not in self.there and day < self.removed.before


def archive_state(
    archive: OpenArchive,
    previous: Night,
    forgotten: frozenset[str] = frozenset(),
    *,
    at: int,
    in_flight: int,
) -> ArchiveState:
    """Return the archive as a night at the time `at` finds it, after `previous`.

    The first rows of a journal may be sightings of copies that were in flight for `in_flight`
    before. Units: microseconds.

    Raises:
        OSError: the archive cannot be read.
    """
    storage, key, read = archive.storage, archive.key, archive.read_seal
    days = seal_days(storage)
    listed = [(day, *each) for day in days for each in sealed_journals(storage, day)]
    journals = [(path, name) for _, path, name in listed]
    ordered = sorted(journals, key=lambda sealed: sealed[1].number)
    firsts = _seals({name.writer: path for path, name in reversed(ordered)}.values(), read)
    unjudged = _seals((path for path, name in journals if not previous.has_judged(name)), read)
    paths = {str(name): path for path, name in journals}
    places = _places(((day, name) for day, _, name in listed), previous)
    names = storage.names(RECONCILED)
    hidden = {name.removeprefix(".new-") for name in names if name.startswith(".new-")}
    results = days_in(name for name in names if name not in hidden)
    waiting = [] if archive.location.url else waiting_journals(archive.location.local)
    kept = frozenset(map(str, days_in(storage.names(Path()))))
    writers = known_writers(storage, None, key)
    return ArchiveState(
        today=day_of(at),
        heads=[
            HeadSeen(each.writer, each.closed, each.open, each.at, each.gateway, each.lease)
            for each in writers.sound.values()
        ],
        journals=[
            _new_journal(seal, kept, in_flight, places, _proven_from(seal, paths, read))
            for seal, forged in unjudged
            if not forged  # one that is unreadable or forged stays new, until it is mended
        ],
        numbers=by_key(((name.writer, name.start), name.number) for _, name in journals),
        before={seal.writer: seal.previous for seal, _ in firsts if seal.previous is not None},
        kept=kept,
        results=frozenset(map(str, results)),
        retired=frozenset(writers.retired),
        live=frozenset(each.name.writer for each in waiting if each.live),
        sealed=frozenset(map(str, days)),
        named=frozenset(writers.routes),
        forgotten=forgotten,
        removed=removed(storage, key),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """The dates around a journal of a writer, from its neighbours.

    `after` is `date.max` for its last journal, and the first one is `first`. A place is `filled`
    before a judged journal.
    """

    before: date
    after: date
    first: bool
    filled: bool


def _places(listed: Iterable[tuple[date, JournalName]], previous: Night) -> dict[str, _Place]:
    """Return the place of each journal in the order of its writer."""
    found: dict[str, _Place] = {}
    for own in by_key((name.writer, (day, name)) for day, name in sorted(listed)).values():
        judged = [number for number, (_, name) in enumerate(own) if previous.has_judged(name)]
        last = max(judged, default=-1)
        for number, (_, name) in enumerate(own):
            # Most journals are closed just after midnight: what follows them reaches back.
            before = own[number - 1][0] - timedelta(days=1) if number else own[0][0]
            after = own[number + 1][0] if number + 1 < len(own) else date.max
            found[str(name)] = _Place(before, after, first=not number, filled=number < last)
    return found


def _proven_from(seal: Seal, paths: Mapping[str, Path], read: ReadEvidence) -> int:
    """Return from when on a journal proves its chain, in microseconds.

    That is its opening, or the end of its predecessor where nothing else told how that went on:
    its process was killed, in the journal or between this one and the next.
    """
    before = seal.previous
    name = None if before is None else before.name
    if before is None or name is None:
        return seal.opened
    if before.digest is None:
        return before.closed
    path = paths.get(before.journal)
    if path is None or name.start == seal.start:
        return seal.opened
    earlier = read(path).seal
    went_on = isinstance(earlier, Seal) and earlier.end is End.CLOSED
    return before.closed if went_on else seal.opened


def _new_journal(
    seal: Seal, kept: Collection[str], in_flight: int, places: Mapping[str, _Place], begin: int
) -> NewJournal:
    """Return a journal with the dates of its rows, and those that it proves from `begin` on.

    One that begins a chain, or that leaves or fills a gap, proves all between its neighbours: the
    finding about the journals that are missing there belongs to these dates. A stop proves the
    silence until the next journal: it may arrive late. The first rows of a journal may be
    sightings of copies that were in flight before, for `in_flight` microseconds.
    """
    before = seal.previous
    place = places[seal.journal]
    begin, end = reach(min(begin, seal.opened), seal.closed)
    begin = min([begin, *(entry.first - in_flight for entry in seal.segments)])
    first, last = day_of(begin), day_of(end)
    goes_on = place.after if place.after < date.max else last
    if place.filled or before is None or before.journal not in places:
        first, last = min(first, place.before), max(last, goes_on)
    if place.first and before is not None:
        first = date.min  # nobody knows which journals are missing before it
    if seal.end is End.STOPPED:
        last = max(last, place.after)
    proven = {day for day in kept if str(first) <= day <= str(last)}
    concerns = proven.union(*(entry.concerns for entry in seal.segments))
    return NewJournal(seal.writer, seal.start, seal.sequence, seal.mac, tuple(sorted(concerns)))


def _seals(paths: Iterable[Path], read: ReadEvidence) -> list[tuple[Seal, bool]]:
    """Return the seals of journals, each with whether it is forged."""
    found = in_threads(read, paths)
    return [(each.seal, each.forged) for each in found if isinstance(each.seal, Seal)]
