"""The driver of a night: reads the archive, reconciles what the plan names, and writes the link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

from gateway.archive.durable import make_folders
from gateway.archive.findings import Finding
from gateway.archive.layout import NEVER_WRITTEN, NIGHTS, day_of, days_in, names_an_archive
from gateway.archive.storage import Storage, open_storage
from gateway.errors import GatewayError, ReconcileError
from gateway.model.copy_class import CopyClass
from gateway.model.cut_class import CutClass
from gateway.night.archive.acknowledged import with_acknowledged
from gateway.night.archive.archive_lock import exclusive_in
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.archive.remote_lock import CheckHeld
from gateway.night.archive.retention import forgotten_dates
from gateway.night.archive.seals.store import ReadSeal, read_seal
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.nights.chain import read_chain, write_night
from gateway.night.reconcile.nights.marker import VERDICTS, forged_markers, mark
from gateway.night.reconcile.nights.plan import plan_night, with_verdict
from gateway.night.reconcile.nights.witness import newest_stated, state_night
from gateway.night.reconcile.nights.world import world_of
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.run import Run, date_row
from gateway.night.reconcile.session import spark_session
from gateway.terminal.progress import ShowStep

After: TypeAlias = Callable[[date, Report], None]

_LOCK: Final = NIGHTS / ".lock"
_MAX_SEALS: Final = 20_000  # in memory, of a few kilobytes
_IN_FLIGHT: Final = CopyClass.IN_FLIGHT.value


@dataclass(frozen=True, slots=True)
class NightRun:
    """The dates of a night with its findings, and its link."""

    run: Run
    link: Night

    @property
    def report(self) -> Report:
        """The report of the newest date."""
        return self.run.report


@dataclass(frozen=True, slots=True)
class PlannedNight:
    """The link of a night before its verdicts, and what the night prints.

    `findings` are those of the link; one that somebody acknowledged is a warning. `forgotten` are
    the statements about removed dates that the link has. `read` reads a seal.
    """

    link: Night
    findings: Sequence[Finding]
    forgotten: Sequence[Path]
    read: ReadSeal
    today: date

    @property
    def closed(self) -> list[DateRecord]:
        """The dates of the link that have ended."""
        return [each for each in self.link.dates if each.date < str(self.today)]

    @property
    def days(self) -> list[date]:
        """The dates to judge."""
        return [date.fromisoformat(each.date) for each in self.closed if not each.settled]


class NightChain:
    """The chain of nights from the planned link on: one link more after each date.

    Mutable: owned by `run_night`. `newest` is the link that was written last, and the planned one
    before. An interrupted run resumes after its last date.
    """

    def __init__(
        self, storage: Storage, key: bytes | None, planned: PlannedNight, check_held: CheckHeld
    ) -> None:
        self.newest = planned.link
        self._storage, self._key, self._check_held = storage, key, check_held
        self._forgotten = planned.forgotten

    def add(self, day: date, report: Report) -> None:
        """Write the link that has the verdict of a date, and name it beside the results."""
        flight = report.total(_IN_FLIGHT) + report.between(_IN_FLIGHT)
        flight += report.cut(CutClass.IN_FLIGHT.value)
        self.newest = with_verdict(self.newest, str(day), report.status, flight)
        self.write()
        if report.answered:
            state_night(self._storage, day, self.newest, self._key)
        mark(self._storage, day, [self.newest])

    def write(self) -> None:
        """Write the next link, with the verdicts so far."""
        self._check_held()
        link = replace(self.newest, n=self.newest.n + 1, previous=self.newest.mac)
        self.newest = write_night(self._storage, link, self._key)
        for statement in self._forgotten:  # the link has it now
            self._storage.delete(statement)


def run_night(job: Job, show_step: ShowStep, expect: str | None = None) -> NightRun:
    """Judge what the night after the last one judges, and write its link.

    A link is written after each date: an interrupted run resumes at the next one. The `day` and the
    `output` of `job` are not used.

    Raises:
        ReconcileError: another night runs, `expect` is in no link, no gateway has written to the
            archive, or Spark does not start.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read or written.
    """
    location, storage = job.location, open_storage(job.location)
    if not location.url:
        names = storage.names(Path())
        if not names_an_archive(names) and NIGHTS.name not in names:
            raise _never_written(job)  # a wrong folder stays as it is
        make_folders(location.local / NIGHTS)
    conflict = "another gateway reconcile writes the next night; wait for its end"
    with exclusive_in(location, _LOCK, conflict) as check_held:
        # A journal that is only not converted yet is not away.
        convert_abandoned(location, storage, job.key)
        planned = _planned(job, storage, expect)
        chain = NightChain(storage, job.key, planned, check_held)
        carried = [_earlier(job, each) for each in planned.closed if each.settled]
        if planned.days:
            own = replace(job, carried=carried, read_seal=planned.read)
            report = run_dates(own, planned.days, show_step, chain.add)
        else:
            chain.write()
            report = Report(str(job.archive), None, carried=carried)
        return NightRun(Run(report, planned.findings), chain.newest)


def _planned(job: Job, storage: Storage, expect: str | None) -> PlannedNight:
    """Read the chain and the archive, and plan the night after the last one."""
    chain = read_chain(storage, job.key, expect, stated=newest_stated(storage, job.key))
    forgotten, job = forgotten_dates(storage), replace(job, now=job.at)  # a plan has one time
    removed = frozenset(day for dates in forgotten.values() for day in dates)
    read = lru_cache(_MAX_SEALS)(partial(read_seal, storage))
    world = world_of(job, storage, chain.newest, removed, read)
    if not (chain.last or world.there or world.heads or world.named):
        raise _never_written(job)
    link = plan_night(chain.newest, world, at=job.at, spooled_days=job.spooled_days)
    findings = (*chain.findings, *forged_markers(storage), *link.findings)
    shown = with_acknowledged(storage, findings, job.key)
    link = replace(link, n=chain.last, mac=chain.newest.mac, findings=findings)
    return PlannedNight(link, shown, [*forgotten], read, world.today)


def _never_written(job: Job) -> ReconcileError:
    return ReconcileError(f"archive {job.location}: {NEVER_WRITTEN}")


def run_dates(
    job: Job, days: Sequence[date], show_step: ShowStep, after: After = lambda _day, _report: None
) -> Report:
    """Reconcile `days`, at least one; return the report of the last with a row for each other.

    A date that cannot be reconciled has no answer, and the others go on; the last one raises.

    Raises:
        ReconcileError: Spark does not start or does not finish.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    *earlier, last = [replace(job, day=day) for day in days]
    storage, carried = open_storage(job.location), [*job.carried]
    # The dates share a session; one date alone starts that which suits it.
    with spark_session(job.master) if earlier else nullcontext():
        for each in earlier:
            convert_abandoned(job.location, storage, job.key)
            row, found = _row(each, show_step)
            carried.append(row)
            after(each.day, found)
        convert_abandoned(job.location, storage, job.key)
        report = reconcile(replace(last, carried=carried), show_step)
        after(last.day, report)
    return report


