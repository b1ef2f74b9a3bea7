"""The archive as a night finds it: heads, seals, journals and dates, read before the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from gateway.archive.layout import SECOND, day_of, days_in
from gateway.archive.night_record import HeadSeen, Night
from gateway.archive.seals.seal import Seal
from gateway.archive.seals.store import ReadSeal, seal_days, sealed_journals
from gateway.archive.storage import Storage
from gateway.archive.threads import in_threads
from gateway.archive.verification.waiting import waiting_journals
from gateway.archive.verification.writers import known_writers
from gateway.reconcile.job import Job
from gateway.reconcile.nights.plan import NewJournal, World


def world_of(  # noqa: PLR0913, PLR0917  # the archive, and what is known of it
    job: Job,
    storage: Storage,
    previous: Night,
    at: int,
    forgotten: Mapping[Path, Sequence[str]],
    read: ReadSeal,
) -> World:
    """Return the archive as a night at `at` finds it, after `previous`; `read` reads a seal.

    Raises:
        OSError: the archive cannot be read.
    """
    days = seal_days(storage)
    journals = [each for day in days for each in sealed_journals(storage, day)]
    numbers: dict[str, set[int]] = defaultdict(set)
    for _, name in journals:
        numbers[name.writer].add(name.number)
    ordered = sorted(journals, key=lambda sealed: sealed[1].number)
    firsts = _seals({name.writer: path for path, name in reversed(ordered)}.values(), read)
    unjudged = _seals((path for path, name in journals if not previous.has_judged(name)), read)
    names = storage.names(job.results.folder.parent)
    hidden = {name.removeprefix(".new-") for name in names if name.startswith(".new-")}
    results = days_in(name for name in names if name not in hidden)
    waiting = [] if job.location.url else waiting_journals(job.location.local)
    kept = frozenset(map(str, days_in(storage.names(Path()))))
    writers = known_writers(storage, None, job.key)
    heads = [each.head for each in writers.heads if each.head and not each.fault]
    return World(
        today=day_of(at),
        heads=[
            HeadSeen(each.writer, each.closed, each.open, each.at, each.gateway, each.lease)
            for each in heads
        ],
        journals=[
            _new_journal(seal, kept, job.in_flight * SECOND)
            for seal in unjudged  # one that is unreadable or forged stays new, until it is mended
            if (seal.keyed and job.key is None) or seal.has_valid_mac(job.key)
        ],
        numbers=numbers,
        before={seal.writer: seal.previous for seal in firsts if seal.previous is not None},
        kept=kept,
        results=frozenset(map(str, results)),
        retired=writers.retired,
        live=frozenset(each.name.writer for each in waiting if each.live),
        sealed=frozenset(map(str, days)),
        named=frozenset(writers.routes),
        forgotten=frozenset(day for dates in forgotten.values() for day in dates),
    )


def _new_journal(seal: Seal, kept: Collection[str], in_flight: int) -> NewJournal:
    """Return a journal with the dates of its rows, and those that it proves.

    It proves the chain from its opening on, and after a killed process that before it. Its first
    rows may be sightings of copies that were in flight before, for `in_flight` microseconds.
    """
    before = seal.previous
    begin = before.closed if before and before.digest is None else seal.opened
    begin = min([begin, *(entry.first - in_flight for entry in seal.segments)])
    first, last = str(day_of(begin)), str(day_of(seal.closed))
    proven = {day for day in kept if first <= day <= last}
    concerns = proven.union(*(entry.concerns for entry in seal.segments))
    return NewJournal(seal.writer, seal.start, seal.sequence, seal.mac, tuple(sorted(concerns)))


def _seals(paths: Iterable[Path], read: ReadSeal) -> list[Seal]:
    return [each.seal for each in in_threads(read, paths) if isinstance(each.seal, Seal)]
