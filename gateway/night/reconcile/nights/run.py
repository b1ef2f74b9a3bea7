"""The driver of a night: reads the archive, reconciles what the plan names, and writes the link."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Final, TypeAlias

from gateway.archive.durable import make_folders
from gateway.archive.layout import NEVER_WRITTEN, NIGHTS, SECOND, days_in, names_an_archive
from gateway.errors import GatewayError, ReconcileError
from gateway.model.copy_class import CopyClass
from gateway.model.cut_class import CutClass
from gateway.night.archive.acknowledged import with_acknowledged
from gateway.night.archive.archive_lock import exclusive_in
from gateway.night.archive.night_record import DateRecord, Night
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.remote_lock import CheckHeld
from gateway.night.archive.segments.convert import convert_abandoned
from gateway.night.reconcile.job import Job, reconcile
from gateway.night.reconcile.nights.chain import write_night
from gateway.night.reconcile.nights.known import read_known
from gateway.night.reconcile.nights.marker import VERDICTS, mark
from gateway.night.reconcile.nights.plan import planned_night, with_verdict
from gateway.night.reconcile.nights.witness import state_night
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.result_folder import results_of
from gateway.night.reconcile.report.rows import Row, Rows
from gateway.night.reconcile.report.run import Run, date_row
from gateway.night.reconcile.session import spark_session
from gateway.terminal.progress import ShowStep

After: TypeAlias = Callable[[date, Report], None]

_LOCK: Final = NIGHTS / ".lock"
_CONFLICT: Final = "another gateway reconcile writes the next night; wait for its end"
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


class NightChain:
    """The chain of nights from the planned link on: one link more after each date.

    Mutable: owned by `run_night`. `newest` is the link that was written last, and the planned one
    before. An interrupted run resumes after its last date. The `statements` are about removed
    dates that the planned link has.
    """

    def __init__(
        self,
        archive: OpenArchive,
        planned: Night,
        statements: Collection[Path],
        check_held: CheckHeld,
    ) -> None:
        self.newest = planned
        self._storage, self._key, self._check_held = archive.storage, archive.key, check_held
        self._statements = statements

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
        for statement in self._statements:  # the link has it now
            self._storage.delete(statement)


def run_night(
    archive: OpenArchive, job: Job, show_step: ShowStep, expect: str | None = None
) -> NightRun:
    """Judge what the night after the last one judges, and write its link.

    A link is written after each date: an interrupted run resumes at the next one. The results lie
    in the archive: `job` has no `output`.

    Raises:
        ReconcileError: another night runs, `expect` is in no link, no gateway has written to the
            archive, or Spark does not start.
        OSError: the archive cannot be read or written.
    """
    archive = archive.reading_once()
    _make_place(archive)
    with exclusive_in(archive.location, archive.storage, _LOCK, _CONFLICT) as check_held:
        convert_abandoned(archive)  # a journal that is only not converted yet is not away
        known = read_known(archive, expect, at=job.at, in_flight=job.in_flight * SECOND)
        if known.never_written:
            raise _never_written(archive)
        planned = planned_night(known, job.spooled_days)
        findings = with_acknowledged(archive.storage, planned.link.findings, archive.key)
        chain = NightChain(archive, planned.link, known.forgotten, check_held)
        carried = [_earlier(archive, job, each) for each in planned.closed if each.settled]
        if planned.days:
            report = run_dates(archive, job, planned.days, show_step, chain.add, carried)
        else:
            chain.write()
            report = Report(archive.name, None, carried=carried)
        return NightRun(Run(report, findings), chain.newest)


def _make_place(archive: OpenArchive) -> None:
    """Make the folder of the nights in a local archive; a wrong folder stays as it is."""
    if archive.location.url:
        return
    names = archive.storage.names(Path())
    if not names_an_archive(names) and NIGHTS.name not in names:
        raise _never_written(archive)
    make_folders(archive.location.local / NIGHTS)


def _never_written(archive: OpenArchive) -> ReconcileError:
    return ReconcileError(f"archive {archive.location}: {NEVER_WRITTEN}")


def run_dates(
    archive: OpenArchive,
    job: Job,
    days: Sequence[date],
    show_step: ShowStep,
    after: After = lambda _day, _report: None,
    carried: Rows = (),
) -> Report:
    """Reconcile `days`, at least one; return the report of the last with a row for each other.

    The other dates are those and the `carried` ones, which somebody else reconciled. A date that
    cannot be reconciled has no answer, and the others go on; the last one raises.

    Raises:
        ReconcileError: Spark does not start or does not finish.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    *earlier, last = days
    rows = [*carried]
    # The dates share a session; one date alone starts that which suits it.
    with spark_session(job.master) if earlier else nullcontext():
        for day in earlier:
            convert_abandoned(archive)
            row, found = _row(archive, day, job, show_step)
            rows.append(row)
            after(day, found)
        convert_abandoned(archive)
        report = reconcile(archive, last, job, show_step, rows)
        after(last, report)
    return report


def _earlier(archive: OpenArchive, job: Job, record: DateRecord) -> Row:
    """Return the verdict of a date that an earlier run of this night judged."""
    known = results_of(archive, date.fromisoformat(record.date), job.output).earlier()
    if known is None:
        verdict = VERDICTS.get(record.status, "no answer")
        said = f"{verdict.capitalize()}: its results are gone"
        return {"date": record.date, "headline": said, "verdict": verdict, "status": record.status}
    return date_row(
        replace(known, strict=job.strict, accept_gaps=job.accept_gaps, accept_cuts=job.accept_cuts)
    )


def closed_dates(archive: OpenArchive, today: date) -> list[date]:
    """Return the kept dates before today, oldest first."""
    return [day for day in days_in(archive.storage.names(Path())) if day < today]


def _row(archive: OpenArchive, day: date, job: Job, show_step: ShowStep) -> tuple[Row, Report]:
    """Reconcile an earlier date; return what changed, and its report."""
    before = results_of(archive, day, job.output).earlier()
    flight = before.total(_IN_FLIGHT) if before is not None else 0
    began = monotonic()
    try:
        report = reconcile(archive, day, job, show_step)
    except (GatewayError, OSError) as fault:
        show_step(f"{day} is not reconciled: {fault}")
        report = Report(archive.name, day, answered=False)
    row = {
        **date_row(report),
        "before": flight,
        "after": report.total(_IN_FLIGHT) if report.answered else flight,
        "status_before": before.status if before is not None else None,
        "rows": report.total("received"),
        "seconds": round(monotonic() - began, 3),
    }
    return row, report