def _earlier(job: Job, record: DateRecord) -> Row:
    """Return the verdict of a date that an earlier run of this night judged."""
    known = replace(job, day=date.fromisoformat(record.date)).results.earlier()
    if known is None:
        verdict = VERDICTS.get(record.status, "no answer")
        said = f"{verdict.capitalize()}: its results are gone"
        return {"date": record.date, "headline": said, "verdict": verdict, "status": record.status}
    return date_row(
        replace(known, strict=job.strict, accept_gaps=job.accept_gaps, accept_cuts=job.accept_cuts)
    )


def closed_dates(job: Job) -> list[date]:
    """Return the kept dates before today, oldest first."""
    today = day_of(job.at)
    return [day for day in days_in(open_storage(job.location).names(Path())) if day < today]


def _row(job: Job, show_step: ShowStep) -> tuple[Row, Report]:
    """Reconcile an earlier date; return what changed, and its report."""
    before = job.results.earlier()
    flight = before.total(_IN_FLIGHT) if before is not None else 0
    began = monotonic()
    try:
        report = reconcile(job, show_step)
    except (GatewayError, OSError) as fault:
        show_step(f"{job.day} is not reconciled: {fault}")
        report = Report(str(job.archive), job.day, answered=False)
    row = {
        **date_row(report),
        "before": flight,
        "after": report.total(_IN_FLIGHT) if report.answered else flight,
        "status_before": before.status if before is not None else None,
        "rows": report.total("received"),
        "seconds": round(monotonic() - began, 3),
    }
    return row, report
