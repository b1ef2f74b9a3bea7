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
from gateway.archive.layout import NEVER_WRITTEN, NIGHTS, day_of, days_in, names_an_archive
from gateway.archive.storage import open_storage
from gateway.errors import GatewayError, ReconcileError
from gateway.model.copy_class import CopyClass
from gateway.model.cut_class import CutClass
from gateway.night.archive.acknowledged import with_acknowledged
from gateway.night.archive.archive_lock import exclusive_in
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.archive.retention import forgotten_dates
from gateway.night.archive.seals.store import read_seal
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


def run_night(job: Job, show_step: ShowStep, expect: str | None = None) -> NightRun:
    """Judge what the night after the last one judges, and write its link.

    A link is written after each date: an interrupted run resumes at the next one. The `day` of
    `job` is not used.

    Raises:
        ReconcileError: another night runs, `expect` is in no link, no gateway has written to the
            archive, or Spark does not start.
        ArchiveError: the URL of the archive is malformed.
        OSError: the archive cannot be read or written.
    """
    location, storage = job.location, open_storage(job.location)
    never_written = ReconcileError(f"archive {location}: {NEVER_WRITTEN}")
    if not location.url:
        names = storage.names(Path())
        if not names_an_archive(names) and NIGHTS.name not in names:
            raise never_written  # a wrong folder stays as it is
        make_folders(location.local / NIGHTS)
    conflict = "another gateway reconcile writes the next night; wait for its end"
    with exclusive_in(location, _LOCK, conflict) as check_held:
        convert_left(job)  # a journal that is only not converted yet is not away
        chain = read_chain(storage, job.key, expect, stated=newest_stated(storage, job.key))
        at, forgotten = job.at, forgotten_dates(storage)
        read = lru_cache(_MAX_SEALS)(partial(read_seal, storage))
        removed = frozenset(day for dates in forgotten.values() for day in dates)
        world = world_of(job, chain.newest, at, removed, read)
        if not (chain.last or world.there or world.heads or world.named):
            raise never_written
        link = plan_night(chain.newest, world, at=at, spooled_days=job.spooled_days)
        findings = (*chain.findings, *forged_markers(storage), *link.findings)
        shown = with_acknowledged(storage, findings, job.key)
        link = replace(link, n=chain.last, mac=chain.newest.mac, findings=findings)
        closed = [each for each in link.dates if each.date < str(world.today)]
        days = [date.fromisoformat(each.date) for each in closed if not each.settled]
        job = replace(job, carried=[_earlier(job, each) for each in closed if each.settled])

        def write_link() -> None:
            nonlocal link
            check_held()
            link = write_night(storage, replace(link, n=link.n + 1, previous=link.mac), job.key)
            for statement in forgotten:  # the link has it now
                storage.delete(statement)

        if not days:
            write_link()
            report = Report(str(job.archive), None, carried=job.carried)
            return NightRun(Run(report, shown), link)

        def after(day: date, report: Report) -> None:
            nonlocal link
            flight = report.total(_IN_FLIGHT) + report.between(_IN_FLIGHT)
            flight += report.cut(CutClass.IN_FLIGHT.value)
            link = with_verdict(link, str(day), report.status, flight)
            write_link()
            if report.answered and job.output is None:
                state_night(storage, day, link, job.key)
            mark(storage, day, [link])

        report = run_dates(replace(job, read_seal=read), days, show_step, after)
        return NightRun(Run(report, shown), link)


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
    carried = [*job.carried]
    # The dates share a session; one date alone starts that which suits it.
    with spark_session(job.master) if earlier else nullcontext():
        for each in earlier:
            convert_left(each)
            row, found = _row(each, show_step)
            carried.append(row)
            after(each.day, found)
        convert_left(last)
        report = reconcile(replace(last, carried=carried), show_step)
        after(last.day, report)
    return report


def convert_left(job: Job) -> None:
    """Convert the readable journals that a gateway left at its end."""
    if job.location.local.is_dir():
        convert_abandoned(job.location, open_storage(job.location), job.key)


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
