"""The nightly job: verify the files, classify the copies, write tables and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from time import monotonic
from typing import Final

from pyspark.sql import SparkSession

from gateway.archive.findings import error
from gateway.archive.layout import DAY, SECOND, SPOOLED_DAYS
from gateway.archive.routes import Rules
from gateway.clock import moment, now
from gateway.night.archive.open_archive import OpenArchive
from gateway.night.archive.verification.holders import Holder
from gateway.night.reconcile.classify.survey import DateFiles, survey
from gateway.night.reconcile.input.inputs import (
    Scope,
    day_range,
    find_inputs,
    hashed_by,
    verify_around,
)
from gateway.night.reconcile.input.route_history import read_history
from gateway.night.reconcile.report.copy_results import CopyResults, write_copies
from gateway.night.reconcile.report.cut_results import CutResults, write_cuts
from gateway.night.reconcile.report.hop_results import HopResults, write_hops
from gateway.night.reconcile.report.name_results import NameResults, write_names
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.reported_gaps import ReportedGap
from gateway.night.reconcile.report.result_folder import ResultFolder, results_of
from gateway.night.reconcile.report.rows import Row, Rows
from gateway.night.reconcile.report.source_gaps import reported_gaps
from gateway.night.reconcile.report.timelines import Turn
from gateway.night.reconcile.root_cause import spark_faults
from gateway.night.reconcile.session import spark_session
from gateway.night.reconcile.task_shares import task_shares
from gateway.terminal.progress import ShowStep

FULL_ROWS: Final = 400_000  # of the date: 200,000 copies; with more, the sets are faster


@dataclass(frozen=True, slots=True)
class Job:
    """The options of a run, for each of its dates."""

    output: Path | None = None  # a local folder with one for each date; by default the archive
    master: str = "local[*]"
    full: bool | None = None  # join every row; None: below `FULL_ROWS`
    hops: bool = False  # also the messages between gateways
    strict: bool = False  # marked duplicates and late deliveries fail the verdict
    accept_gaps: bool = False  # gaps of sources do not change the exit status
    accept_cuts: bool = False  # nor does what is known on another's word only
    in_flight: int = 120  # seconds before an open journal in which a receipt may have no outcome
    late: int = 300  # seconds after receipt; a later delivery is late
    spooled_days: int = SPOOLED_DAYS
    samples: int = 10  # of each class
    mapping: Rules | None = None  # of all names; None: the archived routes of their time
    now: int | None = None  # microseconds; by default the time of this machine

    @property
    def at(self) -> int:
        """The time of the run, in microseconds."""
        return now() if self.now is None else self.now

    @property
    def spooled_since(self) -> int:
        """The first receipt of a copy that may still be in the spool, in microseconds."""
        return self.at - self.spooled_days * DAY


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of the steps after the files; they are empty without a readable segment."""

    copies: CopyResults = field(default_factory=CopyResults)
    names: NameResults = field(default_factory=NameResults)
    cuts: CutResults = field(default_factory=CutResults)
    hops: HopResults = field(default_factory=HopResults)


def reconcile(
    archive: OpenArchive, day: date, job: Job, show_step: ShowStep, carried: Rows = ()
) -> Report:
    """Reconcile one date; its results replace those of an earlier run at the end.

    `carried` are the other dates of the run, for the report.

    Raises:
        ReconcileError: another run writes the same results, or Spark does not start or finish.
        OSError: the archive cannot be read, or the results cannot be written.
    """
    results = results_of(archive, day, job.output)
    with results.locked() as check_held:
        began = monotonic()
        show_step(f"starting Spark on {job.master}")
        results.clear()
        with spark_session(job.master, short=job.full is not True) as spark:
            started = monotonic()
            with spark_faults("the job"), task_shares(spark, show_step) as shown:
                files = verified_files(spark, archive, day, job, shown)
                judged = judge(spark, files, results, job, shown)
        show_step("done")
        ended = monotonic() - started - files.seconds
        timings = {"files": files.seconds, "spark": started - began, "job": ended}
        report = replace(
            report_of(archive, files, judged, job),
            carried=carried,
            # Rounded here, because the page of a summary is that of its report.
            timings={name: round(each, 3) for name, each in timings.items()},
        )
        check_held()
        results.publish(report)
        return report


def judge(
    spark: SparkSession, files: DateFiles, results: ResultFolder, job: Job, show_step: ShowStep
) -> Judged:
    """Prove the messages of a date in four steps; each writes its tables, and has a result."""
    if not files.inputs.day:
        return Judged()
    strict, number = job.strict, job.samples
    copies = write_copies(spark, results, files, show_step, strict=strict, number=number)
    show_step("translating the names again")
    names = write_names(spark, results, files, job.mapping)
    show_step("looking for what was cut")
    cuts = write_cuts(spark, results, files, number=number)
    if not job.hops:
        return Judged(copies, names, cuts)
    show_step("joining the gateways")
    hops = write_hops(spark, results, files, strict=strict, number=number)
    return Judged(copies, names, cuts, hops)


def verified_files(
    spark: SparkSession, archive: OpenArchive, day: date, job: Job, show_step: ShowStep
) -> DateFiles:
    """Verify the files of the date, look at them and at those around it, and read the routes.

    Raises:
        OSError: the archive cannot be read.
    """
    location, in_flight = archive.location, job.in_flight * SECOND
    began = monotonic()
    show_step(f"checking the files of {day}")
    inputs = find_inputs(archive, day, hashed_by(spark, location))
    seconds = monotonic() - began
    full = inputs.rows < FULL_ROWS if job.full is None else job.full
    opened = {name: at - in_flight for name, at in inputs.opened.items()}
    scope = Scope(location, day, job.late, job.spooled_since, opened, in_flight, full=full)
    if not inputs.day:
        return DateFiles(scope, inputs, seconds)
    show_step("looking for gaps" if full else "evaluating the id sets")
    found = survey(spark, scope, inputs)
    inputs = verify_around(inputs, found.near)
    end = day_range(day)[1]
    until = min(job.at, end + job.spooled_days * DAY)
    history, newer = read_history(archive.storage, end, archive.key, until)
    return DateFiles(scope, inputs, seconds, found, history, newer)


def report_of(archive: OpenArchive, files: DateFiles, judged: Judged, job: Job) -> Report:
    """Make the report of a date from the results of all steps."""
    copies, names, hops = judged.copies, judged.names, judged.hops
    day, verified, answered = files.scope.day, files.inputs.verified, bool(files.inputs.day)
    findings = [*files.inputs.findings, *names.findings]
    gaps: Sequence[ReportedGap] = ()
    proof: Row = {"unproven": verified.unproven}
    if answered:
        gaps = reported_gaps(files.found.gaps, files.lasting, verified.pauses, day, job.at)
        sets = 0 if files.scope.full else len(files.inputs.all)
        proof = {
            "copies": copies.proven,
            "compared": copies.compared,
            "sets": sets,
            "seals": verified.seals,
            "keyed": archive.key is not None,
            **proof,
        }
    else:
        text = "there is no readable segment of this date"
        findings.append(error("no-data", f"date={day}", text))
    return Report(
        archive.name,
        day,
        findings,
        routes=copies.routes,
        dead_letters=copies.dead_letters,
        samples=copies.samples,
        gateways=copies.gateways,
        hours=copies.hours,
        whole_day=copies.whole_day,
        names=copies.names,
        totals=copies.totals,
        renamed=names.rows,
        names_unchecked=names.unchecked,
        gaps=gaps,
        holders=list(map(_turn, verified.holders)),
        hops=hops.rows,
        hop_samples=hops.samples,
        hops_unchecked=hops.unchecked,
        cuts=judged.cuts.rows,
        cut_samples=judged.cuts.samples,
        proof=proof,
        mode="full" if files.scope.full else "sets",
        strict=job.strict,
        accept_gaps=job.accept_gaps,
        accept_cuts=job.accept_cuts,
        answered=answered,
    )


def _turn(holder: Holder) -> Turn:
    begin, end = moment(holder.begin), moment(holder.end)
    overlap = holder.overlap / SECOND
    return Turn(holder.gateway, holder.writer, holder.lease, begin, end, overlap)
